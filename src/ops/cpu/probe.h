#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace whimbrel::ops {

/// How fast this machine read memory, and in which way it did so best.
struct ReadBandwidth {
  double gb_s = 0;  // 10^9 bytes a second
  std::string_view pattern = {};
  int threads = 0;
};

/// Measures how fast memory can be read: what a decode step can't be faster than.
class BandwidthProbe {
 public:
  /// Reads a buffer of `bytes`, which should be far larger than all caches; it is there only while
  /// a measurement runs.
  explicit BandwidthProbe(size_t bytes = size_t{1} << 30) : bytes_(bytes) {}

  /// The best pass over the buffer. The first measurement tries each access pattern of this machine
  /// on one thread to one for each core; later ones do again what was best. Throws
  /// Error(Fault::memory) where there is no room.
  ReadBandwidth measure();

  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_;
  ReadBandwidth best_ = {};
};

/// Multiply-adds a second (10^9) of one kind of instruction, operands in registers.
struct ArithmeticPeak {
  std::string_view kind;  // such as `avx512_vnni`
  bool floating = false;  // on float or bfloat16 numbers, else on 8-bit integers
  double one_thread = 0;
  double all_threads = 0;  // one for each core
};

/// The peak of each kind of dot product that this machine has, in the order of probe.cpp.
std::vector<ArithmeticPeak> measure_arithmetic();

/// The fastest kind on floating-point numbers, which computes what models are defined by.
const ArithmeticPeak& fastest_floating(const std::vector<ArithmeticPeak>& peaks);

}  // namespace whimbrel::ops
