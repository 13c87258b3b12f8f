#include "server/chat_writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/sse.h"

namespace whimbrel::wire {

namespace {

Json head_json(const ChatAnswerInfo& info, std::string_view object) {
  return {
      {"id", info.id},
      {"object", object},
      {"created", info.created},
      {"model", info.model},
      {"system_fingerprint", info.fingerprint}
  };
}

/// A call's id: another for each call of each choice of each answer.
std::string call_id(const ChatAnswerInfo& info, int choice, int call) {
  const size_t dash = info.id.find('-');
  const std::string_view random = std::string_view(info.id).substr(dash + 1);
  return fmt::format("call_{}_{}_{}", random, choice, call);
}

Json logprobs_json(bool wanted, Json items) {
  return wanted ? Json{{"content", std::move(items)}, {"refusal", nullptr}} : Json(nullptr);
}

std::string finish_reason_of(AnswerEnd end, bool has_call) {
  if (end == AnswerEnd::length) {
    return "length";
  }
  return has_call ? "tool_calls" : "stop";
}

std::string_view name_of(MediumReuse reuse) {
  switch (reuse) {
    case MediumReuse::features:
      return "features";
    case MediumReuse::prefix:
      return "prefix";
    case MediumReuse::none:
      break;
  }
  return "none";
}

/// The answer's own object with what the engine told and the choices name, where details were
/// asked for.
template <typename Choice>
void add_whimbrel(
    Json& json,
    const ChatAnswerInfo& info,
    const AnswerTally& tally,
    const std::vector<Choice>& choices
) {
  if (info.whimbrel.is_null()) {
    return;
  }
  Json details = info.whimbrel;
  details["not_cached"] = tally.not_cached.empty() ? Json(nullptr) : Json(tally.not_cached);
  for (size_t i = 0; i < tally.media.size(); ++i) {
    details["media"].at(i)["cache"] = name_of(tally.media[i]);
  }
  details["boxes"] = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    for (Json& box : boxes_json(static_cast<int>(i), choices[i].content, info.boxes)) {
      details["boxes"].push_back(std::move(box));
    }
  }
  json["whimbrel"] = std::move(details);
}

}  // namespace

ChatAnswer::ChatAnswer(ChatAnswerInfo info, TokenBytes token_bytes)
    : info_(std::move(info)), token_bytes_(std::move(token_bytes)) {
  for (int i = 0; i < info_.choices; ++i) {
    choices_.emplace_back(info_.form);
  }
  tally_.image_tokens = info_.image_tokens;
}

void ChatAnswer::push(const Event& event) {
  if (const auto* admitted = std::get_if<Admitted>(&event)) {
    tally_.add(*admitted);
  } else if (const auto* token = std::get_if<AnswerToken>(&event)) {
    Choice& choice = choices_.at(static_cast<size_t>(token->choice));
    if (info_.logprobs) {
      choice.logprobs.push_back(logprob_item(*token, token_bytes_));
    }
    tally_.reasoning_tokens += choice.parts.in_reasoning() ? 1 : 0;
    take(choice, choice.parts.push(token->text));
  } else if (const auto* finished = std::get_if<AnswerFinished>(&event)) {
    Choice& choice = choices_.at(static_cast<size_t>(finished->choice));
    tally_.add(*finished);
    take(choice, choice.parts.push(finished->text));
    take(choice, choice.parts.finish());
    choice.finish_reason = finish_reason_of(finished->reason, !choice.calls.empty());
  } else if (const auto* request = std::get_if<RequestFinished>(&event)) {
    tally_.add(*request);
    ended_ = true;
  } else if (const auto* failed = std::get_if<RequestFailed>(&event)) {
    failure_ = failure_of(*failed);
    ended_ = true;
  }
}

void ChatAnswer::take(Choice& choice, std::vector<AnswerPiece> pieces) {
  for (AnswerPiece& piece : pieces) {
    switch (piece.kind) {
      case AnswerPiece::Kind::reasoning:
        choice.reasoning += piece.text;
        break;
      case AnswerPiece::Kind::content:
        choice.content += piece.text;
        break;
      case AnswerPiece::Kind::call_begun:
        choice.calls.push_back({.index = piece.call, .name = std::move(piece.text)});
        break;
      case AnswerPiece::Kind::call_arguments:
        choice.calls.back().arguments += piece.text;
        break;
      case AnswerPiece::Kind::call_ended:
        break;
      case AnswerPiece::Kind::call_broken:
        std::erase_if(choice.calls, [&](const Call& call) { return call.index == piece.call; });
        choice.content += piece.text;
        break;
    }
  }
}

Json ChatAnswer::message_json(int index) const {
  const Choice& choice = choices_.at(static_cast<size_t>(index));
  Json message = {{"role", "assistant"}, {"content", choice.content}, {"refusal", nullptr}};
  if (!choice.reasoning.empty()) {
    message["reasoning_content"] = choice.reasoning;
    message["reasoning"] = choice.reasoning;
  }
  for (const Call& call : choice.calls) {
    message["tool_calls"].push_back(
        {{"id", call_id(info_, index, call.index)},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}}
    );
  }
  if (choice.content.empty() && !choice.calls.empty()) {
    message["content"] = nullptr;
  }
  return message;
}

Json ChatAnswer::json() const {
  Json json = head_json(info_, "chat.completion");
  json["choices"] = Json::array();
  for (int i = 0; i < info_.choices; ++i) {
    const Choice& choice = choices_.at(static_cast<size_t>(i));
    json["choices"].push_back(
        {{"index", i},
         {"message", message_json(i)},
         {"logprobs", logprobs_json(info_.logprobs, choice.logprobs)},
         {"finish_reason", choice.finish_reason}}
    );
  }
  json["usage"] = usage_json(tally_);
  json["timings"] = timings_json(tally_);
  add_whimbrel(json, info_, tally_, choices_);
  return json;
}

ChatStream::ChatStream(ChatAnswerInfo info, TokenBytes token_bytes)
    : info_(std::move(info)), token_bytes_(std::move(token_bytes)), unfinished_(info_.choices) {
  for (int i = 0; i < info_.choices; ++i) {
    choices_.emplace_back(info_.form);
  }
  tally_.image_tokens = info_.image_tokens;
}

std::string ChatStream::push(const Event& event) {
  std::string frames;
  if (!begun_ && !std::holds_alternative<RequestFailed>(event)) {
    begun_ = true;
    for (int i = 0; i < info_.choices; ++i) {
      frames += chunk(choice_json(i, {{"role", "assistant"}, {"content", ""}}));
    }
  }
  return frames + std::visit([this](const auto& it) { return on(it); }, event);
}

std::string ChatStream::chunk(Json choice) const {
  Json json = head_json(info_, "chat.completion.chunk");
  json["choices"] = Json::array({std::move(choice)});
  if (info_.include_usage) {
    json["usage"] = nullptr;
  }
  return http::sse_data(dump(json));
}

/// With the log probabilities that wait.
Json ChatStream::choice_json(int index, Json delta, Json finish_reason) {
  Json& items = choices_.at(static_cast<size_t>(index)).logprobs;
  const bool has_logprobs = info_.logprobs && !items.empty();
  return {
      {"index", index},
      {"delta", std::move(delta)},
      {"logprobs", logprobs_json(has_logprobs, std::exchange(items, Json::array()))},
      {"finish_reason", std::move(finish_reason)}
  };
}

std::string ChatStream::on(const Admitted& admitted) {
  tally_.add(admitted);
  return {};
}

/// llama-server's `prompt_progress`, in a chunk that adds nothing to the answer.
std::string ChatStream::on(const PromptProgress& progress) {
  if (!info_.return_progress) {
    return {};
  }
  Json json = head_json(info_, "chat.completion.chunk");
  json["choices"] = Json::array({choice_json(0, Json::object())});
  json["prompt_progress"] = {
      {"total", progress.total}, {"cache", tally_.cached_tokens}, {"processed", progress.done}
  };
  return http::sse_data(dump(json));
}

std::string ChatStream::on(const AnswerToken& token) {
  Choice& choice = choices_.at(static_cast<size_t>(token.choice));
  if (info_.logprobs) {
    choice.logprobs.push_back(logprob_item(token, token_bytes_));
  }
  tally_.reasoning_tokens += choice.parts.in_reasoning() ? 1 : 0;
  return piece_chunks(token.choice, choice.parts.push(token.text));
}

std::string ChatStream::on(const AnswerFinished& finished) {
  Choice& choice = choices_.at(static_cast<size_t>(finished.choice));
  tally_.add(finished);
  std::string frames = piece_chunks(finished.choice, choice.parts.push(finished.text));
  frames += piece_chunks(finished.choice, choice.parts.finish());
  const std::string reason = finish_reason_of(finished.reason, choice.has_call);
  Json end = choice_json(finished.choice, Json::object(), reason);
  if (--unfinished_ > 0 || info_.include_usage) {
    return frames + chunk(std::move(end));
  }
  held_choice_ = std::move(end);
  return frames;
}

std::string ChatStream::on(const RequestFinished& finished) {
  ended_ = true;
  tally_.add(finished);
  Json json = head_json(info_, "chat.completion.chunk");
  json["choices"] = Json::array();
  if (info_.include_usage) {
    json["usage"] = usage_json(tally_);
  } else {
    json["choices"].push_back(std::move(held_choice_));
  }
  json["timings"] = timings_json(tally_);
  add_whimbrel(json, info_, tally_, choices_);
  return http::sse_data(dump(json)).append(http::kSseDone);
}

std::string ChatStream::on(const RequestFailed& failed) {
  ended_ = true;
  return http::sse_data(dump(http::error_json(failure_of(failed), http::ErrorShape::openai)));
}

std::string ChatStream::piece_chunks(int index, const std::vector<AnswerPiece>& pieces) {
  std::string frames;
  for (const AnswerPiece& piece : pieces) {
    const Json delta = delta_of(index, piece);
    if (!delta.is_null()) {
      frames += chunk(choice_json(index, delta));
    }
  }
  return frames;
}

/// What a piece adds to the answer; null: nothing.
Json ChatStream::delta_of(int index, const AnswerPiece& piece) {
  switch (piece.kind) {
    case AnswerPiece::Kind::reasoning:
      return {{"reasoning_content", piece.text}, {"reasoning", piece.text}};
    case AnswerPiece::Kind::content:
    case AnswerPiece::Kind::call_broken:
      if (!info_.whimbrel.is_null()) {
        choices_.at(static_cast<size_t>(index)).content += piece.text;
      }
      return {{"content", piece.text}};
    case AnswerPiece::Kind::call_begun:
      return {
          {"tool_calls",
           Json::array(
               {{{"index", piece.call},
                 {"id", call_id(info_, index, piece.call)},
                 {"type", "function"},
                 {"function", {{"name", piece.text}, {"arguments", ""}}}}}
           )}
      };
    case AnswerPiece::Kind::call_arguments:
      return {
          {"tool_calls",
           Json::array({{{"index", piece.call}, {"function", {{"arguments", piece.text}}}}})}
      };
    case AnswerPiece::Kind::call_ended:
      choices_.at(static_cast<size_t>(index)).has_call = true;
      return nullptr;
  }
  return nullptr;
}

}  // namespace whimbrel::wire
