#include "server/responses_writer.h"

#include <fmt/format.h>

#include "server/sse.h"

namespace whimbrel::wire {

namespace {

using Kind = AnswerPiece::Kind;

Json responses_usage(const AnswerTally& tally) {
  return {
      {"input_tokens", tally.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", tally.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", tally.completion_tokens},
      {"output_tokens_details", {{"reasoning_tokens", tally.reasoning_tokens}}},
      {"total_tokens", tally.prompt_tokens + tally.completion_tokens}
  };
}

Json part_json(Kind kind, std::string_view text) {
  if (kind == Kind::reasoning) {
    return {{"type", "reasoning_text"}, {"text", text}};
  }
  return {
      {"type", "output_text"},
      {"text", text},
      {"annotations", Json::array()},
      {"logprobs", Json::array()}
  };
}

Json error_member(const http::ApiError& error) {
  return {{"code", error.code.empty() ? "server_error" : error.code}, {"message", error.message}};
}

}  // namespace

ResponseWriter::ResponseWriter(ResponseInfo info) : info_(std::move(info)), parts_(info_.form) {}

std::string ResponseWriter::push(const Event& event) {
  return std::visit([this](const auto& it) { return on(it); }, event);
}

Json ResponseWriter::json() const {
  const bool is_cut = status_ == "incomplete";
  Json json = {
      {"id", info_.id},
      {"object", "response"},
      {"created_at", info_.created},
      {"status", status_},
      {"error", failure_ ? error_member(*failure_) : Json(nullptr)},
      {"incomplete_details", is_cut ? Json{{"reason", "max_output_tokens"}} : Json(nullptr)},
      {"model", info_.model},
      {"output", output_},
      {"previous_response_id", nullptr},
      {"store", false},
      {"truncation", "disabled"},
      {"usage", ended_ && !failure_ ? responses_usage(tally_) : Json(nullptr)}
  };
  json.update(info_.repeated);
  return json;
}

std::string ResponseWriter::event(std::string_view type, const Json& members) {
  Json json = {{"type", type}, {"sequence_number", sequence_++}};
  json.update(members);
  return http::sse_event(type, dump(json));
}

/// An event of the open item.
std::string ResponseWriter::item_event(std::string_view type, const Json& members) {
  Json all = {{"item_id", output_.back()["id"]}, {"output_index", output_.size() - 1}};
  if (open_ != Kind::call_begun) {
    all["content_index"] = 0;
  }
  all.update(members);
  return event(type, all);
}

std::string ResponseWriter::item_id(std::string_view prefix) const {
  const std::string random = info_.id.substr(info_.id.find('_') + 1);
  return fmt::format("{}_{}_{}", prefix, random, output_.size());
}

std::string ResponseWriter::begin() {
  if (std::exchange(begun_, true)) {
    return {};
  }
  std::string frames = event("response.created", {{"response", json()}});
  frames += event("response.in_progress", {{"response", json()}});
  return frames;
}

std::string ResponseWriter::on(const Admitted& admitted) {
  tally_.add(admitted);
  return begin();
}

std::string ResponseWriter::on(const PromptProgress& /*progress*/) {
  return {};
}

std::string ResponseWriter::on(const AnswerToken& token) {
  std::string frames = begin();
  tally_.reasoning_tokens += parts_.in_reasoning() ? 1 : 0;
  frames += piece_events(parts_.push(token.text));
  return frames;
}

std::string ResponseWriter::on(const AnswerFinished& finished) {
  tally_.add(finished);
  std::string frames = begin();
  frames += piece_events(parts_.push(finished.text));
  frames += piece_events(parts_.finish());
  const bool is_cut = finished.reason == AnswerEnd::length;
  status_ = is_cut ? "incomplete" : "completed";
  frames += close_item(status_);
  return frames;
}

std::string ResponseWriter::on(const RequestFinished& /*finished*/) {
  ended_ = true;
  return event("response." + status_, {{"response", json()}});
}

std::string ResponseWriter::on(const RequestFailed& failed) {
  ended_ = true;
  failure_ = failure_of(failed);
  status_ = "failed";
  return event("response.failed", {{"response", json()}});
}

std::string ResponseWriter::piece_events(const std::vector<AnswerPiece>& pieces) {
  std::string frames;
  for (const AnswerPiece& piece : pieces) {
    frames += piece_event(piece);
  }
  return frames;
}

std::string ResponseWriter::piece_event(const AnswerPiece& piece) {
  switch (piece.kind) {
    case Kind::reasoning:
    case Kind::content:
      return text_event(piece.kind, piece.text);
    case Kind::call_broken: {
      const std::string end = close_item("incomplete");
      return end + text_event(Kind::content, piece.text);
    }
    case Kind::call_begun: {
      const std::string end = close_item("completed");
      return end + open_item(
                       Kind::call_begun,
                       {{"type", "function_call"},
                        {"id", item_id("fc")},
                        {"call_id", item_id("call")},
                        {"name", piece.text},
                        {"arguments", ""},
                        {"status", "in_progress"}}
                   );
    }
    case Kind::call_arguments:
      text_ += piece.text;
      return item_event("response.function_call_arguments.delta", {{"delta", piece.text}});
    case Kind::call_ended:
      return close_item("completed");
  }
  return {};
}

/// Text or reasoning, in an item of its kind.
std::string ResponseWriter::text_event(Kind kind, const std::string& text) {
  std::string frames;
  const bool is_reasoning = kind == Kind::reasoning;
  if (open_ != kind) {
    frames += close_item("completed");
    Json item = {
        {"type", is_reasoning ? "reasoning" : "message"},
        {"id", item_id(is_reasoning ? "rs" : "msg")},
        {"status", "in_progress"}
    };
    item[is_reasoning ? "summary" : "role"] = is_reasoning ? Json::array() : Json("assistant");
    item["content"] = Json::array();
    frames += open_item(kind, std::move(item));
    frames += item_event("response.content_part.added", {{"part", part_json(kind, "")}});
  }
  text_ += text;
  Json members = {{"delta", text}};
  if (!is_reasoning) {
    members["logprobs"] = Json::array();
  }
  const char* type = is_reasoning ? "response.reasoning_text.delta" : "response.output_text.delta";
  return frames + item_event(type, members);
}

std::string ResponseWriter::open_item(Kind kind, Json item) {
  open_ = kind;
  text_.clear();
  output_.push_back(std::move(item));
  return event(
      "response.output_item.added", {{"output_index", output_.size() - 1}, {"item", output_.back()}}
  );
}

/// The end of an open item's text.
std::string ResponseWriter::close_text(const std::string& text) {
  const Kind kind = *open_;
  const bool is_reasoning = kind == Kind::reasoning;
  Json members = {{"text", text}};
  if (!is_reasoning) {
    members["logprobs"] = Json::array();
  }
  output_.back()["content"].push_back(part_json(kind, text));
  std::string frames = item_event(
      is_reasoning ? "response.reasoning_text.done" : "response.output_text.done", members
  );
  frames += item_event("response.content_part.done", {{"part", part_json(kind, text)}});
  return frames;
}

std::string ResponseWriter::close_item(std::string_view status) {
  if (!open_) {
    return {};
  }
  std::string frames;
  if (open_ == Kind::call_begun) {
    output_.back()["arguments"] = text_;
    frames += item_event(
        "response.function_call_arguments.done",
        {{"name", output_.back()["name"]}, {"arguments", text_}}
    );
  } else {
    frames += close_text(text_);
  }
  output_.back()["status"] = status;
  frames += event(
      "response.output_item.done", {{"output_index", output_.size() - 1}, {"item", output_.back()}}
  );
  open_ = std::nullopt;
  return frames;
}

}  // namespace whimbrel::wire
