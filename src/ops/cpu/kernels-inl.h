// The kernels of one instruction set, put together. Its file in simd/ is included before this one.

#include "ops/cpu/kernels.h"
//
#include "ops/cpu/kernel/unroll-inl.h"
//
#include "ops/cpu/kernel/math-inl.h"
//
#include "ops/cpu/kernel/codes-inl.h"
#include "ops/cpu/kernel/floats-inl.h"
#include "ops/cpu/kernel/rows-inl.h"
//
#include "ops/cpu/kernel/codes_int8-inl.h"
//
#include "ops/cpu/kernel/across-inl.h"
#include "ops/cpu/kernel/finish-inl.h"
#include "ops/cpu/kernel/heads-inl.h"
//
#include "ops/cpu/kernel/attend_keys-inl.h"
#include "ops/cpu/kernel/attend_tile-inl.h"

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

constexpr Kernels generic_kernels() {
  Kernels kernels;
  kernels.rms_norm = rms_norm;
  kernels.layer_norm = layer_norm;
  kernels.split_row = split_row;
  kernels.to_bf16 = to_bf16;
  kernels.peaks = peaks;
  kernels.codes_product = codes_product;
  kernels.codes_int8_product = codes_int8_product;
  kernels.int8_row = int8_row;
  kernels.floats_product = floats_product;
  kernels.finish_tile = finish_tile;
  kernels.finish_swiglu = finish_swiglu;
  kernels.prepare_head = prepare_head;
  kernels.store_kv_row = store_kv_row;
  kernels.attend_keys = attend_keys;
  kernels.combine_parts = combine_parts;
  kernels.attend_tile = attend_tile;
  return kernels;
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
