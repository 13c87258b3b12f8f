#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/answer_boxes.h"
#include "server/answer_parts.h"
#include "server/answer_tally.h"
#include "server/token_text.h"

namespace whimbrel::wire {

/// What the answers to one chat completion say beside what the engine tells.
struct ChatAnswerInfo {
  std::string id = {};  // `chatcmpl-…`
  int64_t created = 0;  // seconds since 1970
  std::string model = {};
  std::string fingerprint = {};
  int choices = 1;
  AnswerForm form = {};
  bool logprobs = false;
  bool include_usage = false;  // of a stream
  bool return_progress = false;
  int image_tokens = 0;
  Json whimbrel = nullptr;  // the answer's object of that name, where details were asked for
  BoxForm boxes = {};       // in that object
};

/// Makes one `chat.completion` out of a request's events.
///
/// - `content` is null only beside calls. A call that broke is content, as it was written.
/// - finish_reason is `tool_calls` where an answer ended by itself and has a call.
/// - `logprobs` are those of all drawn tokens, also of reasoning and calls.
class ChatAnswer {
 public:
  ChatAnswer(ChatAnswerInfo info, TokenBytes token_bytes);

  void push(const Event& event);

  /// The last event came.
  bool ended() const { return ended_; }

  /// Why there is no answer, where there is none.
  const std::optional<http::ApiError>& failure() const { return failure_; }

  /// The answer, once all events came and there was no failure.
  Json json() const;

 private:
  struct Call {
    int index = 0;
    std::string name = {};
    std::string arguments = {};
  };

  struct Choice {
    explicit Choice(const AnswerForm& form) : parts(form) {}

    AnswerParts parts;
    std::string content = {};
    std::string reasoning = {};
    std::vector<Call> calls = {};
    Json logprobs = Json::array();
    std::string finish_reason = {};
  };

  static void take(Choice& choice, std::vector<AnswerPiece> pieces);
  Json message_json(int index) const;

  ChatAnswerInfo info_;
  TokenBytes token_bytes_;
  std::vector<Choice> choices_;
  AnswerTally tally_;
  bool ended_ = false;
  std::optional<http::ApiError> failure_;
};

/// Makes the frames of a streamed chat completion out of a request's events: for each choice its
/// role, then pieces, then its finish_reason; the usage where it was asked for; `[DONE]`. The
/// pieces of a choice add up to ChatAnswer's. `timings` come with the last chunk, and so do the
/// details. A failure is a frame with the error and the end: no `[DONE]` follows.
///
/// A call is passed on while it comes. Where it then breaks, its text follows as content, and the
/// call stays without end: clients find arguments that are no JSON, and no finish_reason
/// `tool_calls` for its sake.
class ChatStream {
 public:
  ChatStream(ChatAnswerInfo info, TokenBytes token_bytes);

  /// Whole frames, perhaps none.
  std::string push(const Event& event);

  /// The last event came.
  bool ended() const { return ended_; }

 private:
  struct Choice {
    explicit Choice(const AnswerForm& form) : parts(form) {}

    AnswerParts parts;
    std::string content = {};       // where details were asked for: boxes are found at the end
    Json logprobs = Json::array();  // of tokens that no chunk told of yet
    bool has_call = false;
  };

  std::string on(const Admitted& admitted);
  std::string on(const PromptProgress& progress);
  std::string on(const AnswerToken& token);
  std::string on(const AnswerFinished& finished);
  std::string on(const RequestFinished& finished);
  std::string on(const RequestFailed& failed);

  std::string piece_chunks(int index, const std::vector<AnswerPiece>& pieces);
  std::string chunk(Json choice) const;
  Json choice_json(int index, Json delta, Json finish_reason = nullptr);
  Json delta_of(int index, const AnswerPiece& piece);

  ChatAnswerInfo info_;
  TokenBytes token_bytes_;
  std::vector<Choice> choices_;
  AnswerTally tally_;
  bool begun_ = false;
  bool ended_ = false;
  int unfinished_ = 0;
  Json held_choice_ = nullptr;  // the last choice's end: its chunk waits for the timings
};

}  // namespace whimbrel::wire
