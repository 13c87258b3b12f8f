// Compiled for AVX2, FMA and AVX-VNNI: no template of the standard library may be used here, or its
// code for these instruction sets could be the one that the linker keeps for all.

#include "ops/cpu/probe_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

// Twelve chains hide the latency of an instruction on every core that has it.
#define WHIMBREL_CHAINS(STEP) \
  STEP(a0)                    \
  STEP(a1)                    \
  STEP(a2) STEP(a3) STEP(a4) STEP(a5) STEP(a6) STEP(a7) STEP(a8) STEP(a9) STEP(a10) STEP(a11)

namespace whimbrel::ops {

namespace {

constexpr size_t kAhead = 4096;  // bytes that a prefetch runs in front
constexpr uint64_t kChains = 12;

uint64_t folded(__m256i x) {
  const __m128i half = _mm_xor_si128(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(half)) ^
         static_cast<uint64_t>(_mm_extract_epi64(half, 1));
}

__m256i load(const unsigned char* at) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(at));
}

}  // namespace

uint64_t read_avx2(const unsigned char* data, size_t bytes) {
  __m256i a = _mm256_setzero_si256();
  __m256i b = a;
  __m256i c = a;
  __m256i d = a;
  for (const unsigned char* at = data; at < data + bytes; at += 128) {
    a = _mm256_xor_si256(a, load(at));
    b = _mm256_xor_si256(b, load(at + 32));
    c = _mm256_xor_si256(c, load(at + 64));
    d = _mm256_xor_si256(d, load(at + 96));
  }
  return folded(_mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d)));
}

uint64_t read_avx2_prefetch(const unsigned char* data, size_t bytes) {
  __m256i a = _mm256_setzero_si256();
  __m256i b = a;
  __m256i c = a;
  __m256i d = a;
  for (const unsigned char* at = data; at < data + bytes; at += 128) {
    _mm_prefetch(reinterpret_cast<const char*>(at + kAhead), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(at + kAhead + 64), _MM_HINT_T0);
    a = _mm256_xor_si256(a, load(at));
    b = _mm256_xor_si256(b, load(at + 32));
    c = _mm256_xor_si256(c, load(at + 64));
    d = _mm256_xor_si256(d, load(at + 96));
  }
  return folded(_mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d)));
}

uint64_t mac_avx2_fma(uint64_t rounds) {
  const __m256 x = _mm256_setzero_ps();
#define WHIMBREL_ZERO(a) __m256 a = x;
  WHIMBREL_CHAINS(WHIMBREL_ZERO)
#undef WHIMBREL_ZERO
  for (uint64_t i = 0; i < rounds; ++i) {
#define WHIMBREL_STEP(a) asm volatile("vfmadd231ps %1, %1, %0" : "+x"(a) : "x"(x));
    WHIMBREL_CHAINS(WHIMBREL_STEP)
#undef WHIMBREL_STEP
  }
  return rounds * kChains * 8;
}

uint64_t mac_avx2_maddubs(uint64_t rounds) {
  const __m256i x = _mm256_setzero_si256();
  const __m256i ones = _mm256_set1_epi16(1);
#define WHIMBREL_ZERO(a) __m256i a = x;
  WHIMBREL_CHAINS(WHIMBREL_ZERO)
#undef WHIMBREL_ZERO
  for (uint64_t i = 0; i < rounds; ++i) {
#define WHIMBREL_STEP(a)            \
  {                                 \
    __m256i pairs;                  \
    asm volatile(                   \
        "vpmaddubsw %2, %2, %1\n\t" \
        "vpmaddwd %3, %1, %1\n\t"   \
        "vpaddd %1, %0, %0"         \
        : "+x"(a), "=&x"(pairs)     \
        : "x"(x), "x"(ones)         \
    );                              \
  }
    WHIMBREL_CHAINS(WHIMBREL_STEP)
#undef WHIMBREL_STEP
  }
  return rounds * kChains * 32;
}

uint64_t mac_avxvnni(uint64_t rounds) {
  const __m256i x = _mm256_setzero_si256();
#define WHIMBREL_ZERO(a) __m256i a = x;
  WHIMBREL_CHAINS(WHIMBREL_ZERO)
#undef WHIMBREL_ZERO
  for (uint64_t i = 0; i < rounds; ++i) {
#define WHIMBREL_STEP(a) asm volatile("%{vex%} vpdpbusd %1, %1, %0" : "+x"(a) : "x"(x));
    WHIMBREL_CHAINS(WHIMBREL_STEP)
#undef WHIMBREL_STEP
  }
  return rounds * kChains * 32;
}

}  // namespace whimbrel::ops

#endif
