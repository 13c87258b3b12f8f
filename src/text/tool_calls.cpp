#include "text/tool_calls.h"

#include <algorithm>
#include <utility>

#include "text/tool_call_parser.h"

namespace whimbrel {

namespace {

constexpr std::string_view kOpen = "<tool_call>";
constexpr std::string_view kClose = "</tool_call>";

/// Length of the longest end of `text` that `tag` goes on from.
size_t tag_begun(std::string_view text, std::string_view tag) {
  size_t length = std::min(text.size(), tag.size() - 1);
  while (!text.ends_with(tag.substr(0, length))) {
    --length;
  }
  return length;
}

}  // namespace

ToolCallStream::ToolCallStream(ToolFormat format, std::vector<Tool> tools)
    : format_(format), tools_(std::make_shared<const std::vector<Tool>>(std::move(tools))) {}

ToolCallStream::ToolCallStream(ToolCallStream&&) noexcept = default;
ToolCallStream& ToolCallStream::operator=(ToolCallStream&&) noexcept = default;
ToolCallStream::~ToolCallStream() = default;

std::vector<ToolEvent> ToolCallStream::push(std::string_view piece) {
  if (format_ == ToolFormat::none) {
    emit(ToolEvent::Kind::text, piece);
    return std::exchange(events_, {});
  }
  for (const char c : piece) {
    switch (mode_) {
      case Mode::text:
        push_text(c);
        break;
      case Mode::call:
        push_call(c);
        break;
      case Mode::broken:
        push_broken(c);
        break;
    }
  }
  if (mode_ == Mode::call) {
    emit_new_events_of_call();
  }
  return std::exchange(events_, {});
}

std::vector<ToolEvent> ToolCallStream::finish() {
  if (mode_ == Mode::call && !parser_->has_name()) {
    reopen_as_text();
  }
  if (mode_ != Mode::text) {
    emit(ToolEvent::Kind::call_broken, written_);
  } else if (!behind_call_ || tag_ > 0) {
    emit(ToolEvent::Kind::text, space_);
    emit(ToolEvent::Kind::text, kOpen.substr(0, tag_));
  }
  return std::exchange(events_, {});
}

/// A tag's first byte is nowhere else in it, so a failed match begins anew at most there.
void ToolCallStream::push_text(char c) {
  if (c == kOpen[tag_]) {
    if (++tag_ == kOpen.size()) {
      open_call();
    }
    return;
  }
  if (tag_ > 0) {
    emit(ToolEvent::Kind::text, std::exchange(space_, {}));
    emit(ToolEvent::Kind::text, kOpen.substr(0, std::exchange(tag_, 0)));
    behind_call_ = false;
    push_text(c);
  } else if (is_white_space(c)) {
    space_ += c;
  } else {
    emit(ToolEvent::Kind::text, behind_call_ ? "" : space_);
    emit(ToolEvent::Kind::text, {&c, 1});
    space_.clear();
    behind_call_ = false;
  }
}

void ToolCallStream::push_call(char c) {
  const CallStep step = parser_->push(c);
  if (step == CallStep::wrong && !parser_->has_name()) {
    reopen_as_text();
    push_text(c);
    return;
  }
  if (step == CallStep::wrong) {
    emit_new_events_of_call();
    mode_ = Mode::broken;
    tag_ = tag_begun(written_, kClose);
    push_broken(c);
    return;
  }
  written_ += c;
  if (step == CallStep::ended) {
    emit_new_events_of_call();
    emit(ToolEvent::Kind::call_ended, "");
    end_call();
  }
}

void ToolCallStream::push_broken(char c) {
  written_ += c;
  if (c != kClose[tag_]) {
    tag_ = 0;
  }
  if (c == kClose[tag_] && ++tag_ == kClose.size()) {
    emit(ToolEvent::Kind::call_broken, written_);
    end_call();
  }
}

void ToolCallStream::open_call() {
  tag_ = 0;
  mode_ = Mode::call;
  written_ = kOpen;
  is_begun_ = false;
  parser_ = format_ == ToolFormat::xml ? make_xml_parser(*tools_) : make_hermes_parser();
}

/// What was written is text, but for an end of it that may begin the next call.
void ToolCallStream::reopen_as_text() {
  mode_ = Mode::text;
  emit(ToolEvent::Kind::text, behind_call_ ? "" : space_);
  behind_call_ = false;
  tag_ = tag_begun(written_, kOpen);
  written_.resize(written_.size() - tag_);
  const size_t text_size = written_.find_last_not_of(" \n\r\t") + 1;
  space_ = written_.substr(text_size);
  emit(ToolEvent::Kind::text, written_.substr(0, text_size));
}

void ToolCallStream::end_call() {
  tag_ = 0;
  mode_ = Mode::text;
  space_.clear();
  behind_call_ = true;
  ++calls_;
}

void ToolCallStream::emit_new_events_of_call() {
  if (!parser_->has_name()) {
    return;
  }
  if (!is_begun_) {
    emit(ToolEvent::Kind::call_begun, parser_->name());
    is_begun_ = true;
  }
  emit(ToolEvent::Kind::arguments, parser_->take_arguments());
}

void ToolCallStream::emit(ToolEvent::Kind kind, std::string_view text) {
  const bool is_text = kind == ToolEvent::Kind::text;
  const bool is_piece = is_text || kind == ToolEvent::Kind::arguments;
  if (is_piece && text.empty()) {
    return;
  }
  if (is_piece && !events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
    return;
  }
  events_.push_back({.kind = kind, .index = is_text ? 0 : calls_, .text = std::string(text)});
}

}  // namespace whimbrel
