// In bf16 and f16 models nothing but the insides of a few operations may be float32: one value that
// leaks out widens the residual stream and with it every later layer.

#include <gtest/gtest.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <set>

#include "ops/graph.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"

namespace whimbrel::test {
namespace {

/// What stock MLX builds norms and rotations from; all of them float32 inside by design. No matrix
/// product, no softmax, no cache write, no activation function.
const std::set<std::string> kFloat32Inside = {
    "Add",
    "Arange",
    "AsType",
    "Broadcast",
    "Concatenate",
    "Cos",
    "Divide",
    "ExpandDims",
    "Multiply",
    "Rsqrt",
    "Sin",
    "Split",
    "Square",
    "Subtract",
    "Sum",
};

/// What chooses experts: float32 from the router's logits to the chosen weights.
const std::set<std::string> kRouter = {"ArgPartition", "GatherAxis", "Negative", "Softmax"};

class ActivationDtype : public testing::TestWithParam<std::tuple<std::string, mx::Dtype>> {
 protected:
  ActivationDtype()
      : loaded_(
            bundled_model(std::get<0>(GetParam())),
            ops::make_reference_ops(std::get<1>(GetParam()), ops::Arithmetic::native)
        ) {}

  /// Everything that prefill and one decode step compute; nothing is evaluated.
  std::vector<mx::array> graph(const Prompt& prompt) const {
    const Model& model = loaded_.model();
    const std::vector<nn::Features> features = loaded_.encode(prompt);
    nn::KVCache cache = model.make_cache();
    std::vector<mx::array> results;
    for (const nn::Features& of_medium : features) {
      const std::vector<mx::array> arrays = of_medium.arrays();
      results.insert(results.end(), arrays.begin(), arrays.end());
    }
    results.push_back(
        model.logits(model.forward(prompt_chunk(prompt, features, 0, prompt.tokens()), cache))
    );
    const int32_t id = 5;
    const nn::Chunk next = next_chunk(prompt, cache.tokens(), id);
    results.push_back(model.logits(model.forward(next, cache)));
    const std::vector<mx::array> buffers = cache.arrays();
    results.insert(results.end(), buffers.begin(), buffers.end());
    return results;
  }

  void expect_no_leak(const Prompt& prompt) const {
    const std::vector<mx::array> results = graph(prompt);
    for (const mx::array& result : results) {
      EXPECT_EQ(result.dtype(), std::get<1>(GetParam()));
    }
    std::set<std::string> allowed = kFloat32Inside;
    if (loaded_.model().config().moe) {
      allowed.insert(kRouter.begin(), kRouter.end());
    }
    std::set<std::string> leaks;
    ops::walk_graph(results, [&](const mx::array& node) {
      if (!node.has_primitive()) {
        return;
      }
      const std::string name = node.primitive().name();
      for (const mx::array& input : node.inputs()) {
        if (input.dtype() == mx::float32 && !allowed.contains(name)) {
          leaks.insert("into " + name);
        }
      }
      if (node.dtype() == mx::float32 && !allowed.contains(name)) {
        leaks.insert("out of " + name);
      }
    });
    EXPECT_EQ(leaks, std::set<std::string>());
  }

  LoadedModel loaded_;
};

TEST_P(ActivationDtype, is_kept_for_text) {
  expect_no_leak(loaded_.prompt({}, "What is seven plus eight?"));
}

TEST_P(ActivationDtype, is_kept_behind_a_picture) {
  expect_no_leak(loaded_.prompt({"examples/shapes.png"}, "Describe this image."));
}

INSTANTIATE_TEST_SUITE_P(
    models,
    ActivationDtype,
    testing::Combine(
        testing::Values(
            "tiny-qwen2-5-vl",
            "tiny-qwen2-5-vl-4bit",
            "tiny-qwen2-vl-4bit",
            "tiny-qwen3-vl-4bit",
            "tiny-qwen3-vl-moe-4bit"
        ),
        testing::Values(mx::bfloat16, mx::float16)
    ),
    [](const auto& param) {
      std::string name = std::get<0>(param.param);
      std::ranges::replace(name, '-', '_');
      return name + (std::get<1>(param.param) == mx::bfloat16 ? "_bf16" : "_f16");
    }
);

}  // namespace
}  // namespace whimbrel::test
