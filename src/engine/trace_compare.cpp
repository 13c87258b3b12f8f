#include "engine/trace_compare.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr std::array<double, 6> kGaps = {0, 0.5, 1, 2, 5, 10};

[[noreturn]] void refuse(const std::string& text) {
  throw Error(Fault::usage, "compare", "{}", text);
}

template <typename Value>
void require_same(std::string_view what, const Value& reference, const Value& candidate) {
  if (reference != candidate) {
    refuse(fmt::format("got {} {} and {}, expected the same in both", what, reference, candidate));
  }
}

/// Whatever the order of its keys.
bool same_object(const Json& a, const Json& b) {
  return nlohmann::json(a) == nlohmann::json(b);
}

bool same_maker(const TraceHeader& a, const TraceHeader& b) {
  return same_object(a.build, b.build) && a.ops == b.ops && a.dtype == b.dtype &&
         a.width == b.width && a.prefill_int8 == b.prefill_int8;
}

double gap_of(const TraceRow& row) {
  return static_cast<double>(row.top_logits[0]) - row.top_logits[1];
}

GapBucket& bucket_of(std::vector<GapBucket>& buckets, double gap) {
  const auto above =
      std::ranges::find_if(buckets, [gap](const GapBucket& bucket) { return bucket.gap > gap; });
  return *std::prev(above);
}

std::optional<float> logit_of(const TraceRow& row, int32_t id) {
  const auto found = std::ranges::find(row.top_ids, id);
  if (found == row.top_ids.end()) {
    return std::nullopt;
  }
  return row.top_logits[static_cast<size_t>(found - row.top_ids.begin())];
}

std::optional<LogitDifference> larger(
    const std::optional<LogitDifference>& a, const std::optional<LogitDifference>& b
) {
  return !a || (b && b->size() > a->size()) ? b : a;
}

std::optional<LogitDifference> largest_difference(
    const TraceRow& reference, const TraceRow& candidate
) {
  std::optional<LogitDifference> largest;
  for (size_t i = 0; i < reference.top_ids.size(); ++i) {
    const int32_t id = reference.top_ids[i];
    if (const std::optional<float> found = logit_of(candidate, id)) {
      largest =
          larger(largest, LogitDifference{reference.pos, id, reference.top_logits[i], *found});
    }
  }
  return largest;
}

double perplexity(const std::vector<TraceRow>& rows) {
  double total = 0;
  for (const TraceRow& row : rows) {
    total += row.nll;
  }
  return std::exp(total / static_cast<double>(rows.size()));
}

/// Adds one position to the counts.
void count(
    Comparison& comparison, const TraceRow& reference, const TraceRow& candidate, double decided
) {
  const double gap = gap_of(reference);
  const bool disagree = reference.top_ids[0] != candidate.top_ids[0];
  GapBucket& bucket = bucket_of(comparison.buckets, gap);
  bucket.positions += 1;
  bucket.disagreements += disagree ? 1 : 0;
  comparison.disagreements += disagree ? 1 : 0;
  if (gap >= decided) {
    comparison.decided += 1;
    if (disagree) {
      comparison.decided_disagreements.push_back(reference.pos);
    }
  }
}

}  // namespace

double LogitDifference::size() const {
  return std::abs(reference - candidate);
}

void require_comparable(
    const Trace& reference, const Trace& candidate, const CompareOptions& options
) {
  const TraceHeader& a = reference.header;
  const TraceHeader& b = candidate.header;
  require_same("input", a.input, b.input);
  require_same("depth", a.depth, b.depth);
  require_same("positions", a.positions, b.positions);
  for (size_t i = 0; i < reference.rows.size(); ++i) {
    require_same("id", reference.rows[i].id, candidate.rows[i].id);
    require_same("target", reference.rows[i].target, candidate.rows[i].target);
  }
  if (!options.self && same_maker(a, b)) {
    refuse(
        "got two traces of the same build with the same operations, dtype, width and rounding, "
        "expected two different ones; --self compares a build with itself"
    );
  }
}

Comparison compare_traces(const Trace& reference, const Trace& candidate, double decided) {
  Comparison comparison{
      .same_model = reference.header.model == candidate.header.model,
      .positions = reference.header.positions,
      .reference_perplexity = perplexity(reference.rows),
      .candidate_perplexity = perplexity(candidate.rows),
  };
  for (const double gap : kGaps) {
    comparison.buckets.push_back({.gap = gap});
  }
  for (size_t i = 0; i < reference.rows.size(); ++i) {
    count(comparison, reference.rows[i], candidate.rows[i], decided);
    comparison.largest =
        larger(comparison.largest, largest_difference(reference.rows[i], candidate.rows[i]));
  }
  return comparison;
}

void require_agreement(const Comparison& comparison, const CompareOptions& options) {
  const std::vector<int>& wrong = comparison.decided_disagreements;
  if (!wrong.empty()) {
    throw Error(
        Fault::check,
        "compare",
        "got {} of {} decided positions where the best tokens differ, expected none; the first is "
        "position {}",
        wrong.size(),
        comparison.decided,
        wrong.front()
    );
  }
  if (comparison.decided < kLeastDecided) {
    refuse(
        fmt::format(
            "got {} decided positions of {}, expected at least {}; trace more positions, or an "
            "input that the model is surer of",
            comparison.decided,
            comparison.positions,
            kLeastDecided
        )
    );
  }
  if (!comparison.same_model && !options.other_model) {
    refuse(
        "got traces of two different checkpoints, expected one; they agree at every decided "
        "position, and --other-model lets that count"
    );
  }
}

}  // namespace whimbrel
