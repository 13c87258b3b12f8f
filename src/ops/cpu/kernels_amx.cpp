#define WHIMBREL_ISA_NAMESPACE amx
#include "ops/cpu/simd/avx512-inl.h"
//
#include "ops/cpu/kernels-inl.h"
//
#include "ops/cpu/simd/amx-inl.h"
//
#include "ops/cpu/kernel/attend_keys_amx-inl.h"
//
#include "ops/cpu/kernel/attend_tile_amx-inl.h"
//
#include "ops/cpu/kernel/codes_amx-inl.h"
#include "ops/cpu/kernel/floats_amx-inl.h"
//
#include "ops/cpu/kernel/codes_rows_amx-inl.h"
//
#include "ops/cpu/kernel/codes_bf16_amx-inl.h"
#include "ops/cpu/kernel/codes_int8_amx-inl.h"

namespace whimbrel::ops::cpu::amx {

constexpr Kernels tile_kernels() {
  Kernels kernels = generic_kernels();
  kernels.codes_product = codes_product_on_tiles;
  kernels.codes_bf16_product = codes_bf16_product_on_tiles;
  kernels.round_row = round_row;
  kernels.codes_int8_product = tiled_int8_product;
  kernels.bf16_product = bf16_product_on_tiles;
  kernels.product_panels = 2;
  kernels.fewest_tile_rows = 4;
  kernels.attend_keys = tiled_attend_keys;
  kernels.attend_tile = tiled_attend_tile;
  kernels.tile_queries = 512;
  return kernels;
}

extern const Kernels kernel_table;
constinit const Kernels kernel_table = tile_kernels();

}  // namespace whimbrel::ops::cpu::amx
