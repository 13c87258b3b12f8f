#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bench_plan.h"
#include "models/family.h"
#include "models/prompt.h"
#include "ops/ops.h"
#include "weights/checkpoint.h"

namespace whimbrel {

/// What a bench needs of a model before its weights are read: no tokenizer, no template.
struct BenchModel {
  std::string name;     // of the folder, or of the dims
  std::string weights;  // `4bit`, `bf16`, and so on
  std::string note;     // what differs from the published model; empty where nothing does
  ModelConfig config;
  ModelShape shape;
  std::optional<MediaRules> media;  // nothing without a tower
  bool random = false;              // made of dims: there is no folder
  Checkpoint checkpoint;
};

/// From a checkpoint folder. Throws Error(Fault::model).
BenchModel open_bench_model(const std::filesystem::path& folder);

/// Of published dims with random weights (models/published.h).
BenchModel make_bench_model(std::string_view dims);

/// A prompt with a picture of noise. Throws Error(Fault::usage) for a model without tower,
/// Error(Fault::input) for a size that can't be, Error(Fault::model) where a folder holds no
/// processor's config.
Prompt bench_picture(const BenchModel& model, Size size);

/// Bytes that a bench needs at most; the probe's buffer is not among them.
uint64_t bench_memory(
    const BenchModel& model,
    const BenchOptions& options,
    const std::vector<BenchCell>& cells,
    const std::optional<Prompt>& picture,
    const ops::Ops& ops
);

}  // namespace whimbrel
