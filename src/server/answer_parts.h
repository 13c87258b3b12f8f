#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/reasoning.h"
#include "text/tool.h"
#include "text/tool_calls.h"
#include "text/tool_format.h"

namespace whimbrel::wire {

/// How an answer's text is to be read.
struct AnswerForm {
  bool reasoning_opened = false;  // the prompt ended inside an open block (opens_reasoning)
  ToolFormat tool_format = ToolFormat::none;
  std::vector<Tool> tools = {};  // that may be called; without any, everything is text
};

/// A piece of one answer, as an API shows it.
struct AnswerPiece {
  enum class Kind {
    reasoning,
    content,
    call_begun,      // text: the tool's name
    call_arguments,  // text: the next piece of the JSON object
    call_ended,
    call_broken,  // text: the call as it was written. It is content, and the call is none
  };
  Kind kind = Kind::content;
  int call = 0;           // which call of this answer; not of reasoning and content
  std::string text = {};  // UTF-8, never empty but of call_ended
};

/// Parts an answer's text into reasoning, content and calls as it comes. However the text is cut,
/// the pieces of a kind and call add up to the same.
class AnswerParts {
 public:
  explicit AnswerParts(const AnswerForm& form);

  std::vector<AnswerPiece> push(std::string_view text);

  /// What was held back, when the answer ends.
  std::vector<AnswerPiece> finish();

  bool in_reasoning() const { return reasoning_.in_reasoning(); }

 private:
  ReasoningStream reasoning_;
  ToolCallStream calls_;
};

}  // namespace whimbrel::wire
