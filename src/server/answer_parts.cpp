#include "server/answer_parts.h"

namespace whimbrel::wire {

namespace {

AnswerPiece::Kind kind_of(ToolEvent::Kind kind) {
  switch (kind) {
    case ToolEvent::Kind::text:
      return AnswerPiece::Kind::content;
    case ToolEvent::Kind::call_begun:
      return AnswerPiece::Kind::call_begun;
    case ToolEvent::Kind::arguments:
      return AnswerPiece::Kind::call_arguments;
    case ToolEvent::Kind::call_ended:
      return AnswerPiece::Kind::call_ended;
    case ToolEvent::Kind::call_broken:
      return AnswerPiece::Kind::call_broken;
  }
  return AnswerPiece::Kind::content;
}

/// Adds a piece, to the last one where that goes on.
void add(std::vector<AnswerPiece>& pieces, AnswerPiece piece) {
  if (piece.text.empty() && piece.kind != AnswerPiece::Kind::call_ended) {
    return;
  }
  const bool goes_on = piece.kind == AnswerPiece::Kind::content ||
                       piece.kind == AnswerPiece::Kind::reasoning ||
                       piece.kind == AnswerPiece::Kind::call_arguments;
  if (goes_on && !pieces.empty() && pieces.back().kind == piece.kind &&
      pieces.back().call == piece.call) {
    pieces.back().text += piece.text;
  } else {
    pieces.push_back(std::move(piece));
  }
}

void add_reasoning(std::vector<AnswerPiece>& pieces, std::string text) {
  add(pieces, {.kind = AnswerPiece::Kind::reasoning, .text = std::move(text)});
}

void add_events(std::vector<AnswerPiece>& pieces, std::vector<ToolEvent> events) {
  for (ToolEvent& event : events) {
    const bool is_text = event.kind == ToolEvent::Kind::text;
    add(pieces,
        {.kind = kind_of(event.kind),
         .call = is_text ? 0 : event.index,
         .text = std::move(event.text)});
  }
}

}  // namespace

AnswerParts::AnswerParts(const AnswerForm& form)
    : reasoning_(form.reasoning_opened),
      calls_(form.tools.empty() ? ToolFormat::none : form.tool_format, form.tools) {}

std::vector<AnswerPiece> AnswerParts::push(std::string_view text) {
  std::vector<AnswerPiece> pieces;
  ReasoningPiece piece = reasoning_.push(text);
  add_reasoning(pieces, std::move(piece.reasoning));
  add_events(pieces, calls_.push(piece.text));
  return pieces;
}

std::vector<AnswerPiece> AnswerParts::finish() {
  std::vector<AnswerPiece> pieces;
  ReasoningPiece piece = reasoning_.finish();
  add_reasoning(pieces, std::move(piece.reasoning));
  add_events(pieces, calls_.push(piece.text));
  add_events(pieces, calls_.finish());
  return pieces;
}

}  // namespace whimbrel::wire
