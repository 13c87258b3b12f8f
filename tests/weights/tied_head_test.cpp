#include "weights/tied_head.h"

#include <gtest/gtest.h>

#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

/// A checkpoint's config and tensors, and what has to come of them.
struct HeadCase {
  std::string root;
  bool has_head;
  bool head_differs;
  bool tied;
  std::string warning;
};

std::vector<test::RawTensor> tensors_of(const HeadCase& head) {
  test::RawTensor embedding = test::zeros("model.embed_tokens.weight", {4, 2});
  std::vector<test::RawTensor> tensors = {embedding};
  if (head.has_head) {
    embedding.name = "lm_head.weight";
    embedding.bytes[5] = head.head_differs ? 'x' : '\0';
    tensors.push_back(embedding);
  }
  return tensors;
}

}  // namespace

TEST(TiedHead, TensorsDecideThenTheFlag) {
  const std::string on = R"({"tie_word_embeddings":true})";
  const std::string off = R"({"tie_word_embeddings":false})";
  const std::vector<HeadCase> cases = {
      {on, false, false, true, ""},
      {on, true, false, true, ""},
      {on, true, true, true, "has an lm_head that differs"},
      {off, true, true, false, ""},
      {off, true, false, false, ""},
      {off, false, false, true, "the checkpoint has no lm_head"},
      {"{}", false, false, true, "the checkpoint has no lm_head"},
      {"{}", true, true, false, ""},
      {R"({"text_config":{"tie_word_embeddings":true}})", true, false, true, ""},
      {R"({"tie_word_embeddings":false,"text_config":{"tie_word_embeddings":true}})",
       true,
       true,
       false,
       ""},
  };
  for (const HeadCase& head : cases) {
    const test::WeightFolder folder;
    folder.write("model.safetensors", test::safetensors_bytes(tensors_of(head)));
    Json root = Json::parse(head.root);
    root["model_type"] = "m";
    folder.write("config.json", root.dump());
    const ModelConfig config = read_model_config(folder.path());
    Checkpoint checkpoint(config);
    EXPECT_EQ(head_is_tied(checkpoint, config), head.tied) << head.root << head.has_head;
    EXPECT_EQ(checkpoint.warnings().size(), head.warning.empty() ? 0 : 1);
    for (const std::string& warning : checkpoint.warnings()) {
      EXPECT_TRUE(test::contains(warning, head.warning));
    }
    checkpoint.take("model.embed_tokens.weight", {4, 2});
    if (!head.tied) {
      checkpoint.take("lm_head.weight", {4, 2});
    }
    EXPECT_NO_THROW(checkpoint.require_all_taken());
  }
}

}  // namespace whimbrel
