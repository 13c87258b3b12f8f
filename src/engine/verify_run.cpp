#include "engine/verify_run.h"

#include <fmt/format.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <iterator>

#include "models/prompt_chunk.h"

namespace whimbrel::verify {

namespace {

nn::StageListener append_to(std::vector<Stage>& stages) {
  return [&stages](std::string_view name, const mx::array& output) {
    if (!name.ends_with(".attn")) {  // a part of a block, and how many there are is a backend's
      stages.push_back({std::string(name), output});
    }
  };
}

std::vector<mx::array> arrays_of(std::span<const Stage> stages) {
  std::vector<mx::array> outputs;
  outputs.reserve(stages.size());
  for (const Stage& stage : stages) {
    outputs.push_back(stage.output);
  }
  return outputs;
}

}  // namespace

nn::StageListener DecoderStages::listener() {
  return [this](std::string_view name, const mx::array& output) {
    (name.ends_with(".mlp.gate") ? routers : outputs).push_back({std::string(name), output});
  };
}

std::vector<mx::array> DecoderStages::arrays() const {
  std::vector<mx::array> arrays = arrays_of(outputs);
  std::ranges::copy(arrays_of(routers), std::back_inserter(arrays));
  return arrays;
}

Run run_whole(const Model& model, const Input& input) {
  Run run{.input = &input};
  for (const MediaSpan& span : input.prompt.media) {
    std::vector<Stage>& stages = run.pictures.emplace_back();
    run.features.push_back(model.encode(span.patches, append_to(stages)));
    mx::eval(arrays_of(stages));
  }
  DecoderStages stages;
  nn::KVCache cache = model.make_cache();
  const nn::Chunk whole = prompt_chunk(input.prompt, run.features, 0, input.prompt.tokens());
  const mx::array hidden = model.forward(whole, cache, stages.listener());
  stages.outputs.push_back({"logits", model.logits(hidden)});
  mx::eval(stages.arrays());
  run.decoder = std::move(stages.outputs);
  run.routers = std::move(stages.routers);
  return run;
}

void for_each_stage(
    const Run& run, const std::function<void(const std::string& where, const Stage& stage)>& visit
) {
  for (size_t i = 0; i < run.pictures.size(); ++i) {
    for (const Stage& stage : run.pictures[i]) {
      visit(fmt::format("{} ({}, picture {})", stage.name, run.input->name, i + 1), stage);
    }
  }
  for (const Stage& stage : run.decoder) {
    visit(fmt::format("{} ({})", stage.name, run.input->name), stage);
  }
}

}  // namespace whimbrel::verify
