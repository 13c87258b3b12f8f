#include "server/token_requests.h"

#include <gtest/gtest.h>

#include "refusal.h"
#include "server/models_json.h"
#include "tests/support/source_dir.h"

namespace whimbrel::wire {
namespace {

TEST(TokenRequests, tokenize_has_llama_servers_defaults) {
  const TokenizeRequest plain = parse_tokenize_request(R"({"content":"a"})", {});
  EXPECT_EQ(plain.content, "a");
  EXPECT_FALSE(plain.add_special);
  EXPECT_TRUE(plain.parse_special);
  EXPECT_FALSE(plain.with_pieces);
  const TokenizeRequest full = parse_tokenize_request(
      R"({"content":"","add_special":true,"parse_special":false,"with_pieces":true})", {}
  );
  EXPECT_TRUE(full.add_special && !full.parse_special && full.with_pieces);
}

TEST(TokenRequests, a_field_of_another_type_is_named) {
  const auto tokenize = [](std::string_view body) {
    return refused_field([&] { parse_tokenize_request(body, {}); });
  };
  EXPECT_EQ(tokenize("{}"), "content");
  EXPECT_EQ(tokenize(R"({"content":[1]})"), "content");
  EXPECT_EQ(tokenize(R"({"content":"a","with_pieces":1})"), "with_pieces");
  const auto detokenize = [](std::string_view body) {
    return refused_field([&] { parse_detokenize_request(body, {}); });
  };
  EXPECT_EQ(detokenize("{}"), "tokens");
  EXPECT_EQ(detokenize(R"({"tokens":"1"})"), "tokens");
  EXPECT_EQ(detokenize(R"({"tokens":[1,-1]})"), "tokens[1]");
  EXPECT_EQ(detokenize(R"({"tokens":[1,"2"]})"), "tokens[1]");
}

TEST(TokenRequests, answers_have_llama_servers_shape) {
  const std::vector<int32_t> ids = {5, 6};
  const auto bytes = [](int32_t id) {
    return id == 5 ? std::string("é") : std::string("\xE2\x82");
  };
  EXPECT_EQ(tokens_json(ids).dump(), R"({"tokens":[5,6]})");
  EXPECT_EQ(
      token_pieces_json(ids, bytes).dump(),
      R"({"tokens":[{"id":5,"piece":"é"},{"id":6,"piece":[226,130]}]})"
  );
  EXPECT_EQ(parse_detokenize_request(R"({"tokens":[5,6]})", {}), ids);
  EXPECT_TRUE(parse_detokenize_request(R"({"tokens":[]})", {}).empty());
  EXPECT_EQ(content_json("a").dump(), R"({"content":"a"})");
  EXPECT_EQ(prompt_json("a").dump(), R"({"prompt":"a"})");
}

TEST(TokenText, spellings_are_read_as_bytes) {
  EXPECT_EQ(bytes_of_spelling("Hi"), "Hi");
  EXPECT_EQ(bytes_of_spelling("ĠHiĊ"), " Hi\n");
  EXPECT_EQ(bytes_of_spelling("Ã¤"), "ä");
  EXPECT_EQ(bytes_of_spelling("âĤ"), "\xE2\x82");
  EXPECT_EQ(bytes_of_spelling("ŀ"), std::string("\x9E"));
  EXPECT_EQ(bytes_of_spelling("Ń"), std::string("\xAD"));
  EXPECT_EQ(bytes_of_spelling("日"), "日");
  EXPECT_EQ(bytes_of_spelling(""), "");
}

TEST(TokenText, tokens_of_a_tokenizer_add_up_to_the_text) {
  const Tokenizer tokenizer = Tokenizer::load(test::source_dir() / "models" / "tiny-qwen3-vl-4bit");
  const TokenBytes bytes_of = token_bytes_of(tokenizer);
  const std::string text = "Hi\tthere, \u00e4\u65e5\U0001F600\n 1.5";
  std::string joined;
  for (const int32_t id : tokenizer.encode_text(text)) {
    joined += bytes_of(id);
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(bytes_of(tokenizer.token_to_id("<|im_end|>").value()), "<|im_end|>");
  EXPECT_EQ(bytes_of(tokenizer.size() + 5), "");
}

TEST(ModelsJson, lists_the_one_model) {
  const ServedModel model = {
      .name = "m", .created = 1'700'000'000, .context = 4096, .has_vision = true
  };
  EXPECT_EQ(models_json(model), Json::parse(R"({"object":"list","data":[{"id":"m","object":"model",
    "created":1700000000,"owned_by":"whimbrel","type":"model","display_name":"m",
    "created_at":"2023-11-14T22:13:20Z","context_length":4096,
    "architecture":{"input_modalities":["text","image","video"],"output_modalities":["text"]}}],
    "has_more":false,"first_id":"m","last_id":"m"})"));
}

TEST(ModelsJson, another_model_is_not_found) {
  const ServedModel model = {.name = "m"};
  EXPECT_NO_THROW(require_model(model, "m"));
  EXPECT_NO_THROW(require_model(model, ""));
  try {
    require_model(model, "gpt");
    FAIL();
  } catch (const http::ApiException& exception) {
    EXPECT_EQ(http::status_of(exception.error().kind), 404);
    EXPECT_EQ(exception.error().code, "model_not_found");
    EXPECT_EQ(exception.error().param, "model");
  }
}

}  // namespace
}  // namespace whimbrel::wire
