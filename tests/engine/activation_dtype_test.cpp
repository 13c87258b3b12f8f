// In bf16 and f16 models nothing but the insides of a few operations may be float32: one value that
// leaks out widens the residual stream and with it every later layer.

#include <gtest/gtest.h>
#include <mlx/mlx.h>
#include <mlx/primitives.h>

#include "base/file.h"
#include "engine/engine.h"
#include "engine/messages.h"
#include "engine/prepare.h"
#include "models/prompt_chunk.h"
#include "ops/graph.h"
#include "tests/support/reference.h"
#include "tests/support/source_dir.h"

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
      : frontend_(load_frontend(bundled_model(std::get<0>(GetParam())))),
        checkpoint_(frontend_.config),
        engine_(
            frontend_,
            checkpoint_,
            ops::make_reference_ops(std::get<1>(GetParam()), ops::Arithmetic::native),
            LoadEvents{}
        ) {}

  Prompt prepare(const Json& content) const {
    const Json messages = Json::array({Json::object({{"role", "user"}, {"content", content}})});
    const ChatInput input = read_messages(messages, [](const std::string& path, MediaKind) {
      return MediaInput{path, read_file(path, Fault::input)};
    });
    const ChatTemplate chat_template =
        ChatTemplate::load(frontend_.config.folder, frontend_.tokenizer);
    return prepare_chat(frontend_, chat_template, input).prompt;
  }

  /// Everything that prefill and one decode step compute; nothing is evaluated.
  std::vector<mx::array> graph(const Prompt& prompt) const {
    const Model& model = engine_.model();
    std::vector<nn::Features> features;
    for (const MediaSpan& span : prompt.media) {
      features.push_back(model.encode(span.patches));
    }
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
    const nn::Chunk next = next_chunk(prompt, cache.length(), id);
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
    if (engine_.model().config().moe) {
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

  Frontend frontend_;
  Checkpoint checkpoint_;
  Engine engine_;
};

TEST_P(ActivationDtype, is_kept_for_text) {
  expect_no_leak(prepare("What is seven plus eight?"));
}

TEST_P(ActivationDtype, is_kept_behind_a_picture) {
  const std::string picture = (source_dir() / "examples/shapes.png").string();
  const Json content = Json::array(
      {Json::object({{"type", "image_url"}, {"image_url", picture}}),
       Json::object({{"type", "text"}, {"text", "Describe this image."}})}
  );
  expect_no_leak(prepare(content));
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
