#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request.h"
#include "server/answer_parts.h"
#include "server/answer_tally.h"

namespace whimbrel::wire {

/// What the answers to one message say beside what the engine tells.
struct MessageInfo {
  std::string id = {};  // `msg_…`
  std::string model = {};
  AnswerForm form = {};
};

/// Makes one Anthropic `message` out of a request's events. Its content blocks are text, thinking
/// (with an empty signature) and tool_use, in the order in which they came; a call that broke is
/// text, as it was written. Arguments that are no strict JSON, for a key stands twice or a number
/// is too large, are the one field `arguments` of the call's input, as text.
class MessageAnswer {
 public:
  explicit MessageAnswer(MessageInfo info);

  void push(const Event& event);

  /// The last event came.
  bool ended() const { return ended_; }

  /// Why there is no answer, where there is none.
  const std::optional<http::ApiError>& failure() const { return failure_; }

  /// The answer, once all events came and there was no failure.
  Json json() const;

 private:
  struct Block {
    AnswerPiece::Kind kind = AnswerPiece::Kind::content;  // reasoning, content or call_begun
    int call = 0;
    std::string text = {};  // a call's name
    std::string arguments = {};
  };

  void take(std::vector<AnswerPiece> pieces);
  void append(AnswerPiece::Kind kind, const std::string& text);
  Json block_json(const Block& block) const;

  MessageInfo info_;
  AnswerParts parts_;
  std::vector<Block> blocks_;
  AnswerTally tally_;
  std::optional<AnswerFinished> finished_;
  bool ended_ = false;
  std::optional<http::ApiError> failure_;
};

/// Makes the events of a streamed message: message_start and ping; for each content block its
/// start, deltas and stop; message_delta with stop_reason and usage; message_stop. A failure is an
/// error event and the end. A call that breaks ends its block, and its text follows as a block.
class MessageStream {
 public:
  explicit MessageStream(MessageInfo info);

  /// Whole frames, perhaps none.
  std::string push(const Event& event);

  /// The last event came.
  bool ended() const { return ended_; }

 private:
  std::string begin();
  std::string on(const Admitted& admitted);
  std::string on(const PromptProgress& progress);
  std::string on(const AnswerToken& token);
  std::string on(const AnswerFinished& finished);
  std::string on(const RequestFinished& finished);
  std::string on(const RequestFailed& failed);

  std::string piece_events(const std::vector<AnswerPiece>& pieces);
  std::string block_events(const AnswerPiece& piece);
  std::string open_block(AnswerPiece::Kind kind, Json block);
  std::string close_block();
  std::string delta_event(Json delta) const;

  MessageInfo info_;
  AnswerParts parts_;
  AnswerTally tally_;
  std::optional<AnswerPiece::Kind> open_;  // reasoning, content or call_begun
  int block_ = -1;                         // index of the last block
  bool has_call_ = false;
  std::optional<AnswerFinished> finished_;
  bool begun_ = false;
  bool ended_ = false;
};

/// A frame that keeps a connection alive, which clients of this API know beside comments.
std::string ping_event();

/// `{"input_tokens":N}`, the answer of POST /v1/messages/count_tokens.
Json token_count_json(int tokens);

}  // namespace whimbrel::wire
