#pragma once

#include <cstdint>

namespace whimbrel::ops {

/// Sizes that decide how much memory the operations of a layer hold at once.
struct LayerRows {
  uint64_t rows = 0;
  uint64_t columns = 0;  // keys that a row sees
  uint64_t heads = 0;
  uint64_t hidden = 0;        // width of the residual stream
  uint64_t attention = 0;     // heads * head_dim
  uint64_t feed_forward = 0;  // columns that a row goes through
  uint64_t input = 0;         // width of the rows that came from the host
};

/// Weights as a checkpoint holds them.
struct StoredWeights {
  uint64_t bytes = 0;
  uint64_t parameters = 0;
};

}  // namespace whimbrel::ops
