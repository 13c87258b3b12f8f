#include "generate/kv_window.h"

#include <algorithm>

#include "base/error.h"

namespace whimbrel {

namespace {

// Rows that are dropped at a time where the window allows it: dropping moves the rows behind.
constexpr int kDropStep = 256;

/// Tokens of a medium, a video's words between its frames among them.
int extent(const MediaSpan& span) {
  return span.end_token() - span.first_token();
}

}  // namespace

void require_valid(const KVLimit& limit) {
  if (limit.max_rows != 0 && limit.keep >= limit.max_rows) {
    throw Error(
        Fault::usage,
        "--keep",
        "got {}, expected fewer than --max-kv-size {}",
        limit.keep,
        limit.max_rows
    );
  }
}

KVWindow::KVWindow(const KVLimit& limit, const Prompt& prompt) : limit_(limit), prompt_(prompt) {
  require_valid(limit);
  if (limit.max_rows == 0) {
    return;
  }
  keep_ = std::min(limit.keep, prompt.tokens());
  if (const MediaSpan* cut = span_around(keep_)) {
    keep_ = cut->first_token();
  }
  begin_ = keep_;
  for (const MediaSpan& span : prompt.media) {
    if (extent(span) > capacity() && span.end_token() > keep_) {
      throw Error(
          Fault::input,
          span.source,
          "got {} tokens, expected at most the {} that --max-kv-size {} leaves; use a smaller "
          "picture or video, or a larger cache",
          extent(span),
          capacity(),
          limit.max_rows
      );
    }
  }
}

/// The medium that a border before `token` would cut.
const MediaSpan* KVWindow::span_around(int token) const {
  const auto found = std::ranges::find_if(prompt_.media, [token](const MediaSpan& span) {
    return span.first_token() < token && token < span.end_token();
  });
  return found == prompt_.media.end() ? nullptr : &*found;
}

int KVWindow::begin_outside_media(int begin) const {
  const MediaSpan* cut = span_around(begin);
  return cut == nullptr ? begin : cut->end_token();
}

/// Tokens that fit behind those up to `next` without a drop.
int KVWindow::room(int next) const {
  const int in_window = std::max(next - begin_, 0);
  const int kept_to_come = std::max(keep_ - next, 0);
  return kept_to_come + capacity() - in_window;
}

KVWindow::Step KVWindow::make_room(int next, int wanted) {
  if (limit_.max_rows == 0) {
    return {std::nullopt, wanted};
  }
  std::optional<DroppedTokens> drop;
  if (room(next) == 0) {
    // A picture that has begun to arrive stays until it is whole.
    const MediaSpan* arriving = span_around(next);
    const int held = arriving == nullptr ? next : arriving->first_token();
    const int at_once = std::clamp(capacity() / 2, 1, kDropStep);
    const int begin = begin_outside_media(std::min(begin_ + at_once, held));
    drop = DroppedTokens{begin_, begin};
    begin_ = begin;
  }
  return {drop, std::min(wanted, next + room(next))};
}

std::optional<DroppedTokens> KVWindow::dropped() const {
  return begin_ == keep_ ? std::nullopt : std::optional(DroppedTokens{keep_, begin_});
}

}  // namespace whimbrel
