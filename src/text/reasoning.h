#pragma once

#include <string>
#include <string_view>

namespace whimbrel {

/// Whether a rendered prompt ends inside an open `<think>`, so that the answer begins with
/// reasoning. Only the template writes a prompt's end.
bool opens_reasoning(std::string_view prompt);

/// A piece of an answer; the reasoning came first.
struct ReasoningPiece {
  std::string reasoning = {};
  std::string text = {};
};

/// Parts the reasoning of an answer, `<think>…</think>` at its beginning, from the rest as it
/// comes. What comes in all doesn't depend on how the text is cut, and no part of a tag is passed
/// on before it is certain to be none. Linear in the text.
///
/// - White space that touches a tag belongs to it.
/// - Without a tag at the beginning everything is text; so are later tags.
/// - Reasoning that is never closed is reasoning to the end.
class ReasoningStream {
 public:
  /// `opened`: the prompt ended inside an open block (opens_reasoning).
  explicit ReasoningStream(bool opened);

  ReasoningPiece push(std::string_view piece);

  /// What was held back, when the text ends.
  ReasoningPiece finish();

  /// Whether the answer is inside its reasoning: a grammar for the answer waits until it isn't.
  bool in_reasoning() const { return state_ == State::reasoning; }

 private:
  enum class State { begin, reasoning, behind, text };

  void push_begin(char c);
  void push_reasoning(char c);
  void push_behind(char c);

  State state_;
  bool is_empty_ = true;  // no reasoning yet
  std::string space_;     // held white space
  size_t tag_ = 0;        // bytes of a tag that came
  ReasoningPiece piece_;  // of this push
};

}  // namespace whimbrel
