#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace whimbrel::ops::cpu {

/// Memory for packed weights: large regions of the system, huge pages asked for, handed out piece
/// by piece and given back all at once. A piece starts at a cache line.
class WeightMemory {
 public:
  std::byte* allocate(size_t bytes);

  /// Handed out so far.
  size_t bytes() const { return bytes_; }

 private:
  class Region;

  std::vector<std::shared_ptr<const Region>> regions_;
  std::byte* free_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;
};

}  // namespace whimbrel::ops::cpu
