#include "text/detokenizer.h"

#include <random>

#include "tests/text/text_folder.h"

namespace whimbrel {
namespace {

using Ids = std::vector<int32_t>;

std::vector<std::string> pieces(const Ids& ids, SpecialTokens special_tokens) {
  StreamingDetokenizer detokenizer(tiny_tokenizer(), special_tokens);
  std::vector<std::string> pieces;
  for (const int32_t id : ids) {
    pieces.push_back(detokenizer.push(id));
  }
  pieces.push_back(detokenizer.finish());
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  std::string text;
  for (const std::string& piece : pieces) {
    text += piece;
  }
  return text;
}

bool ends_inside_a_character(const std::string& text) {
  size_t continuation = 0;
  while (continuation < text.size() && (text[text.size() - 1 - continuation] & 0xC0) == 0x80) {
    ++continuation;
  }
  if (continuation == text.size()) {
    return !text.empty();
  }
  const auto lead = static_cast<unsigned char>(text[text.size() - 1 - continuation]);
  const size_t expected = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
  return continuation != expected;
}

TEST(StreamingDetokenizer, equals_decoding_the_whole) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int32_t> any(0, tiny_tokenizer().size() - 1);
  std::uniform_int_distribution<int32_t> bytes(0, 255);
  for (int round = 0; round < 200; ++round) {
    Ids ids;
    for (int step = 0; step < 40; ++step) {
      ids.push_back(round % 2 == 0 ? any(random) : bytes(random));
    }
    for (const SpecialTokens special_tokens : {SpecialTokens::keep, SpecialTokens::skip}) {
      const std::vector<std::string> streamed = pieces(ids, special_tokens);
      EXPECT_EQ(joined(streamed), tiny_tokenizer().decode(ids, special_tokens));
      for (const std::string& piece : streamed) {
        EXPECT_FALSE(ends_inside_a_character(piece)) << piece;
      }
    }
  }
}

TEST(StreamingDetokenizer, holds_a_character_until_it_is_complete) {
  const Ids ids = tiny_tokenizer().encode_text("👩");
  ASSERT_EQ(ids.size(), 4);  // one token a byte
  EXPECT_EQ(pieces(ids, SpecialTokens::keep), (std::vector<std::string>{"", "", "", "👩", ""}));
  const Ids cut(ids.begin(), ids.begin() + 3);
  EXPECT_EQ(pieces(cut, SpecialTokens::keep), (std::vector<std::string>{"", "", "", "\uFFFD"}));
}

TEST(StreamingDetokenizer, shows_added_tokens_that_are_not_special) {
  const Ids ids = {2001, 2024, 2002};  // <|im_start|> <think> <|im_end|>
  EXPECT_EQ(joined(pieces(ids, SpecialTokens::skip)), "<think>");
  EXPECT_EQ(joined(pieces(ids, SpecialTokens::keep)), "<|im_start|><think><|im_end|>");
}

TEST(StreamingDetokenizer, is_as_new_after_finish) {
  StreamingDetokenizer detokenizer(tiny_tokenizer(), SpecialTokens::keep);
  const Ids ids = tiny_tokenizer().encode_text("é");
  ASSERT_EQ(ids.size(), 2);
  detokenizer.push(ids[0]);
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(detokenizer.push(ids[0]), "");
  EXPECT_EQ(detokenizer.push(ids[1]), "é");
}

TEST(StreamingDetokenizer, outlives_its_tokenizer_and_moves) {
  std::optional<Tokenizer> tokenizer = Tokenizer::load(model_folder("tiny-qwen3-vl-4bit"));
  StreamingDetokenizer first(*tokenizer, SpecialTokens::keep);
  tokenizer.reset();
  StreamingDetokenizer second = std::move(first);
  EXPECT_EQ(second.push(2002), "<|im_end|>");
}

TEST(StreamingDetokenizer, refuses_an_id_without_token) {
  StreamingDetokenizer detokenizer(tiny_tokenizer(), SpecialTokens::keep);
  EXPECT_EQ(error_of([&] { detokenizer.push(2026); }).fault(), Fault::input);
  EXPECT_EQ(error_of([&] { detokenizer.push(-1); }).fault(), Fault::input);
  EXPECT_EQ(detokenizer.push(2002), "<|im_end|>");
}

}  // namespace
}  // namespace whimbrel
