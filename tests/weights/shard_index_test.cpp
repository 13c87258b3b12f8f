#include "weights/shard_index.h"

#include <gtest/gtest.h>

#include "tests/weights/weight_folder.h"

namespace whimbrel {

namespace {

using test::contains;

std::string index_of(std::string_view map) {
  return fmt::format(
      R"({{"metadata":{{"total_size":1,"x":[null,{{"weight_map":2.5}}]}},"weight_map":{}}})", map
  );
}

}  // namespace

TEST(ShardIndex, ReadsTheMapAndSkipsTheRest) {
  const std::vector<ShardIndexEntry> entries = parse_shard_index(
      R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"},
          "metadata":{"total_size":-1.5,"n":[null,true,"x",{"weight_map":{}}]},"more":7})",
      "index"
  );
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].tensor, "a");
  EXPECT_EQ(entries[1].file, "m-2.safetensors");
  EXPECT_EQ(parse_shard_index(index_of(R"({"a":"m.safetensors"})"), "index").size(), 1);
}

TEST(ShardIndex, FilesStayInTheFolder) {
  for (const std::string file :
       {"../x.safetensors",
        "..\\\\x.safetensors",
        "/x.safetensors",
        "a/x.safetensors",
        "a/../../x.safetensors",
        "\\\\\\\\host\\\\x.safetensors",
        "C:x.safetensors",
        "..safetensors/..",
        "..",
        "",
        "x\\u0000.safetensors",
        "pytorch_model.bin"}) {
    const std::string json = index_of(fmt::format(R"({{"w":"{}"}})", file));
    const std::string text = test::model_error([&] { parse_shard_index(json, "index"); });
    EXPECT_TRUE(contains(text, "tensor \"w\": got the file")) << file;
    EXPECT_TRUE(contains(text, "in the same folder")) << file;
  }
}

TEST(ShardIndex, RefusesWhatIsNoIndex) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "invalid JSON"},
      {"[]", "got a list"},
      {"7", "got a number"},
      {"{}", "got no weight_map"},
      {R"({"metadata":{}})", "got no weight_map"},
      {R"({"weight_map":[]})", "got a list"},
      {R"({"weight_map":null})", "got null"},
      {index_of(R"({"a":1})"), "got a number"},
      {index_of(R"({"a":{}})"), "got an object"},
      {index_of(R"({"a":["m.safetensors"]})"), "got a list"},
      {index_of(R"({"a":"m.safetensors","a":"n.safetensors"})"), "the tensor \"a\" twice"},
      {R"({"weight_map":{},"weight_map":{}})", "two of them"},
      {std::string("{\"weight_map\":{}}\0", 18), "a zero byte"},
  };
  for (const auto& [json, complaint] : bad) {
    const std::string text =
        test::model_error([&json = json] { parse_shard_index(json, "index"); });
    EXPECT_TRUE(contains(text, complaint)) << json;
    EXPECT_TRUE(contains(text, "[index]"));
  }
}

}  // namespace whimbrel
