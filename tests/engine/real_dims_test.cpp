// Layers, towers and traces at the sizes of published models, of random weights, against the
// reference operations. Few layers and a small vocabulary; every other size is the published one.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/bench_prompt.h"
#include "engine/trace_compare.h"
#include "engine/verify_layers.h"
#include "engine/verify_run.h"
#include "generate/trace.h"
#include "models/family.h"
#include "models/prompt_chunk.h"
#include "models/published.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "tests/support/exact_ops.h"
#include "tests/support/tolerance.h"

namespace whimbrel::test {
namespace {

constexpr int kVocabulary = 512;
constexpr int kTowerBlocks = 2;
constexpr Size kPicture = {.height = 224, .width = 308};

/// How much of a published model is left.
struct Kept {
  int layers = 1;
  int experts = 128;
  bool tower = true;
};

/// The index in a name such as `visual.blocks.3.norm1.weight`, where it begins so.
std::optional<int> index_behind(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  return std::stoi(std::string(name.substr(prefix.size())));
}

bool is_kept(const RandomTensor& tensor, const Kept& kept) {
  return (kept.tower || !tensor.name.starts_with("visual.")) &&
         index_behind(tensor.name, "model.layers.").value_or(0) < kept.layers &&
         index_behind(tensor.name, "visual.blocks.").value_or(0) < kTowerBlocks &&
         index_behind(tensor.name, "visual.deepstack_merger_list.").value_or(0) < 1;
}

/// A published model with few layers, the second block of its tower with attention to whole frames,
/// the first one handing features to the decoder.
RandomModel reduced(std::string_view dims, const Kept& kept) {
  RandomModel model = random_model(dims);
  Json& text = model.config.text;
  text["num_hidden_layers"] = kept.layers;
  text["vocab_size"] = kVocabulary;
  if (text.contains("num_experts")) {
    text["num_experts"] = kept.experts;
  }
  Json& vision = model.config.vision;
  if (!vision.empty()) {
    vision["depth"] = kTowerBlocks;
    for (const auto& [key, block] :
         {std::pair{"fullatt_block_indexes", 1}, std::pair{"deepstack_visual_indexes", 0}}) {
      if (vision.contains(key)) {
        vision[key] = {block};
      }
    }
    int id = kVocabulary;
    for (const char* key :
         {"image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id"}) {
      model.config.root[key] = --id;
    }
  }
  std::erase_if(model.tensors, [&](const RandomTensor& tensor) { return !is_kept(tensor, kept); });
  for (RandomTensor& tensor : model.tensors) {
    if (tensor.name.starts_with("model.embed_tokens.") || tensor.name.starts_with("lm_head.")) {
      tensor.shape[0] = kVocabulary;
    }
    if (tensor.name.find(".mlp.experts.") != std::string::npos ||
        tensor.name.find(".mlp.gate.") != std::string::npos) {
      tensor.shape[0] = kept.experts;
    }
  }
  return model;
}

/// A reduced model with the operations that compute it.
class Loaded {
 public:
  Loaded(const RandomModel& random, std::unique_ptr<const ops::Ops> ops)
      : ops_(std::move(ops)), model_(load(random)) {}

  const Model& model() const { return model_; }
  mx::Dtype dtype() const { return ops_->dtype(); }

 private:
  Model load(const RandomModel& random) const {
    Checkpoint checkpoint = random.checkpoint();
    const nn::WeightLoader loader(checkpoint, *ops_, [](uint64_t) {});
    Model model = find_family(random.config.model_type).load(random.config, loader);
    checkpoint.require_all_taken();
    return model;
  }

  std::unique_ptr<const ops::Ops> ops_;
  Model model_;
};

std::unique_ptr<const ops::Ops> reference_ops(mx::Dtype dtype = mx::float32) {
  return ops::make_reference_ops(dtype, ops::Arithmetic::float32);
}

/// A picture of noise and a question; only a text where the model sees nothing.
verify::Input make_input(const RandomModel& random) {
  const auto sees = [](const RandomTensor& tensor) { return tensor.name.starts_with("visual."); };
  const Family& family = find_family(random.config.model_type);
  const std::optional<MediaRules> rules = family.media_rules(random.config);
  if (!rules || std::ranges::none_of(random.tensors, sees)) {
    return {"text", random_text(70, kVocabulary, 1)};
  }
  Patches patches = random_picture(kPicture, default_processor(*rules));
  return {"picture", random_picture_prompt(std::move(patches), *rules, kVocabulary)};
}

/// The whole run's rows in another dtype: what a layer is given in place of its own.
mx::array forced_rows(const verify::Run& whole, int layer, int first, int rows, mx::Dtype dtype) {
  const mx::array& all = whole.decoder[static_cast<size_t>(layer) + 1].output;
  const mx::Shape start = {first, 0};
  const mx::Shape stop = {first + rows, all.shape(1)};
  return mx::astype(mx::slice(all, start, stop), dtype);
}

/// How far a model's layers and head lie from the whole run's, each given its rows: many rows at
/// once, then few, then two decode steps.
verify::LayerDifference decoder_difference(const Loaded& loaded, const verify::Run& whole) {
  const Model& model = loaded.model();
  const Prompt& prompt = whole.input->prompt;
  const int tokens = prompt.tokens();
  const int per_token = model.config().moe ? model.config().moe->num_experts_per_tok : 1;
  nn::KVCache cache = model.make_cache();
  verify::LayerDifference found;
  const auto feed = [&](const nn::Chunk& chunk) {
    const int first = cache.length();
    verify::DecoderStages stages;
    const mx::array hidden = model.forward(chunk, cache, stages.listener(), [&](int layer) {
      return forced_rows(whole, layer, first, chunk.rows(), loaded.dtype());
    });
    stages.outputs.push_back({"logits", model.logits(hidden)});
    mx::eval(stages.arrays());
    found.add(verify::layer_difference(stages, whole, first, per_token));
  };
  feed(prompt_chunk(prompt, whole.features, 0, tokens - 8));
  feed(prompt_chunk(prompt, whole.features, tokens - 8, tokens - 2));
  for (int token = tokens - 2; token < tokens; ++token) {
    feed(next_chunk(prompt, token, prompt.ids[static_cast<size_t>(token)]));
  }
  return found;
}

/// The same of a tower's stages, each behind those before it.
double tower_difference(const Loaded& loaded, const verify::Run& whole) {
  double largest = 0;
  for (size_t i = 0; i < whole.pictures.size(); ++i) {
    size_t stage = 0;
    loaded.model().encode(
        whole.input->prompt.media[i].patches, [&](std::string_view, const mx::array& output) {
          const mx::array& expected = whole.pictures[i][stage++].output;
          largest = std::max(largest, verify::difference(output, expected).relative);
        }
    );
  }
  return largest;
}

/// A model, on this machine's main instruction sets or on all.
struct RealModel {
  std::string dims;
  bool everywhere = false;

  friend std::ostream& operator<<(std::ostream& out, const RealModel& model) {
    return out << model.dims;
  }
};

std::vector<ops::cpu::Isa> isas(bool everywhere) {
  return everywhere ? ops::cpu::available_isas() : main_isas();
}

class RealDims : public testing::TestWithParam<RealModel> {
 protected:
  void SetUp() override {
    if (ops::backend_name() != "cpu") {
      GTEST_SKIP() << "on a GPU";
    }
  }

  /// The tower is the same in both forms. Fewer experts where they take the most memory.
  static RandomModel model(int layers) {
    const bool plain = GetParam().dims.ends_with(":bf16");
    return reduced(
        GetParam().dims, {.layers = layers, .experts = plain ? 32 : 128, .tower = plain}
    );
  }
};

/// Where activations aren't rounded keys and values still are: two of a layer's twelve operands
/// (norms, q, k, v, attention, projections, residuals, gate, up, product), whose errors add up in
/// squares: 0.4 of them all.
constexpr double kShareOfCache = 0.5;

/// A tower caches nothing: sums in float32.
constexpr double kExactTower = 0x1p-15;

/// Rounding each operation's output to bfloat16 once is what our kernels may cost at most.
TEST_P(RealDims, layers_and_tower_are_nearer_than_bfloat16) {
  const RandomModel random = model(1);
  const verify::Input input = make_input(random);
  const verify::Run whole = [&] {
    const Loaded reference(random, reference_ops());
    return verify::run_whole(reference.model(), input);
  }();
  const auto [allowed, allowed_tower] = [&] {
    const Loaded rounded(random, reference_ops(mx::bfloat16));
    return std::pair{
        decoder_difference(rounded, whole).largest.relative, tower_difference(rounded, whole)
    };
  }();
  for (const ops::cpu::Isa isa : isas(GetParam().everywhere)) {
    SCOPED_TRACE(ops::cpu::isa_name(isa));
    const Loaded ours(random, ops::cpu::make_cpu_ops(isa, ops::threads()));
    const verify::LayerDifference found = decoder_difference(ours, whole);
    const double tower = tower_difference(ours, whole);
    const double share = rounds_activations(isa) ? 1 : kShareOfCache;
    EXPECT_LE(found.largest.relative, share * allowed)
        << found.stage << ", row " << found.largest.row;
    EXPECT_LE(tower, rounds_activations(isa) ? allowed_tower : kExactTower);
    RecordProperty(
        std::string(ops::cpu::isa_name(isa)),
        fmt::format("{:.2e} of {:.2e}; {:.2e}", found.largest.relative, allowed, tower)
    );
  }
}

std::string name_of(const testing::TestParamInfo<RealModel>& param) {
  std::string name = param.param.dims;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::vector<RealModel> real_models(bool everywhere) {
  std::vector<RealModel> models;
  for (const char* dims :
       {"qwen2-vl-2b", "qwen2.5-vl-3b", "qwen3-vl-4b", "qwen2.5-7b", "qwen3-vl-30b-a3b"}) {
    for (const char* form : {":4bit", ":bf16"}) {
      models.push_back({std::string(dims) + form, everywhere});
    }
  }
  return models;
}

INSTANTIATE_TEST_SUITE_P(Models, RealDims, testing::ValuesIn(real_models(false)), name_of);
INSTANTIATE_TEST_SUITE_P(Slow, RealDims, testing::ValuesIn(real_models(true)), name_of);

class RealDimsTrace : public RealDims {};

TEST_P(RealDimsTrace, lies_within_the_logits_table) {
  const RandomModel random = model(2);
  const verify::Input input = make_input(random);
  const int depth = input.prompt.tokens() - 14;
  const TraceOptions options = {.depth = depth, .positions = 12, .width = 1, .prefill_chunk = 48};
  const auto traced = [&](std::unique_ptr<const ops::Ops> ops) {
    const Loaded loaded(random, std::move(ops));
    return Trace{.header = {}, .rows = trace(loaded.model(), input.prompt, options, {})};
  };
  const Trace expected = traced(reference_ops());
  double scale = 0;
  for (const TraceRow& row : expected.rows) {
    scale = std::max<double>(scale, row.top_logits.front());
  }
  for (const ops::cpu::Isa isa : isas(GetParam().everywhere)) {
    SCOPED_TRACE(ops::cpu::isa_name(isa));
    const Trace found = traced(ops::cpu::make_cpu_ops(isa, ops::threads()));
    const Comparison comparison = compare_traces(expected, found, kDecidedGap);
    EXPECT_LE(comparison.largest->size(), kKernelLogits * scale);
    EXPECT_TRUE(comparison.decided_disagreements.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    RealDimsTrace,
    testing::Values(RealModel{"qwen2.5-vl-3b:4bit"}, RealModel{"qwen3-vl-4b:4bit"}),
    name_of
);
INSTANTIATE_TEST_SUITE_P(
    Slow,
    RealDimsTrace,
    testing::Values(RealModel{"qwen2.5-vl-3b:4bit", true}, RealModel{"qwen3-vl-4b:4bit", true}),
    name_of
);

}  // namespace
}  // namespace whimbrel::test
