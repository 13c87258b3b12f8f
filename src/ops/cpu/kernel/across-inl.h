// Across the lanes of 16 vectors, by way of memory: for instruction sets whose file in simd/ has
// nothing better and does not define WHIMBREL_SIMD_ACROSS.

#if !defined(WHIMBREL_SIMD_ACROSS)

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

/// Lane j of x[i] changes places with lane i of x[j].
inline void transpose(F32* x) {
  float rows[kLanes][kLanes];
  for (int i = 0; i < kLanes; ++i) {
    store(rows[i], x[i]);
  }
  for (int i = 0; i < kLanes; ++i) {
    float column[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      column[j] = rows[j][i];
    }
    x[i] = load(column);
  }
}

/// Lane i is the sum of all lanes of x[i].
inline F32 sums_of(const F32* x) {
  float sums[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    sums[i] = sum(x[i]);
  }
  return load(sums);
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE

#endif
