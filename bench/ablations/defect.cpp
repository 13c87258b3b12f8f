#include "ablations/defect.h"

#include <array>
#include <stdexcept>

namespace whimbrel::ablations {

namespace {

constexpr std::array<DefectInfo, 5> kDefects = {{
    {Defect::repeated_heads, "repeated_heads", "keys and values copied for each query head"},
    {Defect::mask_at_one_row, "mask_at_one_row", "a mask built and read for one query row"},
    {Defect::rope_tables_each_layer,
     "rope_tables_each_layer",
     "rotation tables made in each layer"},
    {Defect::float32_cache, "float32_cache", "the cache widened to float32"},
    {Defect::copied_cache, "copied_cache", "the whole cache copied at each append"},
}};

/// Of one layer.
uint64_t layer_bytes(Defect defect, const StepShape& step) {
  const auto numbers = [&step](int rows) {
    return uint64_t{2} * static_cast<uint64_t>(step.heads.kv_heads) *
           static_cast<uint64_t>(step.heads.head_dim) * static_cast<uint64_t>(rows);
  };
  const auto size = static_cast<uint64_t>(step.number_bytes);
  const auto group = static_cast<uint64_t>(step.heads.heads / step.heads.kv_heads);
  switch (defect) {
    case Defect::none:
      return 0;
    case Defect::repeated_heads:
      // Read once, written `group` times; attention reads `group` copies in place of one.
      return numbers(step.rows) * size * 2 * group;
    case Defect::mask_at_one_row:
      // Written once, read once a query head.
      return uint64_t{4} * static_cast<uint64_t>(step.rows) *
             (1 + static_cast<uint64_t>(step.heads.heads));
    case Defect::rope_tables_each_layer:
      // Half a head of cosines and of sines, written and read.
      return uint64_t{2} * 2 * 4 * static_cast<uint64_t>(step.heads.head_dim / 2);
    case Defect::float32_cache:
      // Read in float32 and written in the dtype that attention takes.
      return numbers(step.rows) * (4 + size);
    case Defect::copied_cache:
      // Read and written.
      return numbers(step.capacity) * size * 2;
  }
  throw std::logic_error("[extra_bytes] got no such defect");
}

}  // namespace

std::span<const DefectInfo> defects() {
  return kDefects;
}

uint64_t extra_bytes(Defect defect, const StepShape& step) {
  return static_cast<uint64_t>(step.layers) * layer_bytes(defect, step);
}

}  // namespace whimbrel::ablations
