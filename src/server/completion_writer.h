#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/answer_tally.h"
#include "server/token_text.h"

namespace whimbrel::wire {

/// What the answers to one text completion say beside what the engine tells.
struct CompletionInfo {
  std::string id = {};  // `cmpl-…`
  int64_t created = 0;  // seconds since 1970
  std::string model = {};
  std::string fingerprint = {};
  int prompts = 1;  // each is a request of its own to the engine
  int choices = 1;  // of each prompt: choice c of prompt p has the index p * choices + c
  std::vector<std::string> echo = {};  // each prompt's text, where answers begin with it
  std::optional<int> logprobs = {};
  bool include_usage = false;  // of a stream
};

/// The log probabilities of one choice: tokens, token_logprobs, top_logprobs and text_offset.
/// Offsets count characters from the beginning of the choice's text; a character that several
/// tokens share counts with its first.
class CompletionLogprobs {
 public:
  CompletionLogprobs(int first_offset, bool has_top) : offset_(first_offset), has_top_(has_top) {}

  void add(const AnswerToken& token, const TokenBytes& token_bytes);

  bool empty() const { return tokens_.empty(); }

  /// What came since the last call.
  Json take();

 private:
  int offset_;
  bool has_top_;
  Json tokens_ = Json::array();
  Json logprobs_ = Json::array();
  Json top_ = Json::array();
  Json offsets_ = Json::array();
};

/// Makes one `text_completion` out of the events of its prompts' requests.
class CompletionAnswer {
 public:
  CompletionAnswer(CompletionInfo info, TokenBytes token_bytes);

  /// An event of the request of that prompt, from 0.
  void push(int prompt, const Event& event);

  /// The last event of every prompt came, or one of them failed: the others are then of no use.
  bool ended() const { return failure_ || unfinished_ == 0; }

  /// Why there is no answer, where there is none.
  const std::optional<http::ApiError>& failure() const { return failure_; }

  /// The answer, once all events came and there was no failure.
  Json json();

 private:
  struct Choice {
    std::string text = {};
    CompletionLogprobs logprobs;
    std::string finish_reason = {};
  };

  Choice& choice_of(int prompt, int choice);

  CompletionInfo info_;
  TokenBytes token_bytes_;
  std::vector<Choice> choices_;
  AnswerTally tally_;
  int unfinished_ = 0;
  std::optional<http::ApiError> failure_;
};

/// Makes the frames of a streamed text completion. The pieces of a choice add up to
/// CompletionAnswer's. A failure is a frame with the error and the end: no `[DONE]` follows.
class CompletionStream {
 public:
  CompletionStream(CompletionInfo info, TokenBytes token_bytes);

  /// Whole frames, perhaps none; of an event of the request of that prompt, from 0.
  std::string push(int prompt, const Event& event);

  /// The last event of every prompt came, or one of them failed: the others are then of no use.
  bool ended() const { return ended_; }

 private:
  std::string chunk(int index, std::string_view text, Json finish_reason = nullptr);
  std::string last_frames();

  CompletionInfo info_;
  TokenBytes token_bytes_;
  std::vector<CompletionLogprobs> logprobs_;
  AnswerTally tally_;
  bool begun_ = false;
  bool ended_ = false;
  int unfinished_ = 0;
};

}  // namespace whimbrel::wire
