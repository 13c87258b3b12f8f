#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/kv_window.h"
#include "generate/sampler.h"
#include "models/family.h"
#include "models/prompt.h"
#include "text/tokenizer.h"

namespace whimbrel {

struct GenerateOptions {
  SamplingOptions sampling = {};
  int max_tokens = 0;
  std::vector<int32_t> stop_ids = {};   // tokens that end an answer
  std::vector<std::string> stops = {};  // texts that end an answer
  int prefill_chunk = 512;              // prompt tokens a forward
  KVLimit kv_limit = {};
  int kv_bits = 0;  // 8: keys and values in 8 bits; 0: in the activation dtype
};

/// What a caller may listen to while an answer is made. All may be empty.
struct GenerateEvents {
  std::function<void(std::string_view)> on_text;        // the next piece of the answer
  std::function<void(int done, int total)> on_prefill;  // prompt tokens
  std::function<bool()> cancelled;                      // asked before each forward
};

enum class FinishReason { stop, length };

/// Milliseconds.
struct GenerateTimings {
  double tower = 0;
  double prefill = 0;
  double first_token = 0;         // from the start of prefill
  double decode = 0;              // all steps after the first token
  std::vector<double> per_token;  // each of these steps
};

struct Generation {
  std::string text;
  std::vector<int32_t> ids;  // without the end token
  FinishReason finish_reason = FinishReason::length;
  std::optional<DroppedTokens> dropped;  // what a bounded cache no longer held at the end
  GenerateTimings timings;
};

/// Answers a prompt: towers, prefill in chunks, then one token a step. Throws
/// Error(Fault::interrupted) when cancelled.
Generation generate(
    const Model& model,
    const Tokenizer& tokenizer,
    const Prompt& prompt,
    const GenerateOptions& options,
    const GenerateEvents& events
);

}  // namespace whimbrel
