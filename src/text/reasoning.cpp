#include "text/reasoning.h"

#include <utility>

namespace whimbrel {

namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kWhiteSpace = " \n\r\t";

bool is_space(char c) {
  return kWhiteSpace.find(c) != std::string_view::npos;
}

}  // namespace

bool opens_reasoning(std::string_view prompt) {
  return prompt.substr(0, prompt.find_last_not_of(kWhiteSpace) + 1).ends_with(kOpen);
}

ReasoningStream::ReasoningStream(bool opened) : state_(opened ? State::reasoning : State::begin) {}

ReasoningPiece ReasoningStream::push(std::string_view piece) {
  for (size_t i = 0; i < piece.size(); ++i) {
    switch (state_) {
      case State::begin:
        push_begin(piece[i]);
        break;
      case State::reasoning:
        push_reasoning(piece[i]);
        break;
      case State::behind:
        push_behind(piece[i]);
        break;
      case State::text:
        piece_.text += piece.substr(i);
        return std::exchange(piece_, {});
    }
  }
  return std::exchange(piece_, {});
}

ReasoningPiece ReasoningStream::finish() {
  const std::string held = std::exchange(space_, {});
  if (state_ == State::begin) {
    piece_.text += held;
    piece_.text += kOpen.substr(0, tag_);
  } else if (state_ == State::reasoning) {
    piece_.reasoning += is_empty_ ? "" : held;
    piece_.reasoning += kClose.substr(0, tag_);
  }
  tag_ = 0;
  return std::exchange(piece_, {});
}

void ReasoningStream::push_begin(char c) {
  if (tag_ == 0 && is_space(c)) {
    space_ += c;
  } else if (c == kOpen[tag_]) {
    if (++tag_ == kOpen.size()) {
      state_ = State::reasoning;
      space_.clear();
      tag_ = 0;
    }
  } else {
    state_ = State::text;
    piece_.text += std::exchange(space_, {});
    piece_.text += kOpen.substr(0, std::exchange(tag_, 0));
    piece_.text += c;
  }
}

/// A tag's first byte is nowhere else in it, so a failed match begins anew at most there.
void ReasoningStream::push_reasoning(char c) {
  if (c == kClose[tag_]) {
    if (++tag_ == kClose.size()) {
      state_ = State::behind;
      space_.clear();
      tag_ = 0;
    }
    return;
  }
  if (tag_ == 0 && is_space(c)) {
    space_ += c;
    return;
  }
  piece_.reasoning += is_empty_ ? "" : space_;
  space_.clear();
  is_empty_ = false;
  if (tag_ > 0) {
    piece_.reasoning += kClose.substr(0, std::exchange(tag_, 0));
    push_reasoning(c);
  } else {
    piece_.reasoning += c;
  }
}

void ReasoningStream::push_behind(char c) {
  if (!is_space(c)) {
    state_ = State::text;
    piece_.text += c;
  }
}

}  // namespace whimbrel
