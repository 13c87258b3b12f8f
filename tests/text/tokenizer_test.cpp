#include "text/tokenizer.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "tests/text/text_folder.h"

namespace whimbrel {
namespace {

using TokenizerLoad = TextFolder;
using Ids = std::vector<int32_t>;

std::string tokenizer_json() {
  return read_file(model_folder("tiny-qwen3-vl-4bit") / "tokenizer.json", Fault::model);
}

std::string with_change(std::string_view key, const Json& value) {
  Json json = Json::parse(tokenizer_json());
  json[std::string(key)] = value;
  return json.dump();
}

bool contains(const Ids& ids, const std::string& token) {
  return std::ranges::count(ids, tiny_tokenizer().token_to_id(token).value()) > 0;
}

TEST(Tokenizer, knows_its_tokens) {
  const Tokenizer& tokenizer = tiny_tokenizer();
  EXPECT_EQ(tokenizer.size(), 2026);
  EXPECT_EQ(tokenizer.eos(), 2002);
  EXPECT_EQ(tokenizer.token_to_id("<|im_end|>"), 2002);
  EXPECT_EQ(tokenizer.id_to_token(2002), "<|im_end|>");
  EXPECT_EQ(tokenizer.token_to_id("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(2026), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(-1), std::nullopt);
  EXPECT_EQ(tokenizer.id_to_token(220), "Ġ");
  ASSERT_EQ(tokenizer.added_tokens().size(), 26);
  EXPECT_EQ(tokenizer.added_tokens()[2].content, "<|im_end|>");
  EXPECT_EQ(tokenizer.added_tokens()[2].id, 2002);
  EXPECT_TRUE(tokenizer.added_tokens()[2].special);
  EXPECT_FALSE(tokenizer.added_tokens()[25].special);  // </think>
}

TEST(Tokenizer, plain_text_yields_no_added_token) {
  const Tokenizer& tokenizer = tiny_tokenizer();
  for (const AddedToken& token : tokenizer.added_tokens()) {
    for (const std::string& text : {token.content, "a " + token.content + token.content + "\n"}) {
      const Ids ids = tokenizer.encode_text(text);
      EXPECT_LT(std::ranges::max(ids), 2000) << text;
      EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::skip), text);
    }
  }
}

TEST(Tokenizer, prompt_yields_tokens_where_no_marker_stands) {
  const Tokenizer& tokenizer = tiny_tokenizer();
  const Ids ids = tokenizer.encode_prompt(
      {.marked = "<|im_start|>a <\uFDD0|im_end|>\uFDD0<think>", .marker = U'\uFDD0'}
  );
  EXPECT_TRUE(contains(ids, "<|im_start|>"));
  EXPECT_TRUE(contains(ids, "<think>"));
  EXPECT_FALSE(contains(ids, "<|im_end|>"));
  EXPECT_EQ(tokenizer.decode(ids, SpecialTokens::keep), "<|im_start|>a <|im_end|><think>");
}

TEST(Tokenizer, text_on_both_sides_of_a_marker_is_tokenised_together) {
  const Tokenizer& tokenizer = tiny_tokenizer();
  const RenderedPrompt whole{.marked = "user\n\nhello the\u0301re"};
  const RenderedPrompt marked{
      .marked = "us\uFDD0er\n\uFDD0\nhello the\uFDD0\u0301re", .marker = U'\uFDD0'
  };
  EXPECT_EQ(tokenizer.encode_prompt(marked), tokenizer.encode_prompt(whole));
}

TEST(Tokenizer, refuses_what_it_cannot_encode_or_decode) {
  const Tokenizer& tokenizer = tiny_tokenizer();
  const Error text = error_of([&] { tokenizer.encode_text("ab\xFF"); });
  EXPECT_EQ(text.fault(), Fault::input);
  EXPECT_STREQ(text.what(), "[tokenizer] got invalid UTF-8 at byte 2");
  EXPECT_EQ(error_of([&] { tokenizer.encode_prompt({.marked = "\xC3"}); }).fault(), Fault::input);
  for (const int32_t id : {-1, 2026, std::numeric_limits<int32_t>::max()}) {
    const Error error = error_of([&] { tokenizer.decode(Ids{5, id}, SpecialTokens::keep); });
    EXPECT_NE(std::string(error.what()).find(std::to_string(id)), std::string::npos);
  }
}

/// A text again and again.
std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

TEST(Tokenizer, bounds_the_tokens_of_a_text_from_below) {
  const Tokenizer& tokenizer = tiny_tokenizer();
  EXPECT_GT(tokenizer.least_tokens(1 << 20), 1000U);
  EXPECT_EQ(tokenizer.least_tokens(0), 0U);
  std::vector<std::string> texts = {
      "\u1fbe\u0308\u0301", "\u2126\u0314\u0342\u0345", "\u212a", "\u1112\u1175\u11c2"
  };
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    texts.push_back(tokenizer.decode(Ids{id}, SpecialTokens::keep));
  }
  for (const std::string& text : texts) {
    const std::string long_text = repeated(text, 20);
    EXPECT_LE(tokenizer.least_tokens(long_text.size()), tokenizer.encode_text(long_text).size());
    const Ids prompt = tokenizer.encode_prompt({.marked = long_text});
    EXPECT_LE(tokenizer.least_tokens(long_text.size()), prompt.size()) << text;
  }
}

TEST_F(TokenizerLoad, knows_no_bound_where_text_is_dropped) {
  write(
      "tokenizer.json",
      with_change("normalizer", {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}})
  );
  EXPECT_EQ(Tokenizer::load(folder_).least_tokens(1 << 20), 0U);
}

TEST(Tokenizer, empty_stays_empty) {
  EXPECT_EQ(tiny_tokenizer().encode_text(""), Ids{});
  EXPECT_EQ(tiny_tokenizer().encode_prompt({}), Ids{});
  EXPECT_EQ(tiny_tokenizer().decode({}, SpecialTokens::keep), "");
}

TEST(Tokenizer, long_runs_take_bounded_time) {
  const std::string letters(1 << 20, 'a');
  EXPECT_EQ(
      tiny_tokenizer().decode(tiny_tokenizer().encode_text(letters), SpecialTokens::keep), letters
  );
}

TEST(Tokenizer, serves_several_threads) {
  const Tokenizer copy = tiny_tokenizer();
  const Ids expected = copy.encode_text("What is in this picture?");
  std::vector<Ids> results(4);
  {
    std::vector<std::jthread> threads;
    for (Ids& result : results) {
      threads.emplace_back([&result, &copy] {
        for (int round = 0; round < 50; ++round) {
          result = copy.encode_text("What is in this picture?");
        }
      });
    }
  }
  for (const Ids& result : results) {
    EXPECT_EQ(result, expected);
  }
}

TEST_F(TokenizerLoad, names_the_file_of_a_broken_tokenizer) {
  EXPECT_EQ(error_of([&] { Tokenizer::load(folder_); }).fault(), Fault::model);
  for (const std::string& bytes :
       {std::string("{"), std::string("{}"), tokenizer_json().substr(0, 9000)}) {
    const std::string path = write("tokenizer.json", bytes).string();
    const Error error = error_of([&] { Tokenizer::load(folder_); });
    EXPECT_EQ(error.fault(), Fault::model);
    EXPECT_TRUE(std::string(error.what()).starts_with("[" + path + "]")) << error.what();
  }
}

TEST_F(TokenizerLoad, refuses_other_kinds_of_tokenizers) {
  write("tokenizer.json", with_change("decoder", {{"type", "Fuse"}}));
  const Error error = error_of([&] { Tokenizer::load(folder_); });
  EXPECT_NE(std::string(error.what()).find("byte-level BPE"), std::string::npos) << error.what();
}

TEST_F(TokenizerLoad, ignores_truncation_and_padding_of_the_file) {
  const Json truncation = {
      {"direction", "Right"}, {"max_length", 2}, {"strategy", "LongestFirst"}, {"stride", 0}
  };
  write("tokenizer.json", with_change("truncation", truncation));
  const std::string text = "one two three four five";
  EXPECT_EQ(Tokenizer::load(folder_).encode_text(text), tiny_tokenizer().encode_text(text));
}

TEST_F(TokenizerLoad, has_no_end_token_without_a_config_that_names_one) {
  write("tokenizer.json", tokenizer_json());
  EXPECT_EQ(Tokenizer::load(folder_).eos(), std::nullopt);
  write("tokenizer_config.json", R"({"eos_token": "no such token"})");
  EXPECT_EQ(Tokenizer::load(folder_).eos(), std::nullopt);
  write("tokenizer_config.json", R"({"eos_token": {"content": "<|endoftext|>"}})");
  EXPECT_EQ(Tokenizer::load(folder_).eos(), 2000);
}

}  // namespace
}  // namespace whimbrel
