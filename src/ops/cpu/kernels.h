#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cpu/attention_kernels.h"
#include "ops/cpu/isa.h"

// What a translation unit of one instruction set offers to the rest: plain functions on raw memory.
// These units include nothing of the standard library beyond this header's, for an inline function
// compiled for a wide instruction set could replace its narrow twin in the whole program.

// A function of this header that stayed a function would exist once in the program, compiled for
// whatever instruction set the linker picks.
#define WHIMBREL_KERNEL_INLINE [[gnu::always_inline]] constexpr

namespace whimbrel::ops::cpu {

/// Outputs of a matrix that lie side by side in memory, and lanes of every vector in the kernels.
constexpr int kLanes = 16;

/// Panels that products with codes read side by side. One stretch of memory at a time leaves a core
/// waiting: what it fetches ahead by itself is limited in each, and ends at a page's end.
constexpr int kStreams = 8;

/// Rows of a tile of activations in codes (SplitRows).
constexpr int kTileRows = 8;

/// How numbers of a file are stored.
enum class Float { bf16, f16, f32 };

/// Where a panel of affine codes has what. A panel is 16 outputs of a matrix; it is a row of
/// blocks, one a group of `group_size` inputs. A block: the codes in bit planes, then 16 scales,
/// then 16 offsets. Planes are 8, 4, 2 or 1 bits wide and add up to `bits`, the widest first; it
/// holds the low bits. A plane of b bits is group_size * b / 32 vectors of 64 bytes, vector j: 16
/// lanes (outputs) of 4 bytes. Seen as unpacked vectors v = 0 .. group_size / 4
/// - 1, of which lane n, byte i is the code of output n and input 4 v + i, the plane's vector j
/// holds in its bits [b * t, b * t + b) the plane's bits of unpacked vector j + t * (group_size * b
/// / 32).
struct CodesLayout {
  int bits = 0;        // 2, 3, 4, 5, 6 or 8
  int group_size = 0;  // 32, 64 or 128
  Float scales = Float::bf16;
  int groups = 0;  // in a row of the matrix

  WHIMBREL_KERNEL_INLINE size_t scale_bytes() const { return scales == Float::f32 ? 4 : 2; }
  WHIMBREL_KERNEL_INLINE size_t code_bytes() const {
    return static_cast<size_t>(kLanes) * group_size * bits / 8;
  }
  WHIMBREL_KERNEL_INLINE size_t block_bytes() const {
    return code_bytes() + 2 * kLanes * scale_bytes();
  }
  WHIMBREL_KERNEL_INLINE size_t panel_bytes() const { return groups * block_bytes(); }
};

/// Rows of activations as 16-bit integers, each the sum 256 hi + lo of two bytes: x = scale *
/// integer, one scale a row and group. The products of such integers with codes are exact, so every
/// instruction set and every number of rows gives the same sums.
/// codes [groups][tiles][2 * tile_rows][group_size], the tile's hi rows before its lo rows;
/// scales [groups][tiles * tile_rows]; sums [groups][tiles * tile_rows]: of the group's x.
/// Rows that fill up the last tile are zero.
struct SplitRows {
  int8_t* codes = nullptr;
  float* scales = nullptr;
  float* sums = nullptr;
  int rows = 0;
  int tiles = 0;
  int tile_rows = 0;  // 1, 2, 4 or kTileRows
  int group_size = 0;
  int groups = 0;

  WHIMBREL_KERNEL_INLINE size_t tile_bytes() const { return size_t{2} * tile_rows * group_size; }
  WHIMBREL_KERNEL_INLINE int padded_rows() const { return tiles * tile_rows; }
  WHIMBREL_KERNEL_INLINE size_t code_bytes() const { return groups * tiles * tile_bytes(); }
  WHIMBREL_KERNEL_INLINE int8_t* tile(int group, int index) const {
    return codes + (static_cast<size_t>(group) * tiles + index) * tile_bytes();
  }
  /// A row's hi bytes of a group; its lo bytes stand tile_rows * group_size behind them.
  WHIMBREL_KERNEL_INLINE int8_t* hi(int group, int row) const {
    return tile(group, row / tile_rows) + static_cast<size_t>(row % tile_rows) * group_size;
  }
};

/// out[p][r][n] = sum over k of x[r][k] w[p][n][k], for `panels` panels that follow each other and
/// the rows of `tiles` tiles from `first_tile` on, of which the first `rows` count. Group by group
/// in order, each group's term rounded in the same places on every instruction set.
struct CodesProduct {
  const std::byte* panel = nullptr;  // the first one
  int panels = 0;
  CodesLayout layout = {};
  const SplitRows* x = nullptr;
  int first_tile = 0;
  int tiles = 0;
  int rows = 0;
  float* out = nullptr;  // [panels][tiles * tile_rows][16]
};

/// Rows of a tile of rounded activations (Bf16Rows, Int8Rows).
constexpr int kRoundedTileRows = 16;

/// Inputs of a tile of activations in bfloat16.
constexpr int kBf16TileInputs = 32;

/// Numbers in bfloat16 that hold the sum of a group of rounded activations.
constexpr int kSumsAGroup = 4;

/// Numbers in bfloat16 that hold a row's sums, whole tiles of them.
WHIMBREL_KERNEL_INLINE int sums_of_groups(int groups) {
  const int tile_groups = kBf16TileInputs / kSumsAGroup;
  return (groups + tile_groups - 1) / tile_groups * kBf16TileInputs;
}

/// Rows of activations rounded to bfloat16, for products with codes. Rows that fill up the last
/// tile are zero.
struct Bf16Rows {
  /// [groups * group_size / 32][tiles][16][32].
  uint16_t* numbers = nullptr;
  /// [tiles * 16][sums_width()]: the sum of each group's rounded numbers as h, l, h, l, where h + l
  /// is the sum but for its last bits; zeros behind the last group.
  uint16_t* sums = nullptr;
  int tiles = 0;
  int group_size = 0;
  int groups = 0;

  WHIMBREL_KERNEL_INLINE int width() const { return groups * group_size; }
  WHIMBREL_KERNEL_INLINE int padded_rows() const { return tiles * kRoundedTileRows; }
  WHIMBREL_KERNEL_INLINE int sums_width() const { return sums_of_groups(groups); }
  WHIMBREL_KERNEL_INLINE size_t number_count() const {
    return static_cast<size_t>(padded_rows()) * width();
  }
  WHIMBREL_KERNEL_INLINE size_t sum_count() const {
    return static_cast<size_t>(padded_rows()) * sums_width();
  }
  /// The tile of inputs [32 part, 32 part + 32).
  WHIMBREL_KERNEL_INLINE uint16_t* tile(int part, int index) const {
    constexpr size_t kNumbers = size_t{kRoundedTileRows} * kBf16TileInputs;
    return numbers + (static_cast<size_t>(part) * tiles + index) * kNumbers;
  }
  WHIMBREL_KERNEL_INLINE uint16_t* sums_of(int row) const {
    return sums + static_cast<size_t>(row) * sums_width();
  }
};

/// CodesProduct for rows in bfloat16: codes are exact in it, each group is summed in float32, then
/// scaled. A row's sum does not depend on the others.
struct CodesBf16Product {
  const std::byte* panel = nullptr;  // the first one
  int panels = 0;
  CodesLayout layout = {};
  const Bf16Rows* x = nullptr;
  int first_tile = 0;
  int tiles = 0;
  float* out = nullptr;  // [panels][tiles * 16][16]
};

/// Rows of activations as 8-bit integers in [-127, 127], for products with codes: x = scale *
/// integer, one scale a row and group. Rows that fill up the last tile are zero.
struct Int8Rows {
  /// [groups * group_size / part_inputs()][tiles][16][part_inputs()].
  int8_t* numbers = nullptr;
  /// [groups][padded_rows()].
  float* scales = nullptr;
  /// [groups][padded_rows()]: of the group's scale * integer.
  float* sums = nullptr;
  int tiles = 0;
  int group_size = 0;
  int groups = 0;

  /// Inputs of a tile.
  WHIMBREL_KERNEL_INLINE int part_inputs() const { return group_size < 64 ? group_size : 64; }
  WHIMBREL_KERNEL_INLINE int parts() const { return groups * (group_size / part_inputs()); }
  WHIMBREL_KERNEL_INLINE int padded_rows() const { return tiles * kRoundedTileRows; }
  WHIMBREL_KERNEL_INLINE size_t number_count() const {
    return static_cast<size_t>(padded_rows()) * groups * group_size;
  }
  WHIMBREL_KERNEL_INLINE size_t scale_count() const {
    return static_cast<size_t>(padded_rows()) * groups;
  }
  /// The tile of inputs [part_inputs() * part, part_inputs() * (part + 1)).
  WHIMBREL_KERNEL_INLINE int8_t* tile(int part, int index) const {
    return numbers + (static_cast<size_t>(part) * tiles + index) * kRoundedTileRows * part_inputs();
  }
  WHIMBREL_KERNEL_INLINE float* scales_of(int group) const {
    return scales + static_cast<size_t>(group) * padded_rows();
  }
  WHIMBREL_KERNEL_INLINE float* sums_of(int group) const {
    return sums + static_cast<size_t>(group) * padded_rows();
  }
};

/// CodesProduct for rows of 8-bit integers: the sum over a group is exact, then scaled. A row's sum
/// does not depend on the others.
struct CodesInt8Product {
  const std::byte* panel = nullptr;  // the first one
  int panels = 0;
  CodesLayout layout = {};
  const Int8Rows* x = nullptr;
  int first_tile = 0;
  int tiles = 0;
  float* out = nullptr;  // [panels][tiles * 16][16]
};

/// A panel of plain numbers, 16 outputs: bf16 [width / 2][16][2], so that two inputs of an output
/// lie side by side; f16 and f32 [width][16]. bf16 panels are padded with zeros to a multiple of 32
/// inputs.
struct FloatsLayout {
  Float type = Float::bf16;
  int width = 0;  // inputs, padded

  WHIMBREL_KERNEL_INLINE size_t panel_bytes() const {
    return static_cast<size_t>(kLanes) * width * (type == Float::f32 ? 4 : 2);
  }
};

/// out[p][r][n] = sum over k of x[r][k] w[p][n][k] in float32, k in order: a row's sum does not
/// depend on the others.
struct FloatsProduct {
  const std::byte* panel = nullptr;
  int panels = 0;
  FloatsLayout layout = {};
  const float* x = nullptr;  // [rows][x_stride], zeros from the matrix' own width to the padded one
  size_t x_stride = 0;
  int rows = 0;
  float* out = nullptr;  // [panels][rows][16]
};

/// The same with x rounded to bfloat16, products summed in float32. The faster way for many rows.
struct Bf16Product {
  const std::byte* panel = nullptr;  // bf16
  int panels = 0;
  int width = 0;                // padded
  const uint16_t* x = nullptr;  // [rows][x_stride]
  size_t x_stride = 0;
  int rows = 0;
  float* out = nullptr;  // [panels][rows][16]
};

enum class Activation { none, gelu_erf, gelu_tanh, gelu_quick };

/// out = residual + activation(tile + bias), for `columns` of a panel's 16 outputs.
struct FinishTile {
  const float* tile = nullptr;  // [rows][16]
  int rows = 0;
  int columns = 0;
  const float* bias = nullptr;  // [16] or none
  Activation activation = Activation::none;
  const float* residual = nullptr;  // [rows][stride] at the panel's first column, or none
  size_t residual_stride = 0;
  float* out = nullptr;  // [rows][stride] at the panel's first column
  size_t out_stride = 0;
};

/// out = silu(gate + gate_bias) * (up + up_bias).
struct FinishSwiglu {
  const float* gate = nullptr;  // [rows][16]
  const float* up = nullptr;
  int rows = 0;
  int columns = 0;
  const float* gate_bias = nullptr;  // [16] or none
  const float* up_bias = nullptr;
  float* out = nullptr;
  size_t out_stride = 0;
};

/// Functions of one instruction set.
struct Kernels {
  /// y = x / sqrt(mean(x^2) + eps) * weight.
  void (*rms_norm)(const float* x, const float* weight, float eps, int width, float* y) = nullptr;
  /// y = (x - mean) / sqrt(variance + eps) * weight + bias.
  void (*layer_norm)(
      const float* x, const float* weight, const float* bias, float eps, int width, float* y
  ) = nullptr;
  /// Row `row` of `out` from x [groups * group_size]. A NaN or an infinity makes all outputs NaN.
  void (*split_row)(const float* x, const SplitRows& out, int row) = nullptr;
  /// Rounds to nearest, ties to even.
  void (*to_bf16)(const float* x, size_t count, uint16_t* y) = nullptr;
  /// The largest of each 16 numbers, of what is left at the end; NaN where one is not finite.
  void (*peaks)(const float* x, int count, float* y) = nullptr;

  void (*codes_product)(const CodesProduct&) = nullptr;
  /// None where products of integers are as fast, as is what makes its rows: row `row` of `out`
  /// from x [groups * group_size].
  void (*codes_bf16_product)(const CodesBf16Product&) = nullptr;
  void (*round_row)(const float* x, const Bf16Rows& out, int row) = nullptr;
  /// The lossy way. int8_row makes its rows: row `row` of `out` from x [groups * group_size]. A NaN
  /// or an infinity makes all outputs NaN.
  void (*codes_int8_product)(const CodesInt8Product&) = nullptr;
  void (*int8_row)(const float* x, const Int8Rows& out, int row) = nullptr;
  void (*floats_product)(const FloatsProduct&) = nullptr;
  /// None where float32 products are as fast.
  void (*bf16_product)(const Bf16Product&) = nullptr;

  void (*finish_tile)(const FinishTile&) = nullptr;
  void (*finish_swiglu)(const FinishSwiglu&) = nullptr;

  void (*prepare_head)(const PrepareHead&) = nullptr;
  void (*store_kv_row)(const StoreKVRow&) = nullptr;
  void (*attend_keys)(const AttendKeys&) = nullptr;
  void (*combine_parts)(const CombineParts&) = nullptr;
  void (*attend_tile)(const AttendTile&) = nullptr;

  /// Queries that a tile of attention likes best.
  int tile_queries = 128;

  /// Panels that codes_product and bf16_product like best at once for many rows.
  int product_panels = 1;

  /// Rows from which codes_product is faster with whole tiles of kTileRows than with smaller ones.
  int fewest_tile_rows = 5;
};

/// The kernels for an instruction set that this program was built with.
const Kernels& kernels_for(Isa isa);

}  // namespace whimbrel::ops::cpu
