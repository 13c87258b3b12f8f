#include "ops/cpu/probe_kernels.h"

namespace whimbrel::ops {

uint64_t read_plain(const unsigned char* data, size_t bytes) {
  const auto* words = reinterpret_cast<const uint64_t*>(data);
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
  uint64_t d = 0;
  for (size_t i = 0; i < bytes / sizeof(uint64_t); i += 4) {
    a ^= words[i];
    b ^= words[i + 1];
    c ^= words[i + 2];
    d ^= words[i + 3];
  }
  return a ^ b ^ c ^ d;
}

uint64_t mac_plain(uint64_t rounds) {
  constexpr uint64_t kChains = 8;
  volatile float factor = 1.0F;
  volatile float term = 0.0F;
  const float x = factor;
  const float y = term;
  float a = x;
  float b = x;
  float c = x;
  float d = x;
  float e = x;
  float f = x;
  float g = x;
  float h = x;
  for (uint64_t i = 0; i < rounds; ++i) {
    a = a * x + y;
    b = b * x + y;
    c = c * x + y;
    d = d * x + y;
    e = e * x + y;
    f = f * x + y;
    g = g * x + y;
    h = h * x + y;
  }
  term = a + b + c + d + e + f + g + h;
  return rounds * kChains;
}

}  // namespace whimbrel::ops
