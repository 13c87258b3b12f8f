// The checks of `verify`: all pass on the bundled checkpoints, and each is seen to fail.

#include "engine/verify.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <mlx/mlx.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/verify_cache.h"
#include "engine/verify_difference.h"
#include "engine/verify_layers.h"
#include "engine/verify_order.h"
#include "engine/verify_reference.h"
#include "engine/verify_stages.h"
#include "engine/verify_text.h"
#include "engine/verify_tolerance.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "tests/support/reference.h"
#include "tests/support/tolerance.h"

namespace whimbrel::test {
namespace {

using verify::CheckResult;
using verify::Difference;
using verify::Inputs;
using verify::LogitDifference;
using verify::Outcome;
using verify::Reference;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr const char* kBundled = "tiny-qwen2-5-vl-4bit";
constexpr const char* kWithExperts = "tiny-qwen3-vl-moe-4bit";

/// A loaded checkpoint with its inputs.
struct Loaded {
  explicit Loaded(std::string_view name, mx::Dtype dtype = mx::float32)
      : Loaded(name, ops::make_reference_ops(dtype, ops::Arithmetic::float32)) {}

  Loaded(std::string_view name, std::unique_ptr<const ops::Ops> ops)
      : frontend(load_frontend(bundled_model(name))),
        checkpoint(frontend.config),
        engine(frontend, checkpoint, std::move(ops), LoadEvents{}),
        inputs(
            verify::make_inputs(
                frontend, ChatTemplate::load(frontend.config.folder, frontend.tokenizer)
            )
        ) {}

  std::map<std::string, CheckResult> check(const std::optional<Reference>& reference = {}) const {
    const std::vector<verify::Run> runs = verify::run_inputs(engine.model(), inputs);
    std::map<std::string, CheckResult> results;
    verify::check_model(
        {frontend, engine.model(), engine.dtype(), inputs},
        runs,
        reference,
        [&results](const CheckResult& result) { results[result.check] = result; }
    );
    return results;
  }

  Frontend frontend;
  Checkpoint checkpoint;
  Engine engine;
  Inputs inputs;
};

void expect_passed(const CheckResult& result) {
  EXPECT_EQ(result.outcome, Outcome::passed) << result.check << ": " << result.detail;
}

void expect_failed(const CheckResult& result, const std::string& part) {
  EXPECT_EQ(result.outcome, Outcome::failed) << result.check << ": " << result.detail;
  EXPECT_NE(result.detail.find(part), std::string::npos) << result.detail;
}

class VerifyModel : public testing::TestWithParam<std::tuple<std::string, mx::Dtype>> {};

TEST_P(VerifyModel, passes_every_check) {
  const auto& [name, dtype] = GetParam();
  const Loaded loaded(name, dtype);
  expect_passed(verify::check_tokenizer(loaded.frontend));
  expect_passed(verify::check_stop_ids(loaded.frontend));
  const std::map<std::string, CheckResult> results = loaded.check();
  EXPECT_EQ(results.size(), 10U);
  for (const auto& [check, result] : results) {
    if (check == "reference") {
      EXPECT_EQ(result.outcome, Outcome::not_applicable);
    } else {
      expect_passed(result);
      RecordProperty(check, result.detail);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    models,
    VerifyModel,
    testing::Values(
        std::make_tuple("tiny-qwen2-5-vl", mx::float32),
        std::make_tuple("tiny-qwen2-5-vl", mx::bfloat16),
        std::make_tuple("tiny-qwen2-5-vl", mx::float16),
        std::make_tuple("tiny-qwen2-vl-4bit", mx::float32),
        std::make_tuple("tiny-qwen3-vl-4bit", mx::float32),
        std::make_tuple("tiny-qwen3-vl-moe-4bit", mx::float32)
    ),
    [](const auto& param) {
      std::string name =
          std::get<0>(param.param) + "_" + verify::dtype_text(std::get<1>(param.param));
      std::ranges::replace(name, '-', '_');
      return name;
    }
);

TEST(VerifyInputs, are_long_enough_for_what_they_check) {
  const Loaded loaded(kBundled);
  EXPECT_GT(loaded.inputs.long_text.prompt.tokens(), 300);
  EXPECT_GT(loaded.inputs.text.prompt.tokens(), 45);
  const std::vector<int32_t>& ids = loaded.inputs.pictures->shapes.prompt.ids;
  const auto behind =
      std::find(ids.rbegin(), ids.rend(), loaded.frontend.media->image_token_id) - ids.rbegin();
  EXPECT_GE(behind, 32);
  EXPECT_EQ(loaded.inputs.pictures->colours.prompt.media.size(), 3U);
}

TEST(VerifyTolerance, is_the_tests_own_in_float32) {
  EXPECT_EQ(verify::tolerance_of(mx::float32), kReferenceFloat32.logits);
  EXPECT_EQ(verify::kDecidedGap, kDecidedGap);
  EXPECT_EQ(verify::tolerance_of(mx::float32, mx::bfloat16), verify::tolerance_of(mx::bfloat16));
}

TEST(VerifyDifference, measures_each_row_by_itself) {
  const mx::array expected({1000.0F, 1.0F, 2.0F, -4.0F}, {2, 2});
  const mx::array found({1001.0F, 1.0F, 2.0F, -3.0F}, {2, 2});
  const Difference difference = verify::difference(found, expected);
  EXPECT_EQ(difference.row, 1);
  EXPECT_DOUBLE_EQ(difference.relative, 0.25);
  EXPECT_DOUBLE_EQ(difference.absolute, 1);
  EXPECT_TRUE(difference.within(0.25));
  EXPECT_FALSE(difference.within(0.2));
}

TEST(VerifyDifference, nan_is_within_no_tolerance) {
  const mx::array good({1.0F, 2.0F}, {2, 1});
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {kNan, infinity, -infinity}) {
    const mx::array broken({1.0F, bad}, {2, 1});
    EXPECT_FALSE(verify::difference(broken, good).within(1)) << bad;
    EXPECT_FALSE(verify::difference(good, broken).within(1)) << bad;
    EXPECT_FALSE(verify::difference(broken, broken).within(1)) << bad;
    EXPECT_EQ(verify::difference(broken, good).row, 1) << bad;
  }
}

TEST(VerifyDifference, another_best_token_counts_where_it_is_decided) {
  const mx::array expected({0.0F, 3.0F, 0.0F, 1.0F, 5.0F, 1.0F}, {3, 2});
  const mx::array found({2.0F, 1.0F, 2.0F, 1.0F, 5.0F, 1.0F}, {3, 2});
  const LogitDifference result = verify::logit_difference(found, expected, 10);
  EXPECT_EQ(result.positions, 3);
  EXPECT_EQ(result.decided, 2);
  EXPECT_EQ(result.changed, std::vector<int>{10});
}

class VerifyCache : public testing::TestWithParam<const char*> {};

TEST_P(VerifyCache, wrong_positions_of_decode_steps_are_found) {
  const Loaded loaded(GetParam());
  for (const verify::Input* input : {&loaded.inputs.long_text, &loaded.inputs.pictures->shapes}) {
    verify::Run whole = verify::run_whole(loaded.engine.model(), *input);
    verify::Input shifted = *input;
    shifted.prompt.positions.delta += 3;
    whole.input = &shifted;
    EXPECT_EQ(verify::check_cached("cached", loaded.engine.model(), whole).outcome, Outcome::failed)
        << input->name;
  }
}

TEST_P(VerifyCache, wrong_positions_of_chunks_are_found) {
  const Loaded loaded(GetParam());
  verify::Run whole = verify::run_whole(loaded.engine.model(), loaded.inputs.pictures->shapes);
  verify::Input shifted = *whole.input;
  shifted.prompt.positions.axes[1][60] += 3;
  whole.input = &shifted;
  EXPECT_EQ(verify::check_chunks("chunks", loaded.engine.model(), whole).outcome, Outcome::failed);
}

TEST_P(VerifyCache, one_wrong_position_of_a_text_is_found) {
  const Loaded loaded(GetParam());
  verify::Run whole = verify::run_whole(loaded.engine.model(), loaded.inputs.text);
  verify::Input shifted = *whole.input;
  const size_t late = shifted.prompt.positions.axes[0].size() - 5;
  for (std::vector<int32_t>& axis : shifted.prompt.positions.axes) {
    axis[late] += 2;
  }
  whole.input = &shifted;
  EXPECT_EQ(verify::check_chunks("chunks", loaded.engine.model(), whole).outcome, Outcome::failed);
}

INSTANTIATE_TEST_SUITE_P(Models, VerifyCache, testing::Values(kBundled, kWithExperts));

/// Two experts of nearly the same weight: which one a token goes to is up to rounding.
TEST(VerifyCache, another_of_two_tied_experts_is_no_fault) {
  if (ops::backend_name() != "cpu") {
    GTEST_SKIP() << "on a GPU";
  }
  for (const ops::cpu::Isa isa : ops::cpu::available_isas()) {
    SCOPED_TRACE(ops::cpu::isa_name(isa));
    const Loaded loaded(kWithExperts, ops::cpu::make_cpu_ops(isa, ops::threads()));
    const Model& model = loaded.engine.model();
    const verify::Run whole = verify::run_whole(model, loaded.inputs.text);
    expect_passed(verify::check_chunks("chunks", model, whole));
  }
}

/// A run whose only layer sends tokens to two of four experts, the third close behind the second at
/// the last of three positions.
struct RoutedRun {
  verify::Input input = {"text", {}};
  verify::Run whole = {
      .input = &input,
      .decoder = {{"model.embed_tokens", mx::zeros({3, 2})}, {"model.layers.0", mx::ones({3, 2})}},
      .routers = {
          {"model.layers.0.mlp.gate",
           mx::array(
               {4.0F, 3.0F, 2.0F, 1.0F, 4.0F, 3.0F, 2.0F, 1.0F, 4.0F, 3.0F, 2.9999F, 1.0F}, {3, 4}
           )}
      }
  };

  /// The last two positions with 0.0001 more at the third expert, and other rows behind the layer.
  verify::LayerDifference difference(const mx::array& rows) const {
    const mx::array router({4.0F, 3.0F, 2.0001F, 1.0F, 4.0F, 3.0F, 3.0F, 1.0F}, {2, 4});
    const verify::DecoderStages stages = {
        .outputs = {{"model.embed_tokens", mx::zeros({2, 2})}, {"model.layers.0", rows}},
        .routers = {{"model.layers.0.mlp.gate", router}}
    };
    return verify::layer_difference(stages, whole, 1, 2);
  }
};

TEST(VerifyLayers, what_tied_experts_make_is_not_compared) {
  const mx::array another_expert({1.0F, 1.0F, 1.0F, 9.0F}, {2, 2});
  const verify::LayerDifference found = RoutedRun().difference(another_expert);
  EXPECT_EQ(found.near_ties, 1);
  EXPECT_EQ(found.stage, "model.layers.0.mlp.gate");
  EXPECT_NEAR(found.largest.relative, 2.5e-5, 1e-6);
}

TEST(VerifyLayers, what_certain_experts_make_is_compared) {
  const mx::array wrong({1.0F, 3.0F, 1.0F, 1.0F}, {2, 2});
  const verify::LayerDifference found = RoutedRun().difference(wrong);
  EXPECT_EQ(found.stage, "model.layers.0");
  EXPECT_EQ(found.largest.row, 1);
  EXPECT_DOUBLE_EQ(found.largest.relative, 2);
}

/// A run of one picture and a decoder of one layer.
verify::Run small_run(const verify::Input& input, const mx::array& block, const mx::array& layer) {
  return {
      .input = &input,
      .pictures = {{{"visual.blocks.0", block}, {"visual.merger", mx::array({1.0F})}}},
      .decoder = {{"model.layers.0", layer}, {"logits", mx::array({1.0F})}},
      .features = {}
  };
}

TEST(VerifyStages, first_stage_that_is_not_finite_is_named) {
  const verify::Input input{"shapes", {}};
  const mx::array good({1.0F, -7.0F});
  const std::vector<verify::Run> fine = {small_run(input, good, mx::array({3.0F}))};
  expect_passed(verify::check_finite(fine));
  EXPECT_EQ(verify::check_finite(fine).figures["largest"], 7.0F);
  EXPECT_EQ(verify::check_finite(fine).figures["at"], "visual.blocks.0 (shapes, picture 1)");
  EXPECT_EQ(verify::check_finite(fine).figures["peaks"]["model.layers.0"], 3.0F);
  const mx::array bad({1.0F, kNan});
  expect_failed(
      verify::check_finite(std::vector<verify::Run>{small_run(input, bad, bad)}),
      "visual.blocks.0 (shapes, picture 1)"
  );
  const mx::array infinite({std::numeric_limits<float>::infinity()});
  expect_failed(
      verify::check_finite(std::vector<verify::Run>{small_run(input, good, infinite)}),
      "model.layers.0 (shapes)"
  );
}

TEST(VerifyStages, first_stage_of_another_dtype_is_named) {
  const verify::Input input{"shapes", {}};
  const mx::array half = mx::astype(mx::array({1.0F}), mx::bfloat16);
  expect_failed(
      verify::check_dtype(
          std::vector<verify::Run>{small_run(input, mx::array({1.0F}), half)}, mx::float32
      ),
      "bfloat16 first at model.layers.0 (shapes)"
  );
}

TEST(VerifyOrder, a_tower_that_remembers_is_found) {
  const Loaded loaded(kBundled);
  const Prompt& colours = loaded.inputs.pictures->colours.prompt;
  int calls = 0;
  const auto remember = [&](const Patches& patches) {
    nn::Features features = loaded.engine.model().encode(patches);
    features.rows = mx::add(features.rows, mx::array(static_cast<float>(++calls)));
    return features;
  };
  expect_failed(verify::check_picture_order(remember, colours), "picture 1 (red)");
  const auto blind = [&](const Patches&) {
    return loaded.engine.model().encode(colours.media[0].patches);
  };
  expect_failed(verify::check_picture_order(blind, colours), "different colours");
}

TEST(VerifyOrder, rows_of_another_picture_are_found) {
  const Loaded loaded(kBundled);
  verify::Run run = verify::run_whole(loaded.engine.model(), loaded.inputs.pictures->colours);
  const verify::Run* const runs[] = {&run};
  expect_passed(verify::check_picture_rows(runs, *loaded.frontend.media));
  std::swap(run.features[0], run.features[1]);
  expect_failed(verify::check_picture_rows(runs, *loaded.frontend.media), "colours");
}

TEST(VerifyOrder, other_logits_behind_a_picture_are_found) {
  const Loaded loaded(kBundled);
  verify::Run text = verify::run_whole(loaded.engine.model(), loaded.inputs.text);
  const verify::Input& shapes = loaded.inputs.pictures->shapes;
  expect_passed(verify::check_text_after_picture(loaded.engine.model(), text, shapes));
  mx::array& logits = text.decoder.back().output;
  logits = mx::multiply(logits, mx::array(1.000001F));
  expect_failed(
      verify::check_text_after_picture(loaded.engine.model(), text, shapes), "other logits"
  );
}

TEST(VerifyText, ids_beyond_the_vocabulary_and_missing_stop_ids_are_found) {
  Loaded loaded(kBundled);
  loaded.frontend.shape.vocab_size = 100;
  expect_failed(verify::check_tokenizer(loaded.frontend), "expected ids below 100");
  expect_failed(verify::check_stop_ids(loaded.frontend), "2002");
  loaded.frontend.stop_ids.clear();
  expect_failed(verify::check_stop_ids(loaded.frontend), "got none");
}

class VerifyReference : public testing::Test {
 protected:
  VerifyReference()
      : loaded_(kBundled),
        runs_(verify::run_inputs(loaded_.engine.model(), loaded_.inputs)),
        path_(
            std::filesystem::path(testing::TempDir()) /
            fmt::format("verify-reference-{}.safetensors", getpid())
        ) {
    verify::write_reference(path_, verify::reference_arrays(runs_), {{"model_type", "qwen2_5_vl"}});
  }
  ~VerifyReference() override { std::filesystem::remove(path_); }

  /// The result where one array of the reference is another.
  CheckResult with_change(
      const std::string& key, const std::function<mx::array(const mx::array&)>& change
  ) const {
    Reference reference = verify::read_reference(path_);
    mx::array& array = reference.arrays.at(key);
    array = change(array);
    return verify::check_reference(reference, runs_);
  }

  void expect_not_comparable(const std::function<void(Reference&)>& change) const {
    Reference reference = verify::read_reference(path_);
    change(reference);
    try {
      verify::require_comparable(reference, "qwen2_5_vl", loaded_.inputs);
      verify::check_reference(reference, runs_);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::usage) << error.what();
    }
  }

  Loaded loaded_;
  std::vector<verify::Run> runs_;
  std::filesystem::path path_;
};

TEST_F(VerifyReference, agrees_with_itself) {
  const Reference reference = verify::read_reference(path_);
  verify::require_comparable(reference, "qwen2_5_vl", loaded_.inputs);
  const CheckResult result = verify::check_reference(reference, runs_);
  expect_passed(result);
  EXPECT_EQ(result.figures["difference"], 0.0);
}

TEST_F(VerifyReference, names_any_stage_that_differs) {
  const auto shift = [](const mx::array& array) {
    return mx::add(array, mx::astype(mx::array(1), array.dtype()));
  };
  for (const auto& [key, stage] : std::map<std::string, std::string>{
           {"shapes/picture.0/patches", "patches"},
           {"colours/picture.2/visual.patch_embed", "visual.patch_embed"},
           {"shapes/picture.0/visual.blocks.2", "visual.blocks.2"},
           {"shapes/picture.0/visual.merger", "visual.merger"},
           {"shapes/positions", "positions"},
           {"long_text/model.embed_tokens", "model.embed_tokens"},
           {"text/model.layers.3", "model.layers.3"},
           {"text/logits", "logits"},
       }) {
    const CheckResult result = with_change(key, shift);
    expect_failed(result, stage + " (");
    EXPECT_EQ(result.figures["key"], key);
  }
}

TEST_F(VerifyReference, what_can_not_be_compared_is_refused) {
  const auto remove = [](const char* key) {
    return [key](Reference& reference) { reference.arrays.erase(key); };
  };
  const auto put = [](const char* key, const mx::array& array) {
    return [key, array](Reference& reference) { reference.arrays.insert_or_assign(key, array); };
  };
  expect_not_comparable([](Reference& reference) { reference.model_type = "qwen2_vl"; });
  expect_not_comparable(remove("text/ids"));
  expect_not_comparable(remove("shapes/grid_thw"));
  expect_not_comparable(put("shapes/grid_thw", mx::array({1, 24, 25}, {1, 3})));
  expect_not_comparable(put("text/ids", mx::array({1, 2, 3})));
  expect_not_comparable(put("video/ids", mx::array({1, 2, 3})));
  expect_not_comparable(remove("shapes/picture.0/visual.blocks.2"));
  expect_not_comparable(put("shapes/picture.0/visual.blocks.4", mx::array({1.0F})));
  expect_not_comparable(put("text/model.layers.0", mx::array({1.0F})));
  expect_not_comparable(put("text/positions", mx::array({1.0F})));
}

TEST_F(VerifyReference, files_that_are_no_reference_are_refused) {
  const auto expect_refused = [](const std::filesystem::path& path, Fault fault) {
    try {
      verify::read_reference(path);
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), fault) << error.what();
    }
  };
  expect_refused(path_.parent_path() / "missing.safetensors", Fault::usage);
  expect_refused(bundled_model(kBundled) / "model.safetensors", Fault::usage);
  expect_refused(bundled_model(kBundled) / "config.json", Fault::usage);
}

TEST_F(VerifyReference, is_written_whole_or_not_at_all) {
  const auto write_to = [this](const std::filesystem::path& path) {
    try {
      verify::write_reference(path, verify::reference_arrays(runs_), {});
    } catch (const Error& error) {
      return error.fault();
    }
    return Fault::check;
  };
  EXPECT_EQ(write_to(path_.parent_path() / "reference.bin"), Fault::usage);
  EXPECT_EQ(write_to(path_ / "below-a-file.safetensors"), Fault::io);
  EXPECT_EQ(write_to(path_), Fault::check) << "one that is there is replaced";
  const std::filesystem::path partial =
      path_.parent_path() / fmt::format("{}.partial.safetensors", path_.stem().string());
  EXPECT_FALSE(std::filesystem::exists(partial));
}

}  // namespace
}  // namespace whimbrel::test
