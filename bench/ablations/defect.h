#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ops/ops.h"

namespace whimbrel::ablations {

/// Faults of other runtimes that a decode step of this one can't have (docs/faults.md, rows 21,
/// 22).
enum class Defect {
  none,
  repeated_heads,          // keys and values are copied for each query head
  mask_at_one_row,         // a mask is built for the one query row, and read for each query head
  rope_tables_each_layer,  // cosines and sines are made anew in each layer
  float32_cache,           // a rotation that returned float32 widened the cache
  copied_cache,            // the cache is copied before the new row is written
};

struct DefectInfo {
  Defect defect;
  std::string_view name;
  std::string_view what;
};

/// All but `none`.
std::span<const DefectInfo> defects();

/// What the cost of a step depends on.
struct StepShape {
  int layers;
  ops::HeadShape heads;
  int rows;          // of the cache that the step's token sees, its own included
  int capacity;      // rows of a layer's buffer
  int number_bytes;  // of a key's or value's number
};

/// Bytes that a step with the defect reads and writes and one without doesn't, from the sizes
/// alone.
uint64_t extra_bytes(Defect defect, const StepShape& step);

}  // namespace whimbrel::ablations
