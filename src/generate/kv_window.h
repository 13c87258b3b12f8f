#pragma once

#include <optional>
#include <vector>

#include "models/prompt.h"

namespace whimbrel {

/// Bounds on a sequence's cache (--max-kv-size, --keep).
struct KVLimit {
  int max_rows = 0;  // 0: no limit
  int keep = 4;      // first tokens of a prompt that are never dropped
};

/// Throws Error(Fault::usage) where no window is left behind the kept tokens.
void require_valid(const KVLimit& limit);

/// Tokens [first, end) of a sequence that the model can no longer see.
struct DroppedTokens {
  int first;
  int end;
};

/// Decides which tokens a bounded cache holds: the prompt's first ones and the most recent ones. A
/// picture or video is dropped whole or not at all, and is held whole while its tokens arrive.
/// Counts tokens only; what it decides is done to a KVCache by whoever owns both.
class KVWindow {
 public:
  /// Throws Error(Fault::input) where a picture has more tokens than the window has room for, and
  /// as require_valid does.
  KVWindow(const KVLimit& limit, const Prompt& prompt);

  /// What to do before the next forward.
  struct Step {
    std::optional<DroppedTokens> drop;  // tokens; they lie from row `keep()` on
    int end;                            // the forward takes tokens up to this one
  };

  /// Makes room for tokens from `next` on, of which `next` are in the cache, to at most `wanted`:
  /// what fits; and in a full window at most half of it and 256 tokens, more only where a picture
  /// would be cut.
  Step make_room(int next, int wanted);

  /// Tokens at the front that stay, and so their rows.
  int keep() const { return keep_; }

  /// All that was dropped so far, one range: [keep(), where the window begins).
  std::optional<DroppedTokens> dropped() const;

 private:
  int capacity() const { return limit_.max_rows - keep_; }
  int room(int next) const;
  const MediaSpan* span_around(int token) const;
  int begin_outside_media(int begin) const;

  KVLimit limit_;
  const Prompt& prompt_;
  int keep_ = 0;
  int begin_ = 0;  // first token of the window
};

}  // namespace whimbrel
