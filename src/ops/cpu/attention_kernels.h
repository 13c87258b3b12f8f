#pragma once

#include <cstddef>
#include <cstdint>

// What attention asks of the kernels of one instruction set (kernels.h). Rows of heads in scratch
// memory are padded with zeros to whole vectors.

namespace whimbrel::ops::cpu {

/// Floats of a head's row in scratch memory: head_dim, filled up to whole vectors of 16.
[[gnu::always_inline]] constexpr int padded_dims(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

/// The largest head_dim; all are multiples of 8.
constexpr int kLargestHeadDim = 256;

/// How the rows of keys or values of a head are held.
enum class KVType { bf16, f32, codes };

/// Keys or values of one head: row r starts at data + r * row_bytes. Codes: one byte a number,
/// number = scale * code + offset with bfloat16 scales and offsets [rows][head_dim / group_size].
struct KVHead {
  const std::byte* data = nullptr;
  size_t row_bytes = 0;
  KVType type = KVType::bf16;
  const uint16_t* scales = nullptr;
  const uint16_t* offsets = nullptr;
  int group_size = 0;  // a multiple of 16
};

/// One head of one row made ready for attention: normed where there is a weight, rotated in pairs
/// (i, i + head_dim / 2) where there are angles, then scaled.
struct PrepareHead {
  const float* x = nullptr;       // [head_dim]
  const float* weight = nullptr;  // [head_dim] of an RMS norm, or none
  const float* cos = nullptr;     // [head_dim / 2], or none
  const float* sin = nullptr;
  float* out = nullptr;  // [padded_dims(head_dim)]
  int head_dim = 0;
  float eps = 0;
  float scale = 1;
};

/// A row of keys or values on its way into a cache: rounded to bfloat16 (to nearest, ties to even),
/// or as codes where there is a group size.
struct StoreKVRow {
  const float* x = nullptr;   // [head_dim]
  std::byte* data = nullptr;  // the row's
  uint16_t* scales = nullptr;
  uint16_t* offsets = nullptr;
  int head_dim = 0;
  int group_size = 0;  // 0: bfloat16
};

/// Some heads of one row that share keys and values, over keys [first, end), as far as that goes
/// without the other keys. Every key and value is read once. The result is a function of these
/// queries and keys alone.
struct AttendKeys {
  const float* q = nullptr;  // [queries][padded_dims], scaled by 1 / sqrt(head_dim)
  int queries = 0;
  int head_dim = 0;
  KVHead keys = {};
  KVHead values = {};
  int first = 0;
  int end = 0;
  float* out = nullptr;      // [queries][padded_dims]: sum of exp(score - largest) * value
  float* largest = nullptr;  // [queries]: largest score
  float* weight = nullptr;   // [queries]: sum of exp(score - largest)
};

/// The results of AttendKeys over parts of the keys, in order, as one: sum of values / sum of
/// weights.
struct CombineParts {
  const float* outs = nullptr;     // [parts][queries][padded_dims]
  const float* largest = nullptr;  // [parts][queries]
  const float* weights = nullptr;  // [parts][queries]
  int parts = 0;
  int queries = 0;
  int head_dim = 0;
  float* out = nullptr;  // [queries][head_dim]
};

/// A tile of queries that share keys and values. Query i belongs to row i / group; its row sees the
/// keys below visible + (i / group) * visible_step. Keys are taken in blocks from key 0 on, so that
/// a query's result depends on no other query.
struct AttendTile {
  const float* q = nullptr;  // [queries][padded_dims], scaled by 1 / sqrt(head_dim)
  int queries = 0;
  int group = 1;  // a divisor of queries
  int head_dim = 0;
  KVHead keys = {};
  KVHead values = {};
  int visible = 0;
  int visible_step = 0;      // 0 or 1
  float* out = nullptr;      // query i at out + (i / group) * row_stride + (i % group) * head_dim
  size_t row_stride = 0;     // floats
  float* scratch = nullptr;  // attend_tile_floats(queries, head_dim), aligned to 64 bytes

  [[gnu::always_inline]] constexpr int visible_to(int query) const {
    return visible + query / group * visible_step;
  }
};

/// Keys of a block of AttendTile; with tiles of bfloat16, which like larger ones.
constexpr int kKeyBlock = 64;
constexpr int kTiledKeyBlock = 128;

/// Scratch that a tile needs on any instruction set: a block of keys, one of values, and of each
/// query its numbers, scores, weights, sums, and three more.
[[gnu::always_inline]] constexpr size_t attend_tile_floats(int queries, int head_dim) {
  const size_t dims = static_cast<size_t>(head_dim + 31) / 32 * 32;
  const size_t rows = static_cast<size_t>(queries + 31) / 32 * 32;
  return kTiledKeyBlock * dims + rows * (dims + dims / 2 + kTiledKeyBlock + kTiledKeyBlock / 2 + 3);
}

}  // namespace whimbrel::ops::cpu
