// Each defect of bench/ablations does what it claims, on tiny random models: the backend is handed
// what the defect makes of the cache, the step's graph gets the copies at the bytes that the sizes
// say, and the logits stay what they were.

#include <gtest/gtest.h>
#include <mlx/mlx.h>

#include <map>
#include <set>
#include <tuple>

#include "ablations/measure.h"
#include "base/error.h"
#include "tests/support/exact_ops.h"
#include "tests/support/tiny_model.h"

namespace whimbrel::ablations {
namespace {

constexpr int kTokens = 40;
constexpr int kSteps = 3;

/// What a backend's attention was called with.
struct Handed {
  int kv_heads;
  int capacity;
  std::uintptr_t cosines;  // the array's id, 0 where there are no tables
};

/// Notes what it hands on.
class Recorder : public DefectiveOps {
 public:
  explicit Recorder(std::unique_ptr<const ops::Ops> inner)
      : DefectiveOps(*inner), inner_(std::move(inner)) {}

  ops::AttentionResult attention(
      const ops::Qkv& qkv,
      const ops::HeadShape& shape,
      const std::optional<ops::HeadNorms>& norms,
      std::span<const ops::AttentionRows> sequences
  ) const override {
    const ops::AttentionRows& rows = sequences.front();
    handed.push_back(
        {shape.kv_heads,
         rows.cache.keys.data.shape(2),
         rows.rope.tables ? rows.rope.tables->cos.id() : 0}
    );
    return DefectiveOps::attention(qkv, shape, norms, sequences);
  }

  mutable std::vector<Handed> handed;

 private:
  std::unique_ptr<const ops::Ops> inner_;
};

std::unique_ptr<const ops::Ops> make_backend(std::string_view name) {
  return name == "reference" ? ops::make_reference_ops(mx::bfloat16, ops::Arithmetic::float32)
                             : test::exact_ops();
}

Subject load_tiny(std::string_view family, std::string_view backend) {
  const ModelConfig config = read_model_config(test::tiny_model(family));
  Checkpoint checkpoint(config);
  return load_subject(config, checkpoint, std::make_unique<Recorder>(make_backend(backend)));
}

std::vector<Defect> all_defects() {
  std::vector<Defect> all;
  for (const DefectInfo& info : defects()) {
    all.push_back(info.defect);
  }
  return all;
}

/// Largest difference in shares of the largest number.
float difference(const mx::array& a, const mx::array& b) {
  const auto largest = [](const mx::array& x) {
    return mx::max(mx::abs(mx::astype(x, mx::float32)));
  };
  mx::array share = mx::divide(largest(mx::subtract(a, b)), largest(b));
  share.eval();
  return share.item<float>();
}

/// Where the keys and values of each layer lie.
std::vector<const void*> places(const Arm& arm) {
  std::vector<const void*> all;
  for (const nn::LayerCache& layer : arm.cache.layers()) {
    all.push_back(layer.buffer.keys.data.data<void>());
    all.push_back(layer.buffer.values.data.data<void>());
  }
  return all;
}

class Ablations : public testing::TestWithParam<std::tuple<std::string_view, std::string_view>> {
 protected:
  Ablations()
      : subject_(load_tiny(std::get<0>(GetParam()), std::get<1>(GetParam()))),
        prefilled_(prefill(subject_, {kTokens, true})) {}

  Arm arm(Defect defect) const {
    return make_arms(prefilled_, std::vector{defect}, kSteps + 1).back();
  }

  mx::array step(Arm& arm) const {
    const mx::array logits = build_step(subject_, prefilled_, arm);
    run_step(logits, arm);
    return logits;
  }

  StepCost cost(Defect defect) const {
    Arm one = arm(defect);
    return cost_of(build_step(subject_, prefilled_, one), one);
  }

  /// Nodes of a kind that the step with the defect has more, and the bytes that it writes more.
  int more(Defect defect, const std::string& name) const {
    return cost(defect).nodes[name] - cost(Defect::none).nodes[name];
  }
  uint64_t more_bytes(Defect defect) const { return cost(defect).bytes - cost(Defect::none).bytes; }

  /// What the backend is handed in a step, one entry a layer.
  std::vector<Handed> handed(Defect defect) const {
    const auto& recorder = dynamic_cast<const Recorder&>(*subject_.backend);
    recorder.handed.clear();
    cost(defect);
    return recorder.handed;
  }

  int layers() const { return subject_.model.config().num_hidden_layers; }
  const ops::HeadShape& heads() const { return subject_.model.config().attention.heads; }

  /// Keys and values of all layers for `rows` rows of 16-bit numbers.
  uint64_t cache_bytes(int rows) const {
    return 2ULL * 2 * static_cast<uint64_t>(layers() * heads().kv_heads * heads().head_dim * rows);
  }

  Subject subject_;
  Prefilled prefilled_;
};

TEST_P(Ablations, change_no_logits) {
  for (const DefectInfo& info : defects()) {
    Arm without = arm(Defect::none);
    Arm with = arm(info.defect);
    // Tables are rounded elsewhere than a backend's own angles, and other numbers of heads are cut
    // into other tiles; the rest changes no number.
    const std::map<Defect, float> tolerances = {
        {Defect::rope_tables_each_layer, 0.02F}, {Defect::repeated_heads, 1e-5F}
    };
    const auto found = tolerances.find(info.defect);
    const float tolerance = found == tolerances.end() ? 0 : found->second;
    for (int i = 0; i < kSteps; ++i) {
      EXPECT_LE(difference(step(with), step(without)), tolerance) << info.name << ", step " << i;
    }
    EXPECT_EQ(with.cache.length(), kTokens + kSteps) << info.name;
  }
}

TEST_P(Ablations, repeated_heads_are_written_for_each_query_head) {
  for (const Handed& layer : handed(Defect::repeated_heads)) {
    EXPECT_EQ(layer.kv_heads, heads().heads);
    EXPECT_EQ(layer.capacity, kTokens + 1);
  }
  ASSERT_GT(heads().heads, heads().kv_heads);
  const auto group = static_cast<uint64_t>(heads().heads / heads().kv_heads);
  const uint64_t copies = cache_bytes(kTokens + 1) * group;
  EXPECT_GE(more_bytes(Defect::repeated_heads), copies);
  if (subject_.backend->name() == "cpu") {  // the reference widens what it attends to once more
    EXPECT_LE(more_bytes(Defect::repeated_heads), copies * 11 / 10);
  }
  EXPECT_EQ(more(Defect::repeated_heads, "AppendRows"), 2 * layers());
}

TEST_P(Ablations, a_mask_is_built_in_each_layer) {
  EXPECT_EQ(more(Defect::mask_at_one_row, "Select"), layers());
  EXPECT_GE(
      more_bytes(Defect::mask_at_one_row), static_cast<uint64_t>(layers() * (kTokens + 1) * 4)
  );
}

TEST_P(Ablations, tables_are_made_in_each_layer) {
  const auto different_tables = [this](Defect defect) {
    std::set<std::uintptr_t> different;
    for (const Handed& layer : handed(defect)) {
      different.insert(layer.cosines);
    }
    return static_cast<int>(different.size());
  };
  EXPECT_EQ(different_tables(Defect::none), 1);
  EXPECT_EQ(different_tables(Defect::rope_tables_each_layer), layers());
}

TEST_P(Ablations, a_widened_cache_is_rounded_in_each_layer) {
  const Arm wide = arm(Defect::float32_cache);
  for (const nn::LayerCache& layer : wide.cache.layers()) {
    EXPECT_EQ(layer.buffer.keys.data.dtype(), mx::float32);
  }
  EXPECT_GE(more_bytes(Defect::float32_cache), cache_bytes(kTokens + 1));
}

TEST_P(Ablations, only_a_copied_cache_moves) {
  std::vector<Defect> all = all_defects();
  all.push_back(Defect::none);
  for (const Defect defect : all) {
    Arm one = arm(defect);
    const std::vector<const void*> before = places(one);
    step(one);
    const std::vector<const void*> after = places(one);
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i] != after[i], defect == Defect::copied_cache)
          << static_cast<int>(defect) << ", buffer " << i;
    }
  }
}

TEST_P(Ablations, figures_have_a_sample_a_round) {
  const std::vector<Figure> figures = measure(subject_, {kTokens, false}, all_defects(), 2);
  ASSERT_EQ(figures.size(), all_defects().size() + 1);
  EXPECT_EQ(figures[0].expected_bytes, 0U);
  EXPECT_EQ(figures[0].delta, (std::vector<double>{0, 0}));
  for (const Figure& figure : figures) {
    EXPECT_EQ(figure.ms.size(), 2U);
    EXPECT_EQ(figure.delta.size(), 2U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    models,
    Ablations,
    testing::Combine(
        testing::Values("qwen2_5_vl", "qwen3_vl"), testing::Values("reference", "cpu")
    ),
    [](const auto& of) {
      return std::string(std::get<0>(of.param)) + "_" + std::string(std::get<1>(of.param));
    }
);

TEST(ExtraBytes, are_those_of_the_sizes) {
  // 3 layers, 8 query heads on 2, 16 wide, 10 of 256 rows, two bytes a number.
  const StepShape step{
      .layers = 3,
      .heads = {.heads = 8, .kv_heads = 2, .head_dim = 16},
      .rows = 10,
      .capacity = 256,
      .number_bytes = 2
  };
  const uint64_t row = 2 * 2 * 16 * 2;
  EXPECT_EQ(extra_bytes(Defect::none, step), 0U);
  EXPECT_EQ(extra_bytes(Defect::repeated_heads, step), 3 * 10 * row * 8);
  EXPECT_EQ(extra_bytes(Defect::mask_at_one_row, step), 3U * 10 * 4 * 9);
  EXPECT_EQ(extra_bytes(Defect::rope_tables_each_layer, step), 3U * 2 * 8 * 4 * 2);
  EXPECT_EQ(extra_bytes(Defect::float32_cache, step), 3 * 10 * row * 3);
  EXPECT_EQ(extra_bytes(Defect::copied_cache, step), 3 * 256 * row * 2);
}

TEST(Contexts, that_cannot_hold_a_picture_are_refused) {
  EXPECT_THROW(prefill(load_tiny("qwen2_5_vl", "reference"), {6, true}), Error);
  EXPECT_THROW(prefill(load_tiny("qwen2", "reference"), {kTokens, true}), Error);
}

TEST(Arms, of_a_float32_cache_have_none_that_widens_it) {
  const ModelConfig config = read_model_config(test::tiny_model("qwen2"));
  Checkpoint checkpoint(config);
  const Subject subject = load_subject(
      config, checkpoint, ops::make_reference_ops(mx::float32, ops::Arithmetic::float32)
  );
  const Prefilled prefilled = prefill(subject, {kTokens, false});
  EXPECT_EQ(make_arms(prefilled, all_defects(), 1).size(), all_defects().size());
}

}  // namespace
}  // namespace whimbrel::ablations
