#include "engine/prefill_estimate.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/bench_work.h"

namespace whimbrel {

namespace {

// A square matrix that leaves the inner caches, and rows as many as a step of a prompt has.
constexpr int kSide = 1024;
constexpr int kFewRows = 32;
constexpr int kRows = 512;
constexpr int kExpertRows = 16;  // about what one of many experts gets of a step
constexpr int kProducts = 2;     // in one evaluation, so that its own time is lost among them
constexpr int kRuns = 3;
constexpr double kLongRunMs = 100;  // of all rows: the few have to do

/// Multiply-adds a second that any CPU with vectors does many times.
constexpr double kLeastRate = 1e9;

double frame_patches(const Patches& patches) {
  return static_cast<double>(patches.count) / patches.grid_thw[0];
}

double tower_macs(const TowerShape& tower, double patch_macs, const Patches& patches) {
  const double attention = 2.0 * tower.hidden_size * tower.global_blocks * frame_patches(patches);
  return static_cast<double>(patches.count) * (patch_macs + attention);
}

double decoder_macs(const ModelShape& shape, int tokens) {
  const ops::HeadShape& heads = shape.heads;
  const double hidden = shape.hidden_size;
  const double projections = 2.0 * (heads.heads + heads.kv_heads) * heads.head_dim * hidden;
  const double feed_forward = 3.0 * shape.active_intermediate_size * hidden;
  const double seen = (tokens + 1) / 2.0;  // by a token, on average
  const double attention = 2.0 * heads.heads * heads.head_dim * seen;
  return tokens * shape.layers * (projections + feed_forward + attention) +
         hidden * shape.vocab_size;
}

int merged_patches(const MediaSpan& span) {
  return static_cast<int>(span.patches.count / std::max(span.tokens(), 1));
}

ops::Matrix plain_matrix(mx::Dtype dtype) {
  return {.weight = mx::full({kSide, kSide}, 0.5F, dtype)};
}

ops::Matrix packed_matrix(int bits) {
  constexpr int kGroup = 64;
  constexpr uint32_t kCodes = 0x79797979;
  const mx::array halves = mx::full({kSide, kSide / kGroup}, 0.5F, mx::bfloat16);
  return {
      .weight = mx::full({kSide, kSide * bits / 32}, kCodes, mx::uint32),
      .scales = halves,
      .offsets = halves,
      .quantization = ops::Quantization{.bits = bits, .group_size = kGroup},
  };
}

/// A matrix as those of the tensors whose name starts with `prefix` are held on average.
ops::Matrix matrix_like(const Checkpoint& checkpoint, std::string_view prefix) {
  const Checkpoint::Totals totals = checkpoint.totals_under(prefix);
  const double bits = 8.0 * static_cast<double>(totals.bytes) /
                      static_cast<double>(std::max(totals.parameters, uint64_t{1}));
  if (bits > 12) {
    return plain_matrix(bits > 24 ? mx::float32 : mx::bfloat16);
  }
  return packed_matrix(bits < 7 ? 4 : 8);
}

/// `rows` rows of width kSide.
mx::array rows_for(const ops::Ops& ops, int rows) {
  mx::array x = mx::full({rows, kSide}, 0.5F, ops.dtype());
  x.eval();
  return x;
}

/// Multiply-adds a second in products of one matrix.
double product_rate(
    const ops::Ops& ops, const ops::PackedMatrix& matrix, const ops::Activations& x, int products
) {
  const Stopwatch watch;
  std::vector<mx::array> results;
  for (int i = 0; i < products; ++i) {
    results.push_back(ops.linear(x, matrix));
  }
  mx::eval(results);
  return 1.0 * products * x.rows.shape(0) * kSide * kSide / (watch.milliseconds() / 1000);
}

/// The best of some runs, for whatever else the machine does makes single ones slow.
double best_rate(
    const ops::Ops& ops, const ops::PackedMatrix& matrix, const ops::Activations& x, int products
) {
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    best = std::max(best, product_rate(ops, matrix, x, products));
  }
  return best;
}

double measured_rate(const ops::Ops& ops, ops::Matrix matrix) {
  const ops::PackedMatrixPtr packed = ops.pack(std::move(matrix));
  double rate = best_rate(ops, *packed, ops::prefill_rows(rows_for(ops, kFewRows)), 1);
  if (1000.0 * kProducts * kRows * kSide * kSide / rate < kLongRunMs) {
    const ops::Activations many = ops::prefill_rows(rows_for(ops, kRows));
    rate = std::max(rate, best_rate(ops, *packed, many, kProducts));
  }
  return rate;
}

/// Experts take rows without rounding them, as products of answers' rows do, which is slower.
double expert_rate(const ops::Ops& ops, ops::Matrix matrix) {
  const ops::Activations few = ops::decode_rows(rows_for(ops, kExpertRows));
  return best_rate(ops, *ops.pack(std::move(matrix)), few, kProducts);
}

/// 12345 -> "12,345".
std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

/// Two figures are all that an estimate is worth.
double rounded(double seconds) {
  const double unit = std::pow(10, std::floor(std::log10(seconds)) - 1);
  return std::round(seconds / unit) * unit;
}

}  // namespace

PrefillWork prefill_work(
    const ModelShape& shape, const Checkpoint& checkpoint, const Prompt& prompt
) {
  PrefillWork work{
      .decoder_macs = decoder_macs(shape, prompt.tokens()),
      .tokens = prompt.tokens(),
      .media = static_cast<int>(prompt.media.size()),
  };
  if (!shape.vision || prompt.media.empty()) {
    return work;
  }
  const double patch_macs = tower_patch_macs(checkpoint, merged_patches(prompt.media.front()));
  for (const MediaSpan& span : prompt.media) {
    work.tower_macs += tower_macs(*shape.vision, patch_macs, span.patches);
    work.patches += span.patches.count;
  }
  return work;
}

PrefillRates measure_prefill_rates(const ops::Ops& ops, const Checkpoint& checkpoint) {
  const auto rate = [&](std::string_view prefix) {
    return measured_rate(ops, matrix_like(checkpoint, prefix));
  };
  const bool experts = checkpoint.has_under("model.layers.0.mlp.gate.");
  const double decoder =
      experts ? expert_rate(ops, matrix_like(checkpoint, "model.layers.")) : rate("model.layers.");
  return {checkpoint.has_under("visual.") ? rate("visual.blocks.") : decoder, decoder};
}

double prefill_seconds(const PrefillWork& work, const PrefillRates& rates) {
  return work.tower_macs / rates.tower + work.decoder_macs / rates.decoder;
}

bool may_take_long(const PrefillWork& work) {
  return work.macs() / kLeastRate > kLongPrefill;
}

std::string long_prefill_text(const PrefillWork& work, double seconds) {
  std::string media;
  std::string advice = "a shorter prompt takes less";
  if (work.media > 0) {
    media = fmt::format(
        ", {} {} of {} patches",
        work.media,
        work.media == 1 ? "picture or video" : "pictures or videos",
        with_commas(work.patches)
    );
    advice = "smaller pictures take less (--max-pixels)";
  }
  return fmt::format(
      "about {:.0f} s until the first token ({} prompt tokens{}); {}",
      rounded(seconds),
      with_commas(work.tokens),
      media,
      advice
  );
}

}  // namespace whimbrel
