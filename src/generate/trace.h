#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/model.h"
#include "models/prompt.h"

namespace whimbrel {

/// Which positions of a prompt are traced, and how its tokens are fed.
struct TraceOptions {
  int depth = 0;            // tokens in front that are prefilled and not traced
  int positions = 256;      // tokens behind them, one row of the trace each
  int width = 1;            // traced tokens a forward; 1 is the decode path
  int top = 8;              // logits kept a position
  int prefill_chunk = 512;  // untraced tokens a forward, as in generate

  /// Tokens that are fed; the one behind them is only a target.
  int fed() const { return depth + positions; }
};

/// What the model says behind one token of the prompt.
struct TraceRow {
  int pos = 0;         // index of `id` in the prompt
  int32_t id = 0;      // the token that was fed
  int32_t target = 0;  // the one that follows it in the prompt
  double nll = 0;      // -ln of the target's probability, softmax in float64
  std::vector<int32_t> top_ids = {};
  std::vector<float> top_logits = {};  // best first; of equals the lower id first
};

/// What a caller may listen to while a trace is made. Both may be empty.
struct TraceEvents {
  std::function<void(int done, int total)> on_tokens;  // fed so far, of all to feed
  std::function<bool()> cancelled;                     // asked before each forward
};

/// Throws Error(Fault::usage) that names the option and its range.
void require_valid(const TraceOptions& options, int vocab_size);

/// Throws Error(Fault::input) with both numbers where the prompt has too few tokens for the depth
/// and positions, or these are more than the model's context.
void require_trace_room(const Prompt& prompt, const TraceOptions& options, int context);

/// The row of token `pos` from its logits [vocab_size]. Throws Error(Fault::model) where logits are
/// not finite.
TraceRow trace_row(const Prompt& prompt, int pos, std::span<const float> logits, int top);

/// Teacher-forced logits: the prompt's own tokens are fed, whatever the model would choose. Each
/// forward takes the chunk of the prompt that stands there, media features included, so depth may
/// lie inside a picture; at width 1 behind all media it is the chunk of a decode step. Options have
/// to be valid and to fit the prompt. Throws Error(Fault::interrupted) when cancelled.
std::vector<TraceRow> trace(
    const Model& model, const Prompt& prompt, const TraceOptions& options, const TraceEvents& events
);

}  // namespace whimbrel
