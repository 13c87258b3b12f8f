// Compiled for AVX-512: no template of the standard library may be used here, or its code for this
// instruction set could be the one that the linker keeps for all.

#include "ops/cpu/probe_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

// Twelve chains hide the latency of an instruction on every core that has it.
#define WHIMBREL_CHAINS(STEP) \
  STEP(a0)                    \
  STEP(a1)                    \
  STEP(a2) STEP(a3) STEP(a4) STEP(a5) STEP(a6) STEP(a7) STEP(a8) STEP(a9) STEP(a10) STEP(a11)
#define WHIMBREL_ZERO(a) __m512i a = x;

namespace whimbrel::ops {

namespace {

constexpr size_t kAhead = 4096;  // bytes that a prefetch runs in front
constexpr uint64_t kChains = 12;

__m512i load(const unsigned char* at) {
  return _mm512_load_si512(at);
}

uint64_t folded(__m512i a, __m512i b, __m512i c, __m512i d) {
  alignas(64) uint64_t lanes[8];
  _mm512_store_si512(lanes, _mm512_xor_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(c, d)));
  uint64_t all = 0;
  for (const uint64_t lane : lanes) {
    all ^= lane;
  }
  return all;
}

void prefetch(const unsigned char* at) {
  _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T0);
}

}  // namespace

uint64_t read_avx512(const unsigned char* data, size_t bytes) {
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  __m512i c = a;
  __m512i d = a;
  for (const unsigned char* at = data; at < data + bytes; at += 256) {
    a = _mm512_xor_si512(a, load(at));
    b = _mm512_xor_si512(b, load(at + 64));
    c = _mm512_xor_si512(c, load(at + 128));
    d = _mm512_xor_si512(d, load(at + 192));
  }
  return folded(a, b, c, d);
}

uint64_t read_avx512_prefetch(const unsigned char* data, size_t bytes) {
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  __m512i c = a;
  __m512i d = a;
  for (const unsigned char* at = data; at < data + bytes; at += 256) {
    prefetch(at + kAhead);
    prefetch(at + kAhead + 64);
    prefetch(at + kAhead + 128);
    prefetch(at + kAhead + 192);
    a = _mm512_xor_si512(a, load(at));
    b = _mm512_xor_si512(b, load(at + 64));
    c = _mm512_xor_si512(c, load(at + 128));
    d = _mm512_xor_si512(d, load(at + 192));
  }
  return folded(a, b, c, d);
}

// Four places at once: more requests in flight where a core's prefetcher follows each of them.
uint64_t read_avx512_streams(const unsigned char* data, size_t bytes) {
  const size_t quarter = bytes / 4;
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  __m512i c = a;
  __m512i d = a;
  for (const unsigned char* at = data; at < data + quarter; at += 64) {
    a = _mm512_xor_si512(a, load(at));
    b = _mm512_xor_si512(b, load(at + quarter));
    c = _mm512_xor_si512(c, load(at + 2 * quarter));
    d = _mm512_xor_si512(d, load(at + 3 * quarter));
  }
  return folded(a, b, c, d);
}

// Eight near stretches side by side, half a kilobyte of each in turn, as the kernels read panels.
uint64_t read_avx512_panels(const unsigned char* data, size_t bytes) {
  constexpr size_t kStretch = 16384;
  constexpr size_t kPanels = 8;
  constexpr size_t kBlock = 512;
  constexpr size_t kPanelAhead = 1024;
  __m512i a = _mm512_setzero_si512();
  __m512i b = a;
  const size_t whole = bytes / (kPanels * kStretch) * kPanels * kStretch;
  for (const unsigned char* area = data; area < data + whole; area += kPanels * kStretch) {
    for (size_t block = 0; block < kStretch; block += kBlock) {
      for (size_t panel = 0; panel < kPanels; ++panel) {
        const unsigned char* at = area + panel * kStretch + block;
        for (size_t line = 0; line < kBlock; line += 128) {
          prefetch(at + kPanelAhead + line);
          prefetch(at + kPanelAhead + line + 64);
          a = _mm512_xor_si512(a, load(at + line));
          b = _mm512_xor_si512(b, load(at + line + 64));
        }
      }
    }
  }
  const __m512i zero = _mm512_setzero_si512();
  return folded(a, b, zero, zero) ^ read_avx512_prefetch(data + whole, bytes - whole);
}

uint64_t mac_avx512_fma(uint64_t rounds) {
  const __m512i x = _mm512_setzero_si512();
  WHIMBREL_CHAINS(WHIMBREL_ZERO)
  for (uint64_t i = 0; i < rounds; ++i) {
#define WHIMBREL_STEP(a) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(a) : "v"(x));
    WHIMBREL_CHAINS(WHIMBREL_STEP)
#undef WHIMBREL_STEP
  }
  return rounds * kChains * 16;
}

uint64_t mac_avx512_vnni(uint64_t rounds) {
  const __m512i x = _mm512_setzero_si512();
  WHIMBREL_CHAINS(WHIMBREL_ZERO)
  for (uint64_t i = 0; i < rounds; ++i) {
#define WHIMBREL_STEP(a) asm volatile("vpdpbusd %1, %1, %0" : "+v"(a) : "v"(x));
    WHIMBREL_CHAINS(WHIMBREL_STEP)
#undef WHIMBREL_STEP
  }
  return rounds * kChains * 64;
}

uint64_t mac_avx512_bf16(uint64_t rounds) {
  const __m512i x = _mm512_setzero_si512();
  WHIMBREL_CHAINS(WHIMBREL_ZERO)
  for (uint64_t i = 0; i < rounds; ++i) {
#define WHIMBREL_STEP(a) asm volatile("vdpbf16ps %1, %1, %0" : "+v"(a) : "v"(x));
    WHIMBREL_CHAINS(WHIMBREL_STEP)
#undef WHIMBREL_STEP
  }
  return rounds * kChains * 32;
}

}  // namespace whimbrel::ops

#endif
