#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/answer_parts.h"
#include "server/answer_tally.h"

namespace whimbrel::wire {

/// What the answer to one /v1/responses request says beside what the engine tells.
struct ResponseInfo {
  std::string id = {};  // `resp_…`
  int64_t created = 0;  // seconds since 1970
  std::string model = {};
  AnswerForm form = {};
  Json repeated = Json::object();  // ResponsesRequest's
};

/// Makes the answer to a /v1/responses request out of its events: the frames of its stream, and the
/// object, whose items the frames add up to. Items are reasoning, message and function_call, in the
/// order in which they came. A call that broke is an item `incomplete`, and a message with its text
/// follows.
class ResponseWriter {
 public:
  explicit ResponseWriter(ResponseInfo info);

  /// The frames of a stream, perhaps none; of no use where the answer isn't streamed.
  std::string push(const Event& event);

  /// The last event came.
  bool ended() const { return ended_; }

  /// Why there is no answer, where there is none. A stream tells it by itself.
  const std::optional<http::ApiError>& failure() const { return failure_; }

  /// The answer as far as it came.
  Json json() const;

 private:
  std::string on(const Admitted& admitted);
  std::string on(const PromptProgress& progress);
  std::string on(const AnswerToken& token);
  std::string on(const AnswerFinished& finished);
  std::string on(const RequestFinished& finished);
  std::string on(const RequestFailed& failed);

  std::string begin();
  std::string piece_events(const std::vector<AnswerPiece>& pieces);
  std::string piece_event(const AnswerPiece& piece);
  std::string text_event(AnswerPiece::Kind kind, const std::string& text);
  std::string open_item(AnswerPiece::Kind kind, Json item);
  std::string close_item(std::string_view status);
  std::string close_text(const std::string& text);
  std::string event(std::string_view type, const Json& members);
  std::string item_event(std::string_view type, const Json& members);
  std::string item_id(std::string_view prefix) const;

  ResponseInfo info_;
  AnswerParts parts_;
  AnswerTally tally_;
  Json output_ = Json::array();
  std::optional<AnswerPiece::Kind> open_;  // of the last item: reasoning, content or call_begun
  std::string text_ = {};                  // of the open item: text or arguments
  std::string status_ = "in_progress";
  int sequence_ = 0;
  bool begun_ = false;
  bool ended_ = false;
  std::optional<http::ApiError> failure_;
};

}  // namespace whimbrel::wire
