#include "nn/vision_layers.h"

#include <mlx/mlx.h>

#include "nn/vision.h"

namespace whimbrel::nn {

namespace {

int width_of(const ops::Norm& norm) {
  return std::visit([](const auto& kind) { return kind.weight.shape(0); }, norm);
}

}  // namespace

VisionAttention::VisionAttention(
    const WeightLoader& loader,
    ops::Norm norm,
    const std::string& path,
    int64_t hidden_size,
    int num_heads
)
    : num_heads_(num_heads),
      norm_(std::move(norm)),
      qkv_(loader.linear(path + ".qkv", 3 * hidden_size, hidden_size, Bias::present)),
      proj_(loader.linear(path + ".proj", hidden_size, hidden_size, Bias::present)) {}

mx::array VisionAttention::operator()(
    const ops::Ops& ops,
    const mx::array& x,
    const ops::RopeTables& rope,
    std::span<const int> cu_seqlens,
    const std::function<void(const mx::array& piece)>& on_piece
) const {
  const mx::array qkv = ops.norm_linears(ops::prefill_rows(x), norm_, {&qkv_, 1})[0];
  const auto attended = [&](const ops::RowRange& queries) {
    return ops.segment_attention(qkv, num_heads_, rope, cu_seqlens, queries);
  };
  std::vector<ops::RowRange> ranges = {{0, x.shape(0)}};
  if (on_piece) {
    ranges = query_pieces(cu_seqlens, ops.pairs_of_a_pause());
  }
  if (ranges.size() == 1) {
    return ops.linear_residual(ops::prefill_rows(attended(ranges[0])), *proj_, x);
  }
  std::vector<mx::array> pieces;
  for (const ops::RowRange& queries : ranges) {
    pieces.push_back(attended(queries));
    on_piece(pieces.back());
  }
  return ops.linear_residual(ops::prefill_rows(mx::concatenate(pieces, 0)), *proj_, x);
}

GeluMlp::GeluMlp(
    const WeightLoader& loader,
    ops::Norm norm,
    const MlpPaths& paths,
    int64_t hidden_size,
    int64_t intermediate_size,
    ops::Gelu gelu
)
    : norm_(std::move(norm)),
      fc1_(loader.linear(paths.fc1, intermediate_size, hidden_size, Bias::present)),
      fc2_(loader.linear(paths.fc2, hidden_size, intermediate_size, Bias::present)),
      gelu_(gelu) {}

mx::array GeluMlp::operator()(const ops::Ops& ops, const mx::array& x) const {
  const mx::array normed = ops.norm(x, norm_);
  const mx::array hidden = ops.linear_gelu(ops::prefill_rows(normed), *fc1_, gelu_);
  return ops.linear_residual(ops::prefill_rows(hidden), *fc2_, x);
}

PatchMerger::PatchMerger(
    const WeightLoader& loader,
    ops::Norm norm,
    const MlpPaths& paths,
    int64_t merged_width,
    int64_t out_hidden_size
)
    : merged_width_(static_cast<int>(merged_width)),
      norm_width_(width_of(norm)),
      norm_(std::move(norm)),
      fc1_(loader.linear(paths.fc1, merged_width, merged_width, Bias::present)),
      fc2_(loader.linear(paths.fc2, out_hidden_size, merged_width, Bias::present)) {}

mx::array PatchMerger::operator()(const ops::Ops& ops, const mx::array& x) const {
  const mx::array normed = ops.norm(mx::reshape(x, {-1, norm_width_}), norm_);
  const mx::array units = mx::reshape(normed, {-1, merged_width_});
  const mx::array hidden = ops.linear_gelu(ops::prefill_rows(units), *fc1_, ops::Gelu::erf);
  return ops.linear(ops::prefill_rows(hidden), *fc2_);
}

}  // namespace whimbrel::nn
