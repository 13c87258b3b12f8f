#include "text/tokenizer_config.h"

#include "tests/text/text_folder.h"

namespace whimbrel {
namespace {

using TokenizerConfig = TextFolder;

TEST_F(TokenizerConfig, is_empty_where_there_is_none) {
  EXPECT_EQ(read_tokenizer_config(folder_), Json::object());
}

TEST_F(TokenizerConfig, must_be_an_object) {
  for (const char* bytes : {"[]", "3", "{"}) {
    const std::string path = write("tokenizer_config.json", bytes).string();
    const Error error = error_of([&] { read_tokenizer_config(folder_); });
    EXPECT_EQ(error.fault(), Fault::model);
    EXPECT_TRUE(std::string(error.what()).starts_with("[" + path + "]")) << error.what();
  }
}

TEST(NamedSpecialTokens, are_strings_or_objects_and_never_null) {
  const Json config = Json::parse(
      R"({"eos_token": {"content": "</s>", "special": true}, "bos_token": null, "pad_token": "<p>",
          "extra_special_tokens": ["<x>"], "model_max_length": 7})"
  );
  EXPECT_EQ(
      named_special_tokens(config, "test"),
      Json::parse(R"({"eos_token": "</s>", "pad_token": "<p>"})")
  );
}

TEST(NamedSpecialTokens, refuses_other_kinds) {
  for (const char* config : {R"({"eos_token": 3})", R"({"bos_token": {"id": 3}})"}) {
    EXPECT_EQ(
        error_of([&] { named_special_tokens(Json::parse(config), "test"); }).fault(), Fault::model
    ) << config;
  }
}

}  // namespace
}  // namespace whimbrel
