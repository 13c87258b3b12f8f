#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/trace_file.h"

namespace whimbrel {

/// Fewer decided positions than this prove nothing.
inline constexpr int kLeastDecided = 32;

/// How a comparison is to be read.
struct CompareOptions {
  double decided = 2.0;      // least lead of the reference's best logit, in logits
  bool self = false;         // one build may be compared with itself: two runs of one thing
  bool other_model = false;  // two checkpoints may be compared, such as one and its quantised form
};

/// Positions whose gap (the reference's best less its second logit) is at least `gap` and below the
/// next bucket's.
struct GapBucket {
  double gap = 0;
  int positions = 0;
  int disagreements = 0;
};

/// The largest |reference - candidate| among logits that both traces hold for a token.
struct LogitDifference {
  int pos = 0;
  int32_t id = 0;
  double reference = 0;
  double candidate = 0;

  double size() const;
};

/// What two traces of one input say of each other. They disagree where their best tokens differ.
struct Comparison {
  bool same_model = false;
  int positions = 0;
  int disagreements = 0;
  int decided = 0;
  std::vector<int> decided_disagreements = {};  // their positions
  std::vector<GapBucket> buckets = {};          // from 0, .5, 1, 2, 5 and 10 on
  std::optional<LogitDifference> largest = std::nullopt;
  double reference_perplexity = 0;
  double candidate_perplexity = 0;
};

/// Throws Error(Fault::usage) where the traces can't be compared: different inputs, depths or
/// positions, tokens that differ though the inputs should not, and, unless `self`, the same build
/// with the same operations, dtype, width and rounding.
void require_comparable(
    const Trace& reference, const Trace& candidate, const CompareOptions& options
);

/// Compares position by position. The traces have to be comparable.
Comparison compare_traces(const Trace& reference, const Trace& candidate, double decided);

/// The verdict: Error(Fault::check) on any decided disagreement; Error(Fault::usage) where there is
/// none, but that proves nothing: too few decided positions, or another model unless `other_model`.
void require_agreement(const Comparison& comparison, const CompareOptions& options);

}  // namespace whimbrel
