// One model in every form that checkpoints come in, and what 16 bits do to its numbers.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "generate/generate.h"
#include "models/family.h"
#include "ops/graph.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"
#include "tests/support/tiny_model.h"
#include "tests/weights/weight_folder.h"

namespace whimbrel::test {
namespace {

namespace fs = std::filesystem;

const std::string kShapes = "examples/shapes.png";
// The picture with the most patches among the stored ones.
const std::string kDense = "tests/golden/reference/media/big.png";

using Variants = std::vector<std::string_view>;

Prompt question(const LoadedModel& loaded, const std::string& picture) {
  const bool sees = loaded.frontend.media.has_value();
  return loaded.prompt(
      sees ? std::vector<std::string>{picture} : std::vector<std::string>{}, "Describe this image."
  );
}

mx::array logits_of(const LoadedModel& loaded) {
  const Prompt prompt = question(loaded, kShapes);
  nn::KVCache cache = loaded.model().make_cache();
  const int tokens = prompt.tokens();
  return run_chunks(loaded.model(), prompt, loaded.encode(prompt), cache, 0, tokens, tokens);
}

TEST(Forms, every_form_of_a_model_gives_the_same_logits) {
  for (const Family* family : families()) {
    const std::string_view name = family->model_type;
    const mx::array expected = logits_of(LoadedModel(tiny_model(name)));
    std::vector<Variants> forms = {{"mlx"}, {"nested"}};
    if (name.ends_with("moe")) {
      forms.insert(forms.end(), {{"experts-out-in"}, {"experts-out-in", "nested"}});
    }
    for (const Variants& form : forms) {
      const mx::array found = logits_of(LoadedModel(tiny_model(name, form)));
      EXPECT_EQ(largest_difference(found, expected), 0.0F) << name << ": " << form.front();
    }
  }
}

/// Activations of `dtype`, whatever this machine would choose.
LoadedModel loaded_in(const fs::path& folder, mx::Dtype dtype) {
  return {folder, ops::make_reference_ops(dtype, ops::Arithmetic::float32)};
}

/// A copy of a model whose tensors a test has changed.
class ChangedModel {
 public:
  explicit ChangedModel(const fs::path& original) {
    fs::copy(original, folder_.path(), fs::copy_options::recursive);
    tensors_ = mx::load_safetensors((original / "model.safetensors").string()).first;
  }

  std::unordered_map<std::string, mx::array>& tensors() { return tensors_; }

  Json config() const {
    return Json::parse(read_file(folder_.path() / "config.json", Fault::input));
  }
  void write_config(const Json& config) const { folder_.write("config.json", config.dump()); }

  LoadedModel load(mx::Dtype dtype = mx::float32) const {
    mx::save_safetensors(
        (folder_.path() / "model.safetensors").string(), tensors_, {{"format", "mlx"}}
    );
    return loaded_in(folder_.path(), dtype);
  }

 private:
  WeightFolder folder_;
  std::unordered_map<std::string, mx::array> tensors_;
};

float cosine(const mx::array& a, const mx::array& b) {
  const mx::array product = mx::sum(mx::multiply(a, b));
  const mx::array lengths =
      mx::multiply(mx::sqrt(mx::sum(mx::square(a))), mx::sqrt(mx::sum(mx::square(b))));
  return mx::divide(product, lengths).item<float>();
}

mx::array features_of(const LoadedModel& loaded) {
  return mx::astype(loaded.encode(question(loaded, kShapes))[0].rows, mx::float32);
}

/// Packs the matrices of the tower's blocks in 8 bits; the patch embedding and merger stay plain.
int quantize_tower(ChangedModel& model) {
  std::vector<std::string> modules;
  for (const auto& [name, tensor] : model.tensors()) {
    if (name.starts_with("visual.blocks.") && name.ends_with(".weight") && tensor.ndim() == 2) {
      modules.push_back(name.substr(0, name.size() - std::string_view(".weight").size()));
    }
  }
  Json config = model.config();
  config["quantization"] = {{"group_size", 64}, {"bits", 8}};
  for (const std::string& module : modules) {
    const std::vector<mx::array> packed =
        mx::quantize(model.tensors().at(module + ".weight"), 64, 8);
    for (const auto& [suffix, part] : {std::pair(".weight", 0), {".scales", 1}, {".biases", 2}}) {
      model.tensors().insert_or_assign(module + suffix, packed[static_cast<size_t>(part)]);
    }
  }
  model.write_config(config);
  return static_cast<int>(modules.size());
}

TEST(Forms, a_quantised_tower_is_taken_as_it_is) {
  const fs::path original = bundled_model("tiny-qwen2-5-vl");
  ChangedModel packed(original);
  EXPECT_EQ(quantize_tower(packed), 4 * 5);
  const mx::array expected = features_of(LoadedModel(original));
  const mx::array found = features_of(packed.load());
  EXPECT_GE(cosine(found, expected), 0.999F);
  EXPECT_GT(largest_difference(found, expected), 0.0F) << "the packed tower wasn't used";
}

/// The three GELUs are so close that features hardly tell them apart: the graph does.
TEST(TowerGelu, blocks_and_mergers_have_their_own) {
  const std::map<std::string, std::string> of_blocks = {
      {"qwen2_vl", "Sigmoid"}, {"qwen3_vl", "Tanh"}, {"qwen3_vl_moe", "Tanh"}
  };
  for (const auto& [family, gelu] : of_blocks) {
    const LoadedModel loaded(tiny_model(family), "reference");
    const nn::Features features = loaded.encode(question(loaded, kShapes))[0];
    const std::multiset<std::string> found = ops::operations(features.arrays());
    const auto depth = static_cast<size_t>(loaded.frontend.shape.vision->depth);
    EXPECT_EQ(found.count(gelu), depth) << family;
    EXPECT_EQ(found.count("Erf"), 1 + features.deepstack.size()) << family;
  }
}

/// Largest |activation| behind each stage of tower and decoder.
std::map<std::string, float> peaks(const LoadedModel& loaded, mx::array& logits) {
  std::map<std::string, float> found;
  const nn::StageListener listen = [&found](std::string_view stage, const mx::array& output) {
    found[std::string(stage)] = mx::max(mx::abs(mx::astype(output, mx::float32))).item<float>();
  };
  const Prompt prompt = question(loaded, kDense);
  std::vector<nn::Features> features;
  for (const MediaSpan& span : prompt.media) {
    features.push_back(loaded.model().encode(span.patches, listen));
  }
  nn::KVCache cache = loaded.model().make_cache();
  const nn::Chunk chunk = prompt_chunk(prompt, features, 0, prompt.tokens());
  const mx::array hidden = loaded.model().forward(chunk, cache, listen);
  logits = mx::astype(loaded.model().logits(hidden), mx::float32);
  return found;
}

/// No block grows towards float16's largest number, 65504, and the logits stay those of float32. A
/// token near a tie of two experts may be sent to the other one, so they agree in the mean.
TEST(Float16, every_block_stays_finite_on_a_dense_picture) {
  for (const Family* family : families()) {
    const std::string_view name = family->model_type;
    mx::array half(0.0F);
    mx::array whole(0.0F);
    const std::map<std::string, float> in_half =
        peaks(loaded_in(tiny_model(name, {"f16"}), mx::float16), half);
    const std::map<std::string, float> in_whole =
        peaks(loaded_in(tiny_model(name), mx::float32), whole);
    ASSERT_EQ(in_half.size(), in_whole.size());
    for (const auto& [stage, peak] : in_half) {
      EXPECT_LT(peak, 6550.0F) << name << ": " << stage;
      EXPECT_NEAR(peak, in_whole.at(stage), 0.05F * in_whole.at(stage)) << name << ": " << stage;
    }
    const float scale = mx::max(mx::abs(whole)).item<float>();
    const float apart = mx::mean(mx::abs(mx::subtract(half, whole))).item<float>();
    EXPECT_LT(apart, 0.01F * scale) << name;
  }
}

/// An overflow is said, never answered with whatever token comes first.
TEST(Float16, an_overflow_in_the_tower_ends_with_its_reason) {
  ChangedModel model(tiny_model("qwen2_5_vl", {"f16"}));
  mx::array& bias = model.tensors().at("visual.blocks.0.mlp.down_proj.bias");
  bias = mx::full(bias.shape(), 65000.0F, mx::float16);
  mx::array& next = model.tensors().at("visual.blocks.1.mlp.down_proj.bias");
  next = mx::full(next.shape(), 65000.0F, mx::float16);
  const LoadedModel loaded = model.load(mx::float16);
  const Prompt prompt = question(loaded, kShapes);
  const std::string text = model_error([&] {
    generate(
        loaded.model(),
        loaded.frontend.tokenizer,
        prompt,
        {.max_tokens = 4, .stop_ids = loaded.frontend.stop_ids},
        {}
    );
  });
  EXPECT_TRUE(contains(text, "not finite"));
}

}  // namespace
}  // namespace whimbrel::test
