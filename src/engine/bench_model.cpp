#include "engine/bench_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "engine/bench_prompt.h"
#include "engine/memory_estimate.h"
#include "models/published.h"
#include "nn/kv_cache.h"

namespace whimbrel {

namespace {

/// What config.json says of packed weights; of others the dtype with most bytes.
std::string weights_text(const ModelConfig& config, const CheckpointSummary& summary) {
  if (std::ranges::count(summary.dtypes, StoredDtype::u32, &CheckpointSummary::OfDtype::dtype)) {
    const QuantizationTable table(config.root, config.source());
    const std::optional<int> bits = table.find("").value_or(QuantizationConfig{}).bits;
    return bits ? fmt::format("{}bit", *bits) : "packed";
  }
  std::string name(dtype_name(summary.dtypes.front().dtype));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::optional<MediaRules> media_rules(const ModelConfig& config, const Checkpoint& checkpoint) {
  if (config.vision.empty() || !checkpoint.has_under("visual.")) {
    return std::nullopt;
  }
  return find_family(config.model_type).media_rules(config);
}

}  // namespace

BenchModel open_bench_model(const std::filesystem::path& folder) {
  ModelConfig config = read_model_config(folder);
  const Family& family = find_family(config.model_type);
  const ModelShape shape = family.shape(config);
  Checkpoint checkpoint(config);
  const std::optional<MediaRules> media = media_rules(config, checkpoint);
  std::string weights = weights_text(config, checkpoint.summary());
  return {
      .name = std::filesystem::weakly_canonical(folder).filename().string(),
      .weights = std::move(weights),
      .note = "",
      .config = std::move(config),
      .shape = shape,
      .media = media,
      .random = false,
      .checkpoint = std::move(checkpoint),
  };
}

BenchModel make_bench_model(std::string_view dims) {
  const RandomModel random = random_model(dims);
  Checkpoint checkpoint = random.checkpoint();
  const std::optional<MediaRules> media = media_rules(random.config, checkpoint);
  std::string note;
  if (random.kept_layers != random.layers) {
    note = fmt::format(
        "{} of {} layers: {:.3g} times fewer",
        random.kept_layers,
        random.layers,
        static_cast<double>(random.layers) / random.kept_layers
    );
  }
  return {
      .name = random.name,
      .weights = random.weights,
      .note = std::move(note),
      .config = random.config,
      .shape = find_family(random.config.model_type).shape(random.config),
      .media = media,
      .random = true,
      .checkpoint = std::move(checkpoint),
  };
}

Prompt bench_picture(const BenchModel& model, Size size) {
  if (!model.media) {
    throw Error(
        Fault::usage, "--image", "got a picture for a model without vision tower, expected none"
    );
  }
  const ImageProcessor processor =
      model.random ? default_processor(*model.media)
                   : read_image_processor(model.config.folder, model.media->image_bounds);
  return random_picture_prompt(
      random_picture(size, processor), *model.media, model.shape.vocab_size
  );
}

uint64_t bench_memory(
    const BenchModel& model,
    const BenchOptions& options,
    const std::vector<BenchCell>& cells,
    const std::optional<Prompt>& picture,
    const ops::Ops& ops
) {
  const ops::KVFormat format =
      ops::kv_format(options.kv_bits, ops.kv_dtype(), model.shape.heads.head_dim);
  uint64_t caches = 0;
  Prompt longest = picture.value_or(Prompt{});
  for (const BenchCell& cell : cells) {
    const int tokens = cell.depth + std::max(cell.tokens, options.warmup) + 1;
    // One for its depth, and one for each row.
    caches += static_cast<uint64_t>(cell.rows + 1) *
              nn::kv_cache_bytes(model.shape.layers, model.shape.heads, format, tokens);
    longest.ids.resize(std::max(longest.ids.size(), static_cast<size_t>(tokens)));
  }
  MemoryEstimate estimate = estimate_memory(
      model.shape,
      model.checkpoint.summary(),
      ops,
      longest,
      {.prefill_chunk = options.prefill_chunk, .kv_bits = options.kv_bits}
  );
  estimate.kv_cache = caches;
  return estimate.total();
}

}  // namespace whimbrel
