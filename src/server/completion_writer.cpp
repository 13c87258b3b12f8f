#include "server/completion_writer.h"

#include "server/sse.h"

namespace whimbrel::wire {

namespace {

Json head_json(const CompletionInfo& info) {
  return {
      {"id", info.id},
      {"object", "text_completion"},
      {"created", info.created},
      {"model", info.model},
      {"system_fingerprint", info.fingerprint}
  };
}

std::string_view name_of(AnswerEnd end) {
  return end == AnswerEnd::length ? "length" : "stop";
}

int choices_of(const CompletionInfo& info) {
  return info.prompts * info.choices;
}

std::string_view echo_of(const CompletionInfo& info, int index) {
  const auto prompt = static_cast<size_t>(index / info.choices);
  return prompt < info.echo.size() ? std::string_view(info.echo[prompt]) : std::string_view();
}

CompletionLogprobs logprobs_of(const CompletionInfo& info, int index) {
  return {count_characters(echo_of(info, index)), info.logprobs.value_or(0) > 0};
}

}  // namespace

void CompletionLogprobs::add(const AnswerToken& token, const TokenBytes& token_bytes) {
  const std::string bytes = token_bytes(token.id);
  tokens_.push_back(as_utf8(bytes));
  logprobs_.push_back(finite_logprob(token.logprob.value_or(TokenLogprob{}).logprob));
  Json top = Json::object();
  for (const TokenLogprob& other : token.top_logprobs) {
    top.emplace(as_utf8(token_bytes(other.id)), finite_logprob(other.logprob));
  }
  top_.push_back(std::move(top));
  offsets_.push_back(offset_);
  offset_ += count_characters(bytes);
}

Json CompletionLogprobs::take() {
  Json taken = {
      {"tokens", std::exchange(tokens_, Json::array())},
      {"token_logprobs", std::exchange(logprobs_, Json::array())},
      {"top_logprobs", std::exchange(top_, Json::array())},
      {"text_offset", std::exchange(offsets_, Json::array())}
  };
  if (!has_top_) {
    taken["top_logprobs"] = nullptr;
  }
  return taken;
}

CompletionAnswer::CompletionAnswer(CompletionInfo info, TokenBytes token_bytes)
    : info_(std::move(info)), token_bytes_(std::move(token_bytes)), unfinished_(info_.prompts) {
  for (int i = 0; i < choices_of(info_); ++i) {
    choices_.push_back({.text = std::string(echo_of(info_, i)), .logprobs = logprobs_of(info_, i)});
  }
}

CompletionAnswer::Choice& CompletionAnswer::choice_of(int prompt, int choice) {
  const int index = prompt * info_.choices + choice;
  return choices_.at(static_cast<size_t>(index));
}

void CompletionAnswer::push(int prompt, const Event& event) {
  if (const auto* admitted = std::get_if<Admitted>(&event)) {
    tally_.add(*admitted);
  } else if (const auto* token = std::get_if<AnswerToken>(&event)) {
    Choice& choice = choice_of(prompt, token->choice);
    choice.text += token->text;
    if (info_.logprobs) {
      choice.logprobs.add(*token, token_bytes_);
    }
  } else if (const auto* finished = std::get_if<AnswerFinished>(&event)) {
    Choice& choice = choice_of(prompt, finished->choice);
    choice.text += finished->text;
    choice.finish_reason = name_of(finished->reason);
    tally_.add(*finished);
  } else if (const auto* request = std::get_if<RequestFinished>(&event)) {
    tally_.add(*request);
    --unfinished_;
  } else if (const auto* failed = std::get_if<RequestFailed>(&event)) {
    failure_ = failure_of(*failed);
  }
}

Json CompletionAnswer::json() {
  Json json = head_json(info_);
  json["choices"] = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    json["choices"].push_back(
        {{"index", i},
         {"text", choice.text},
         {"logprobs", info_.logprobs ? choice.logprobs.take() : Json(nullptr)},
         {"finish_reason", choice.finish_reason}}
    );
  }
  json["usage"] = usage_json(tally_);
  json["timings"] = timings_json(tally_);
  return json;
}

CompletionStream::CompletionStream(CompletionInfo info, TokenBytes token_bytes)
    : info_(std::move(info)), token_bytes_(std::move(token_bytes)), unfinished_(info_.prompts) {
  for (int i = 0; i < choices_of(info_); ++i) {
    logprobs_.push_back(logprobs_of(info_, i));
  }
}

/// With the log probabilities that wait.
std::string CompletionStream::chunk(int index, std::string_view text, Json finish_reason) {
  CompletionLogprobs& logprobs = logprobs_.at(static_cast<size_t>(index));
  Json json = head_json(info_);
  json["choices"] = Json::array(
      {{{"index", index},
        {"text", text},
        {"logprobs", logprobs.empty() ? Json(nullptr) : logprobs.take()},
        {"finish_reason", std::move(finish_reason)}}}
  );
  if (info_.include_usage) {
    json["usage"] = nullptr;
  }
  return http::sse_data(dump(json));
}

std::string CompletionStream::last_frames() {
  ended_ = true;
  std::string frames;
  if (info_.include_usage) {
    Json json = head_json(info_);
    json["choices"] = Json::array();
    json["usage"] = usage_json(tally_);
    json["timings"] = timings_json(tally_);
    frames = http::sse_data(dump(json));
  }
  return frames.append(http::kSseDone);
}

std::string CompletionStream::push(int prompt, const Event& event) {
  if (const auto* failed = std::get_if<RequestFailed>(&event)) {
    ended_ = true;
    return http::sse_data(dump(http::error_json(failure_of(*failed), http::ErrorShape::openai)));
  }
  std::string frames;
  for (int i = 0; !begun_ && !info_.echo.empty() && i < choices_of(info_); ++i) {
    frames += chunk(i, echo_of(info_, i));
  }
  begun_ = true;
  if (const auto* admitted = std::get_if<Admitted>(&event)) {
    tally_.add(*admitted);
  } else if (const auto* token = std::get_if<AnswerToken>(&event)) {
    const int index = prompt * info_.choices + token->choice;
    if (info_.logprobs) {
      logprobs_.at(static_cast<size_t>(index)).add(*token, token_bytes_);
    }
    frames += token->text.empty() ? "" : chunk(index, token->text);
  } else if (const auto* finished = std::get_if<AnswerFinished>(&event)) {
    tally_.add(*finished);
    frames +=
        chunk(prompt * info_.choices + finished->choice, finished->text, name_of(finished->reason));
  } else if (const auto* request = std::get_if<RequestFinished>(&event)) {
    tally_.add(*request);
    frames += --unfinished_ == 0 ? last_frames() : "";
  }
  return frames;
}

}  // namespace whimbrel::wire
