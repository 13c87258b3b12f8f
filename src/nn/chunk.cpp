#include "nn/chunk.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <stdexcept>

namespace whimbrel::nn {

namespace {

mx::array rows_of(const mx::array& x, int first, int end) {
  const mx::Shape start = {first, 0};
  const mx::Shape stop = {end, x.shape(1)};
  return mx::slice(x, start, stop);
}

/// x with `rows` in place of its rows from `first` on.
mx::array put_rows(const mx::array& x, const mx::array& rows, int first) {
  const mx::Shape start = {first, 0};
  const mx::Shape stop = {first + rows.shape(0), x.shape(1)};
  return mx::slice_update(x, mx::astype(rows, x.dtype()), start, stop);
}

std::vector<int32_t> all_ids(std::span<const Chunk> chunks) {
  std::vector<int32_t> ids;
  for (const Chunk& chunk : chunks) {
    ids.insert(ids.end(), chunk.ids.begin(), chunk.ids.end());
  }
  return ids;
}

}  // namespace

std::vector<mx::array> Features::arrays() const {
  std::vector<mx::array> all = deepstack;
  all.push_back(rows);
  return all;
}

Features Features::slice(int first, int end) const {
  Features part{.rows = rows_of(rows, first, end), .deepstack = {}};
  for (const mx::array& layer : deepstack) {
    part.deepstack.push_back(rows_of(layer, first, end));
  }
  return part;
}

int prefill_rows(std::span<const Chunk> chunks) {
  if (!std::ranges::is_partitioned(chunks, &Chunk::prefill)) {
    throw std::logic_error("[prefill_rows] got a prompt's chunk behind an answer's");
  }
  int rows = 0;
  for (const Chunk& chunk : chunks) {
    rows += chunk.prefill ? chunk.rows() : 0;
  }
  return rows;
}

ops::RopePlan plan_rope(const ops::Ops& ops, const Rope& rope, const Chunk& chunk) {
  if (chunk.axes) {
    return rope.plan(*chunk.axes);
  }
  return ops.rotates_by_tables() ? rope.plan(chunk.offset, chunk.rows()) : rope.plan(chunk.offset);
}

mx::array embed_chunks(
    const ops::Ops& ops, const ops::PackedMatrix& table, std::span<const Chunk> chunks
) {
  const std::vector<int32_t> ids = all_ids(chunks);
  mx::array x = ops.embed(table, mx::array(ids.begin(), {static_cast<int>(ids.size())}));
  int first = 0;
  for (const Chunk& chunk : chunks) {
    for (const FeatureRows& media : chunk.media) {
      x = put_rows(x, media.features.rows, first + media.first);
    }
    first += chunk.rows();
  }
  return x;
}

mx::array add_deepstack(const mx::array& x, std::span<const Chunk> chunks, int layer) {
  mx::array sum = x;
  int first = 0;
  for (const Chunk& chunk : chunks) {
    for (const FeatureRows& media : chunk.media) {
      if (static_cast<size_t>(layer) < media.features.deepstack.size()) {
        const mx::array& deep = media.features.deepstack[static_cast<size_t>(layer)];
        const int at = first + media.first;
        const mx::array here = rows_of(sum, at, at + deep.shape(0));
        sum = put_rows(sum, mx::add(here, mx::astype(deep, x.dtype())), at);
      }
    }
    first += chunk.rows();
  }
  return sum;
}

}  // namespace whimbrel::nn
