#include "weights/hub_names.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

const std::string kSha1(40, 'a');
const std::string kSha256(64, '0');

}  // namespace

TEST(HubNames, OwnerNameAndRevision) {
  const std::optional<HubModel> plain = parse_hub_model("Qwen/Qwen2.5-VL-3B-Instruct");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->repo, "Qwen/Qwen2.5-VL-3B-Instruct");
  EXPECT_EQ(plain->revision, "main");
  EXPECT_EQ(parse_hub_model("a/b@v1.0")->revision, "v1.0");
  EXPECT_EQ(parse_hub_model("a/b@refs/pr/1")->revision, "refs/pr/1");
  EXPECT_EQ(parse_hub_model("a/b@" + kSha1)->revision, kSha1);
  EXPECT_EQ(parse_hub_model("_a/b_c.d-e")->repo, "_a/b_c.d-e");
  EXPECT_EQ(parse_hub_model(std::string(96, 'x') + "/y")->repo.size(), 98);
}

TEST(HubNames, WithoutOwnerItIsTheMlxCommunitys) {
  EXPECT_EQ(parse_hub_model("tiny")->repo, "mlx-community/tiny");
  EXPECT_EQ(parse_hub_model("tiny@v1")->repo, "mlx-community/tiny");
}

TEST(HubNames, RefusesWhatTheHubWould) {
  for (const std::string& text :
       {std::string(),
        std::string("/"),
        std::string("/b"),
        std::string("a/"),
        std::string("a/b/c"),
        std::string("../b"),
        std::string("a/.."),
        std::string("."),
        std::string("a--b/c"),
        std::string("a/b..c"),
        std::string("a/.b"),
        std::string("a/b."),
        std::string("-a/b"),
        std::string("a/b-"),
        std::string("a/b.git"),
        std::string("a b/c"),
        std::string("a\\b"),
        std::string("a/b@"),
        std::string("a/b@../c"),
        std::string("@main"),
        std::string("a/b@/x"),
        std::string("a/b@x/"),
        std::string("a/b@x//y"),
        std::string("a/b@x@y"),
        std::string("a/b@.x"),
        std::string("a/b@-x"),
        std::string("a/b@x.lock"),
        std::string("a/b@x y"),
        std::string("a/b@x\0y", 7),
        std::string("a\0/b", 4),
        std::string(97, 'x') + "/y",
        "a/b@" + std::string(201, 'x'),
        std::string("a/\xc3\xa9")}) {
    EXPECT_FALSE(parse_hub_model(text)) << text;
  }
  const std::string error = test::error_text(Fault::usage, [] { require_hub_model("a/b/c"); });
  EXPECT_TRUE(test::contains(error, "a/b/c"));
}

TEST(HubNames, Commits) {
  EXPECT_TRUE(is_commit(kSha1));
  for (const std::string& text :
       {std::string(),
        std::string("main"),
        std::string(40, 'A'),
        std::string(40, 'g'),
        kSha256,
        std::string(39, 'a')}) {
    EXPECT_FALSE(is_commit(text)) << text;
  }
}

TEST(HubNames, FilesThatStayInTheirFolder) {
  for (const char* name :
       {"config.json",
        "a/b/c.txt",
        "model-00001-of-00002.safetensors",
        ".gitattributes",
        "a b",
        "..config",
        "x..y",
        "...",
        "\xc3\xa9.json"}) {
    EXPECT_TRUE(is_safe_file_name(name)) << name;
  }
  for (const std::string& name :
       {std::string(),          std::string("/x"),     std::string(".."),
        std::string("../x"),    std::string("a/../x"), std::string("a/.."),
        std::string("."),       std::string("./x"),    std::string("a//x"),
        std::string("a/"),      std::string("..\\x"),  std::string("\\\\host\\x"),
        std::string("C:x"),     std::string("C:\\x"),  std::string("x:stream"),
        std::string("x\0y", 3), std::string("x\ny"),   std::string("x\x1b[2J"),
        std::string("x\x7f"),   std::string(256, 'x')}) {
    EXPECT_FALSE(is_safe_file_name(name)) << name;
  }
}

TEST(HubNames, FilesThatAModelTakes) {
  for (const char* name :
       {"config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "model-00001-of-00002.safetensors",
        "model.safetensors.index.json",
        "vocab.json",
        "merges.txt",
        "tokenizer_config.json",
        "preprocessor_config.json",
        "processor_config.json",
        "video_preprocessor_config.json",
        "chat_template.jinja",
        "chat_template.json"}) {
    EXPECT_TRUE(is_needed_file(name)) << name;
  }
  for (const char* name :
       {"README.md",
        "pytorch_model.bin",
        "onnx/model.safetensors",
        "model.safetensors.bak",
        "original/config.json",
        "config.json.txt",
        "model.gguf",
        "modeling.py"}) {
    EXPECT_FALSE(is_needed_file(name)) << name;
  }
}

TEST(HubNames, BlobsAreHashes) {
  EXPECT_EQ(blob_name('"' + kSha1 + '"'), kSha1);
  EXPECT_EQ(blob_name("W/\"" + kSha256 + '"'), kSha256);
  EXPECT_EQ(blob_name(kSha256), kSha256);
  for (const std::string& etag :
       {std::string(),
        std::string("\"\""),
        std::string("\""),
        std::string("\"../../x\""),
        '"' + kSha1,
        kSha1 + "/x",
        std::string(40, 'A'),
        std::string(50, 'a'),
        kSha1 + "-gzip"}) {
    EXPECT_FALSE(blob_name(etag)) << etag;
  }
}

}  // namespace whimbrel
