#include "engine/verify_layers.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "engine/verify_tolerance.h"

namespace whimbrel::verify {

namespace {

mx::array rows_at(const mx::array& all, int position, int rows) {
  const mx::Shape start{position, 0};
  const mx::Shape stop{position + rows, all.shape(1)};
  return mx::slice(all, start, stop);
}

/// By how much the last chosen expert leads the first one left out.
float lead_of_chosen(std::span<const float> logits, int per_token) {
  std::vector<float> sorted(logits.begin(), logits.end());
  const auto first_left_out = sorted.begin() + per_token;
  std::partial_sort(sorted.begin(), first_left_out + 1, sorted.end(), std::greater());
  return *(first_left_out - 1) - *first_left_out;
}

bool is_near_tie(
    std::span<const float> found, std::span<const float> expected, int per_token, double unit
) {
  if (static_cast<size_t>(per_token) == expected.size()) {
    return false;
  }
  double apart = 0;
  double scale = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    apart = std::max<double>(apart, std::abs(found[i] - expected[i]));
    scale = std::max<double>(scale, std::abs(expected[i]));
  }
  // One of the two experts may have come nearer by this much, and so may the other.
  return lead_of_chosen(expected, per_token) <= 2 * (apart + unit * scale);
}

/// Rows whose choice of experts was not nearly tied.
std::vector<int32_t> clear_rows(
    const mx::array& found, const mx::array& expected, int experts_per_token
) {
  const std::vector<float> here = to_floats(found);
  const std::vector<float> there = to_floats(expected);
  const auto experts = static_cast<size_t>(expected.shape(1));
  const double unit = unit_of(expected.dtype());
  std::vector<int32_t> clear;
  for (size_t row = 0; row * experts < there.size(); ++row) {
    const auto of_row = [row, experts](const std::vector<float>& logits) {
      return std::span(logits).subspan(row * experts, experts);
    };
    if (!is_near_tie(of_row(here), of_row(there), experts_per_token, unit)) {
      clear.push_back(static_cast<int32_t>(row));
    }
  }
  return clear;
}

/// The router's logits of a layer with experts, null for another layer.
const Stage* router_of(const std::vector<Stage>& routers, const std::string& layer) {
  const auto router = std::ranges::find(routers, layer + ".mlp.gate", &Stage::name);
  return router == routers.end() ? nullptr : &*router;
}

LayerDifference named(const Difference& found, const std::string& stage, int position) {
  LayerDifference result{.largest = found, .stage = stage};
  result.largest.row += position;
  return result;
}

/// Of a layer behind its experts.
LayerDifference difference_where_clear(
    const Stage& found, const mx::array& expected, const std::vector<int32_t>& clear, int position
) {
  LayerDifference result;
  if (!clear.empty()) {
    const mx::array rows(clear.begin(), {static_cast<int>(clear.size())});
    Difference of_clear = difference(mx::take(found.output, rows, 0), mx::take(expected, rows, 0));
    of_clear.row = clear[static_cast<size_t>(of_clear.row)];
    result = named(of_clear, found.name, position);
  }
  result.near_ties = found.output.shape(0) - static_cast<int>(clear.size());
  return result;
}

}  // namespace

void LayerDifference::add(const LayerDifference& next) {
  if (is_larger(next.largest.relative, largest.relative)) {
    largest = next.largest;
    stage = next.stage;
  }
  near_ties += next.near_ties;
}

LayerDifference layer_difference(
    const DecoderStages& found, const Run& whole, int position, int experts_per_token
) {
  LayerDifference result;
  for (size_t i = 0; i < found.outputs.size(); ++i) {
    const Stage& stage = found.outputs[i];
    const int rows = stage.output.shape(0);
    const mx::array expected = rows_at(whole.decoder[i].output, position, rows);
    const Stage* const router = router_of(found.routers, stage.name);
    if (router == nullptr) {
      result.add(named(difference(stage.output, expected), stage.name, position));
      continue;
    }
    const mx::array logits = rows_at(router_of(whole.routers, stage.name)->output, position, rows);
    result.add(named(difference(router->output, logits), router->name, position));
    const std::vector<int32_t> clear = clear_rows(router->output, logits, experts_per_token);
    result.add(difference_where_clear(stage, expected, clear, position));
  }
  return result;
}

}  // namespace whimbrel::verify
