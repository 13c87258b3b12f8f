#include "engine/verify_stages.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace whimbrel::verify {

namespace {

/// The largest |value|; NaN where one is not finite.
float peak(const mx::array& output) {
  const mx::array values = mx::astype(output, mx::float32);
  return mx::all(mx::isfinite(values)).item<bool>() ? mx::max(mx::abs(values)).item<float>()
                                                    : std::nanf("");
}

/// Of all runs: the largest value of each stage, and where the largest of all stands.
class Peaks {
 public:
  void add(const std::string& where, const Stage& stage) {
    const float value = peak(stage.output);
    if (std::isnan(value)) {
      not_finite_ = not_finite_.empty() ? where : not_finite_;
    } else if (value > largest_) {
      largest_ = value;
      where_ = where;
    }
    const auto [entry, is_new] = by_stage_.try_emplace(stage.name, value);
    if (!is_new && !std::isnan(entry->second)) {
      entry->second = std::isnan(value) ? value : std::max(value, entry->second);
    }
  }

  CheckResult result() const {
    const Json figures = {{"largest", largest_}, {"at", where_}, {"peaks", by_stage_}};
    if (!not_finite_.empty()) {
      return failed("finite", fmt::format("got NaN or infinity first at {}", not_finite_), figures);
    }
    return passed("finite", fmt::format("largest value {:.3g}, at {}", largest_, where_), figures);
  }

 private:
  std::map<std::string, float> by_stage_;  // NaN, in JSON null, where a value is not finite
  float largest_ = 0;
  std::string where_;
  std::string not_finite_;  // the first such stage
};

}  // namespace

CheckResult check_finite(std::span<const Run> runs) {
  Peaks peaks;
  for (const Run& run : runs) {
    for_each_stage(run, [&peaks](const std::string& where, const Stage& stage) {
      peaks.add(where, stage);
    });
  }
  return peaks.result();
}

CheckResult check_dtype(std::span<const Run> runs, mx::Dtype activations) {
  std::string other;
  size_t stages = 0;
  for (const Run& run : runs) {
    for_each_stage(run, [&](const std::string& where, const Stage& stage) {
      ++stages;
      if (other.empty() && stage.output.dtype() != activations) {
        other = fmt::format(
            "got {} first at {}, expected {}",
            dtype_text(stage.output.dtype()),
            where,
            dtype_text(activations)
        );
      }
    });
  }
  if (!other.empty()) {
    return failed("dtype", other);
  }
  return passed(
      "dtype",
      fmt::format("{} stages in {}", stages, dtype_text(activations)),
      {{"stages", stages}, {"dtype", dtype_text(activations)}}
  );
}

}  // namespace whimbrel::verify
