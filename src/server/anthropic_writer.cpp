#include "server/anthropic_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/sse.h"

namespace whimbrel::wire {

namespace {

using Kind = AnswerPiece::Kind;

std::string event(std::string_view type, const Json& members) {
  Json json = {{"type", type}};
  json.update(members);
  return http::sse_event(type, dump(json));
}

/// Tokens that were kept count apart from those that were computed.
Json anthropic_usage(const AnswerTally& tally) {
  return {
      {"input_tokens", tally.prompt_tokens - tally.cached_tokens},
      {"cache_creation_input_tokens", 0},
      {"cache_read_input_tokens", tally.cached_tokens},
      {"output_tokens", tally.completion_tokens}
  };
}

Json message_json(const MessageInfo& info, Json content, const AnswerTally& tally) {
  return {
      {"id", info.id},
      {"type", "message"},
      {"role", "assistant"},
      {"model", info.model},
      {"content", std::move(content)},
      {"stop_reason", nullptr},
      {"stop_sequence", nullptr},
      {"usage", anthropic_usage(tally)}
  };
}

std::string_view stop_reason_of(const AnswerFinished& finished, bool has_call) {
  if (finished.reason == AnswerEnd::length) {
    return "max_tokens";
  }
  if (finished.stop_text) {
    return "stop_sequence";
  }
  return has_call ? "tool_use" : "end_turn";
}

void add_stop(Json& json, const std::optional<AnswerFinished>& finished, bool has_call) {
  if (finished) {
    json["stop_reason"] = stop_reason_of(*finished, has_call);
    json["stop_sequence"] = finished->stop_text ? Json(*finished->stop_text) : Json(nullptr);
  }
}

/// A call's id: another for each call of each answer.
std::string call_id(const MessageInfo& info, int call) {
  return fmt::format("toolu_{}_{}", info.id.substr(info.id.find('_') + 1), call);
}

Json call_json(const MessageInfo& info, int call, std::string_view name, Json input) {
  return {
      {"type", "tool_use"}, {"id", call_id(info, call)}, {"name", name}, {"input", std::move(input)}
  };
}

Json text_json(Kind kind, std::string_view text) {
  if (kind == Kind::reasoning) {
    return {{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
  }
  return {{"type", "text"}, {"text", text}};
}

/// Arguments as an object. A number that no program can hold, such as 1e999, leaves them text.
Json input_of(const std::string& arguments) {
  try {
    return parse_json(arguments, "arguments", Fault::input);
  } catch (const Error&) {
    return {{"arguments", arguments}};
  }
}

}  // namespace

MessageAnswer::MessageAnswer(MessageInfo info) : info_(std::move(info)), parts_(info_.form) {}

void MessageAnswer::push(const Event& event) {
  if (const auto* admitted = std::get_if<Admitted>(&event)) {
    tally_.add(*admitted);
  } else if (const auto* token = std::get_if<AnswerToken>(&event)) {
    take(parts_.push(token->text));
  } else if (const auto* finished = std::get_if<AnswerFinished>(&event)) {
    tally_.add(*finished);
    take(parts_.push(finished->text));
    take(parts_.finish());
    finished_ = *finished;
  } else if (std::holds_alternative<RequestFinished>(event)) {
    ended_ = true;
  } else if (const auto* failed = std::get_if<RequestFailed>(&event)) {
    failure_ = failure_of(*failed);
    ended_ = true;
  }
}

void MessageAnswer::append(Kind kind, const std::string& text) {
  if (blocks_.empty() || blocks_.back().kind != kind) {
    blocks_.push_back({.kind = kind});
  }
  blocks_.back().text += text;
}

void MessageAnswer::take(std::vector<AnswerPiece> pieces) {
  for (AnswerPiece& piece : pieces) {
    switch (piece.kind) {
      case Kind::reasoning:
      case Kind::content:
        append(piece.kind, piece.text);
        break;
      case Kind::call_begun:
        blocks_.push_back({.kind = piece.kind, .call = piece.call, .text = std::move(piece.text)});
        break;
      case Kind::call_arguments:
        blocks_.back().arguments += piece.text;
        break;
      case Kind::call_ended:
        break;
      case Kind::call_broken:
        if (!blocks_.empty() && blocks_.back().kind == Kind::call_begun &&
            blocks_.back().call == piece.call) {
          blocks_.pop_back();
        }
        append(Kind::content, piece.text);
        break;
    }
  }
}

Json MessageAnswer::block_json(const Block& block) const {
  if (block.kind != Kind::call_begun) {
    return text_json(block.kind, block.text);
  }
  return call_json(info_, block.call, block.text, input_of(block.arguments));
}

Json MessageAnswer::json() const {
  Json content = Json::array();
  bool has_call = false;
  for (const Block& block : blocks_) {
    content.push_back(block_json(block));
    has_call = has_call || block.kind == Kind::call_begun;
  }
  Json json = message_json(info_, std::move(content), tally_);
  add_stop(json, finished_, has_call);
  return json;
}

MessageStream::MessageStream(MessageInfo info) : info_(std::move(info)), parts_(info_.form) {}

std::string MessageStream::push(const Event& event) {
  return std::visit([this](const auto& it) { return on(it); }, event);
}

/// The first events; they tell the prompt's tokens.
std::string MessageStream::begin() {
  if (std::exchange(begun_, true)) {
    return {};
  }
  const Json message = message_json(info_, Json::array(), tally_);
  return event("message_start", {{"message", message}}) + ping_event();
}

std::string MessageStream::on(const Admitted& admitted) {
  tally_.add(admitted);
  return begin();
}

std::string MessageStream::on(const PromptProgress& /*progress*/) {
  return {};
}

std::string MessageStream::on(const AnswerToken& token) {
  return begin() + piece_events(parts_.push(token.text));
}

std::string MessageStream::on(const AnswerFinished& finished) {
  tally_.add(finished);
  finished_ = finished;
  std::string frames = begin();
  frames += piece_events(parts_.push(finished.text));
  frames += piece_events(parts_.finish());
  frames += close_block();
  return frames;
}

std::string MessageStream::on(const RequestFinished& /*finished*/) {
  ended_ = true;
  Json delta = {{"stop_reason", nullptr}, {"stop_sequence", nullptr}};
  add_stop(delta, finished_, has_call_);
  return begin() +
         event("message_delta", {{"delta", std::move(delta)}, {"usage", anthropic_usage(tally_)}}) +
         event("message_stop", Json::object());
}

std::string MessageStream::on(const RequestFailed& failed) {
  ended_ = true;
  const Json error = http::error_json(failure_of(failed), http::ErrorShape::anthropic);
  return http::sse_event("error", dump(error));
}

std::string MessageStream::piece_events(const std::vector<AnswerPiece>& pieces) {
  std::string frames;
  for (const AnswerPiece& piece : pieces) {
    frames += block_events(piece);
  }
  return frames;
}

std::string MessageStream::block_events(const AnswerPiece& piece) {
  switch (piece.kind) {
    case Kind::reasoning: {
      const std::string start = open_block(Kind::reasoning, text_json(Kind::reasoning, ""));
      return start + delta_event({{"type", "thinking_delta"}, {"thinking", piece.text}});
    }
    case Kind::content:
    case Kind::call_broken: {
      const std::string start = open_block(Kind::content, text_json(Kind::content, ""));
      return start + delta_event({{"type", "text_delta"}, {"text", piece.text}});
    }
    case Kind::call_begun: {
      const std::string end = close_block();
      const Json call = call_json(info_, piece.call, piece.text, Json::object());
      return end + open_block(Kind::call_begun, call);
    }
    case Kind::call_arguments:
      return delta_event({{"type", "input_json_delta"}, {"partial_json", piece.text}});
    case Kind::call_ended:
      has_call_ = true;
      return close_block();
  }
  return {};
}

/// Goes on in a block of that kind, or begins one.
std::string MessageStream::open_block(Kind kind, Json block) {
  if (open_ == kind) {
    return {};
  }
  std::string frames = close_block();
  open_ = kind;
  ++block_;
  return frames +
         event("content_block_start", {{"index", block_}, {"content_block", std::move(block)}});
}

std::string MessageStream::close_block() {
  if (!std::exchange(open_, std::nullopt)) {
    return {};
  }
  return event("content_block_stop", {{"index", block_}});
}

std::string MessageStream::delta_event(Json delta) const {
  return event("content_block_delta", {{"index", block_}, {"delta", std::move(delta)}});
}

std::string ping_event() {
  return event("ping", Json::object());
}

Json token_count_json(int tokens) {
  return {{"input_tokens", tokens}};
}

}  // namespace whimbrel::wire
