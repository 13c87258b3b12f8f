#include "models/deepstack_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"
#include "models/config_keys.h"
#include "models/vision_config.h"

namespace whimbrel {

namespace {

int table_side(const ModelConfig& config) {
  const JsonSource source = vision_source(config);
  const int entries = get_size(config.vision, "num_position_embeddings", source);
  const int side = static_cast<int>(std::lround(std::sqrt(entries)));
  if (side * side != entries) {
    throw Error(
        Fault::model,
        source.where,
        "got num_position_embeddings {}, expected the square of a whole number",
        entries
    );
  }
  return side;
}

std::vector<int> deepstack_indexes(const ModelConfig& config, int depth) {
  const JsonSource source = vision_source(config);
  const std::vector<int64_t> stated = get_ints(config.vision, "deepstack_visual_indexes", source);
  const int layers = get_size(config.text, "num_hidden_layers", config.source());
  const bool ascending = std::ranges::adjacent_find(stated, std::greater_equal<>()) == stated.end();
  if (!ascending || (!stated.empty() && stated.back() >= depth) || std::ssize(stated) > layers) {
    throw Error(
        Fault::model,
        source.where,
        "got deepstack_visual_indexes [{}], expected ascending blocks below the depth of {}, at "
        "most one for each of the decoder's {} layers",
        fmt::join(stated, ", "),
        depth,
        layers
    );
  }
  return {stated.begin(), stated.end()};
}

}  // namespace

nn::DeepstackTowerConfig read_deepstack_config(const ModelConfig& config) {
  const JsonSource source = vision_source(config);
  const Json& vision = config.vision;
  const VisionWidths widths{
      .hidden_size = get_size(vision, "hidden_size", source),
      .intermediate_size = get_size(vision, "intermediate_size", source),
      .out_hidden_size = get_size(vision, "out_hidden_size", source),
  };
  const nn::VisionConfig parsed = read_vision_config(config, widths, "gelu_pytorch_tanh");
  return {parsed, table_side(config), deepstack_indexes(config, parsed.depth)};
}

}  // namespace whimbrel
