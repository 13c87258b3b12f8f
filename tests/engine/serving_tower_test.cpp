// A tower at work on a large picture, and what others get meanwhile.

#include <gtest/gtest.h>

#include "base/file.h"
#include "engine/prepare.h"
#include "engine/serving_core.h"
#include "nn/vision.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "ops/graph.h"
#include "tests/support/loaded_model.h"
#include "tests/support/reference.h"
#include "tests/support/serving.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {
namespace {

class ServingTower : public testing::Test, protected ServedModel {
 protected:
  ServingTower()
      : ServedModel(
            bundled_model("tiny-qwen2-5-vl-4bit"), ops::cpu::make_cpu_ops(ops::chosen_isa(), 1)
        ) {}

  /// Nothing ends its answer.
  Request talking() const {
    Request request = asking("What is seven plus eight? Count from 3 to 40.", 400);
    request.stop_ids.clear();
    return request;
  }

  /// One that a tower takes long for.
  Request large_picture() const {
    const std::string bytes = read_file(source_dir() / "examples/shapes.png", Fault::input);
    const MediaOptions large{.min_pixels = 1 << 20, .max_pixels = 2 << 20};
    const std::string text = "<|vision_start|><|image_pad|><|vision_end|>What is this?";
    return greedy(
        prepare_raw(loaded_.frontend, text, {{.source = "large", .bytes = bytes}}, large).prompt
    );
  }
};

/// Its blocks are pauses: nobody waits for the whole of a large picture.
TEST_F(ServingTower, answers_go_on_while_a_tower_works) {
  ServingCore server = core();
  const std::shared_ptr<Outcome> answer = add(server, talking());
  server.step();
  const std::shared_ptr<Outcome> looking = add(server, large_picture());
  const size_t before = answer->tokens.size();
  size_t meanwhile = 0;
  int breaths = 0;
  while (server.status().pictures_encoded == 0) {
    server.step([&] {
      ++breaths;
      meanwhile = answer->tokens.size();
    });
  }
  EXPECT_GT(breaths, 3) << "between its blocks";
  EXPECT_GT(meanwhile, before + 1) << "tokens came within the tower's step";
  run(server);
  EXPECT_EQ(answer->ids, alone(talking()).ids);
  EXPECT_EQ(looking->ids, alone(large_picture()).ids);
}

/// Full attention over many patches takes as long as many blocks.
TEST_F(ServingTower, parts_of_a_long_attention_are_pauses_too) {
  const Request request = large_picture();
  const nn::Grid grid = request.prompt.media[0].patches.grid_thw;
  const size_t pieces =
      nn::query_pieces(nn::frame_segments(grid), loaded_.engine.ops().pairs_of_a_pause()).size();
  ASSERT_GT(pieces, 4U);
  ServingCore server = core();
  add(server, request);
  size_t breaths = 0;
  while (server.status().pictures_encoded == 0) {
    server.step([&] { ++breaths; });
  }
  const size_t full_attentions = 2;
  const size_t stages = 1 + 4 + 1;  // patches, blocks, merger
  EXPECT_EQ(breaths, stages + full_attentions * pieces);
}

TEST_F(ServingTower, attention_is_whole_where_nobody_hears_of_its_parts) {
  const nn::Features features =
      loaded_.model().encode(large_picture().prompt.media[0].patches, nn::StageListener{});
  EXPECT_EQ(ops::operations(features.arrays()).count("SegmentAttention"), 4U) << "blocks";
}

TEST_F(ServingTower, a_tower_that_nobody_waits_for_stops) {
  ServingCore server = core();
  const std::shared_ptr<Outcome> gone = add(server, picture());
  int breaths = 0;
  while (server.busy()) {
    server.step([&] {
      ++breaths;
      server.cancel(last_id_);
    });
  }
  EXPECT_EQ(breaths, 1);
  EXPECT_EQ(gone->failed->fault, Fault::interrupted);
  EXPECT_EQ(server.status().pictures_encoded, 0U);
  EXPECT_EQ(server.status().memory_used, server.status().prefix_bytes);
}

}  // namespace
}  // namespace whimbrel::test
