// Compiled for AMX: no template of the standard library may be used here.

#include "ops/cpu/probe_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace whimbrel::ops {

namespace {

/// A thread's tile shapes (Intel SDM volume 1, table 18-1): eight tiles of 16 rows by 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr uint64_t kTiles = 4;          // sums; the other four hold operands
constexpr uint64_t kOutputs = 16 * 16;  // of a tile
constexpr uint64_t kRowBytes = 64;

void load_zero_tiles() {
  // In memory from the start: gcc takes the instruction to read eight bytes only, and would leave
  // out writing the others.
  static const TileConfig config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
}

}  // namespace

uint64_t mac_amx_bf16(uint64_t rounds) {
  load_zero_tiles();
  for (uint64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return rounds * kTiles * kOutputs * (kRowBytes / 2);
}

uint64_t mac_amx_int8(uint64_t rounds) {
  load_zero_tiles();
  for (uint64_t i = 0; i < rounds; ++i) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_release();
  return rounds * kTiles * kOutputs * kRowBytes;
}

}  // namespace whimbrel::ops

#endif
