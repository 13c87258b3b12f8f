#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool.h"
#include "text/tool_format.h"

namespace whimbrel {

class ToolCallParser;  // text/tool_call_parser.h

/// What a stream of text turned out to hold.
struct ToolEvent {
  enum class Kind {
    text,         // text beside the calls
    call_begun,   // text: the tool's name
    arguments,    // text: the next piece of the arguments, a JSON object in all
    call_ended,   // the arguments are whole
    call_broken,  // text: the call as it was written, from its tag on; no more of it comes
  };
  Kind kind = Kind::text;
  int index = 0;          // which call of this answer, from 0; not of text
  std::string text = {};  // UTF-8
};

/// Finds the calls of tools in an answer as it comes. The events are the same however the text is
/// cut, put together where neighbours are of one kind and call. Time is linear in the text, memory
/// what a single call takes. Data only: nothing is evaluated, and names are not looked up.
///
/// - White space that touches a call belongs to its format and is no text.
/// - A tag that no call follows is text. So is, at the end, a call whose name didn't come.
/// - A call that goes wrong behind its name, or is incomplete at the end, is call_broken with all
///   that was written of it. What follows, up to its closing tag, is part of that.
/// - Hermes: a call without "arguments" has the arguments {}.
/// - XML: the tool's schema says what a parameter's text is. Text stays text. For other types it
///   is JSON as written (True, False and None count); where it isn't, it stays text too.
class ToolCallStream {
 public:
  /// With ToolFormat::none everything is text.
  ToolCallStream(ToolFormat format, std::vector<Tool> tools);
  ToolCallStream(ToolCallStream&&) noexcept;
  ToolCallStream& operator=(ToolCallStream&&) noexcept;
  ~ToolCallStream();

  /// What is certain behind this piece. No part of a tag or of a call is ever passed on as text
  /// before it is certain to be none.
  std::vector<ToolEvent> push(std::string_view piece);

  /// What was held back, when the text ends. The stream takes no more.
  std::vector<ToolEvent> finish();

 private:
  enum class Mode { text, call, broken };

  void push_text(char c);
  void push_call(char c);
  void push_broken(char c);
  void open_call();
  void reopen_as_text();
  void end_call();
  void emit(ToolEvent::Kind kind, std::string_view text);
  void emit_new_events_of_call();

  ToolFormat format_;
  std::shared_ptr<const std::vector<Tool>> tools_;  // the parser looks into it
  std::vector<ToolEvent> events_;                   // of this push
  Mode mode_ = Mode::text;
  std::string space_;                       // held white space in front of a tag
  size_t tag_ = 0;                          // bytes of a tag that came
  bool behind_call_ = false;                // nothing but white space since the last call
  std::string written_;                     // the open call, from its tag on
  std::unique_ptr<ToolCallParser> parser_;  // of the open call
  bool is_begun_ = false;                   // call_begun was given out
  int calls_ = 0;
};

}  // namespace whimbrel
