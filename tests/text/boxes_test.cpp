#include "text/boxes.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/source_dir.h"
#include "text/tokenizer.h"

namespace whimbrel {
namespace {

using Numbers = std::vector<double>;

/// Each box as `label numbers`.
std::vector<std::string> found(std::string_view text, BoxNotation notation = BoxNotation::json) {
  std::vector<std::string> boxes;
  for (const Box& box : find_boxes(text, notation)) {
    EXPECT_EQ(box.is_point(), box.numbers.size() == 2);
    std::string shown = box.label;
    for (const double number : box.numbers) {
      shown += " " + std::to_string(number).substr(0, std::to_string(number).find('.') + 2);
    }
    boxes.push_back(shown);
  }
  return boxes;
}

std::vector<std::string> found_pairs(std::string_view text) {
  return found(text, BoxNotation::pairs);
}

using Names = std::vector<std::string>;

constexpr std::string_view kCat = R"({"bbox_2d": [1, 2, 3, 4], "label": "cat"})";
const Names kOneCat = {"cat 1.0 2.0 3.0 4.0"};

TEST(FindBoxes, json_wherever_it_stands) {
  const std::string cat(kCat);
  EXPECT_EQ(found(cat), kOneCat);
  EXPECT_EQ(found("[" + cat + "]"), kOneCat);
  EXPECT_EQ(found("Here:\n```json\n[\n\t" + cat + "\n]\n```\nThat is all."), kOneCat);
  EXPECT_EQ(found(R"({"objects": [)" + cat + R"(], "count": 1})"), kOneCat);
  EXPECT_EQ(found("A set {1, 2}, a \"word\", and f(x) = {x}: " + cat), kOneCat);
  const Names two = {"cat 1.0 2.0 3.0 4.0", "cat 1.0 2.0 3.0 4.0"};
  EXPECT_EQ(found("[" + cat + ", " + cat + "]"), two);
  EXPECT_EQ(found("```json\n[" + cat + "]\n```\nand\n```json\n[" + cat + "]\n```"), two);
}

TEST(FindBoxes, points_and_boxes_of_one_object) {
  EXPECT_EQ(found(R"({"point_2d": [5, -6.5], "label": "eye"})"), Names{"eye 5.0 -6.5"});
  EXPECT_EQ(
      found(R"({"label": "cat", "point_2d": [5, 6], "seen": true, "bbox_2d": [1, 2, 3, 4]})"),
      (Names{"cat 5.0 6.0", "cat 1.0 2.0 3.0 4.0"})
  );
}

// Else a long label could be repeated many times.
TEST(FindBoxes, of_a_key_that_comes_again_the_last_counts) {
  EXPECT_EQ(
      found(R"({"bbox_2d": [1, 2, 3, 4], "point_2d": [1, 2], "bbox_2d": [5, 6, 7, 8]})"),
      (Names{" 1.0 2.0", " 5.0 6.0 7.0 8.0"})
  );
}

TEST(FindBoxes, labels_are_decoded_and_may_be_missing) {
  EXPECT_EQ(found(R"({"bbox_2d": [1, 2, 3, 4]})"), Names{" 1.0 2.0 3.0 4.0"});
  EXPECT_EQ(found(R"({"bbox_2d": [1, 2, 3, 4], "label": null})"), Names{" 1.0 2.0 3.0 4.0"});
  EXPECT_EQ(
      found(R"({"bbox_2d": [1, 2, 3, 4], "label": "a \"}{[\u00e4]"})"),
      Names{"a \"}{[ä] 1.0 2.0 3.0 4.0"}
  );
  // A lone surrogate is no text.
  EXPECT_EQ(found(R"({"label": "\ud800", "bbox_2d": [1, 2, 3, 4]})"), Names{" 1.0 2.0 3.0 4.0"});
}

TEST(FindBoxes, labels_belong_to_their_own_object) {
  EXPECT_EQ(
      found(R"({"label": "outer", "parts": [{"bbox_2d": [1, 2, 3, 4]}], "bbox_2d": [5, 6, 7, 8]})"),
      (Names{" 1.0 2.0 3.0 4.0", "outer 5.0 6.0 7.0 8.0"})
  );
}

TEST(FindBoxes, of_json_that_was_cut_what_was_closed) {
  const std::string list = "[" + std::string(kCat) + ", " + std::string(kCat);
  const size_t second = kCat.size() + 3;
  for (size_t cut = 0; cut < list.size(); ++cut) {
    const size_t closed = cut > kCat.size() ? 1 : 0;
    EXPECT_EQ(found(list.substr(0, cut)).size(), closed) << list.substr(0, cut);
  }
  EXPECT_EQ(found(list).size(), 2U);
  // A string that never ends, ends with its line.
  EXPECT_EQ(found(list.substr(0, second + 30) + "\n" + std::string(kCat)).size(), 2U);
}

TEST(FindBoxes, of_other_numbers_none) {
  for (const std::string_view numbers :
       {"",
        "1, 2, 3",
        "1, 2, 3, 4, 5",
        "1, 2, 3, \"4\"",
        "1, 2, 3, null",
        "[1, 2, 3, 4]",
        "1, 2, 3, [4]",
        "1, 2, 3, 1e400",
        "1, 2, 3, 1000001",
        "1, 2, 3, 04",
        "1, 2, 3, 4x",
        "1, 2, 3, {}",
        "1, 2, 3, 0.00000000000000000000000000000000001"}) {
    EXPECT_EQ(found(R"({"bbox_2d": [)" + std::string(numbers) + "]}"), Names{}) << numbers;
  }
  EXPECT_EQ(found(R"({"bbox_2d": "1, 2, 3, 4"})"), Names{});
  EXPECT_EQ(found(R"({"bbox_3d": [1, 2, 3, 4], "point_2d": [1, 2, 3, 4]})"), Names{});
  EXPECT_EQ(found("[1, 2, 3, 4] and {1, 2, 3, 4}"), Names{});
  EXPECT_EQ(found(R"({"bbox_2d": [1, 2, 3, 4)})"), Names{});
  EXPECT_EQ(found(R"({"a": [1}, "bbox_2d": [1, 2, 3, 4]})"), Names{});
}

TEST(FindBoxes, json_may_be_64_levels_deep) {
  const auto count = [](size_t arrays) {
    const std::string deep = std::string(arrays, '[') + std::string(arrays, ']');
    return found(R"({"a": )" + deep + R"(, "bbox_2d": [1, 2, 3, 4]})").size();
  };
  EXPECT_EQ(count(63), 1U);
  EXPECT_EQ(count(64), 0U);
}

TEST(FindBoxes, what_is_no_json_hides_nothing_behind_it) {
  const std::string cat(kCat);
  for (const std::string_view before :
       {"{",
        "{{{",
        "[{",
        "{\"a\": ",
        "{\"a\" ",
        "}]",
        "{\"a\": [1, }",
        "{\"a\": nil, ",
        "\\{",
        "{\"bbox_2d\": [1, 2, ",
        "{\"a\nb"}) {
    EXPECT_EQ(found(std::string(before) + cat), kOneCat) << before;
  }
}

TEST(FindBoxes, pairs_with_the_text_in_front_as_label) {
  EXPECT_EQ(found_pairs("cat(1,2),(3,4)"), kOneCat);
  EXPECT_EQ(found_pairs("cat: (1,2),(3,4)."), kOneCat);
  EXPECT_EQ(found_pairs("Two:\n\"cat\" (1,2),(3,4)"), kOneCat);
  EXPECT_EQ(found_pairs("(1,2),(3,1000)"), Names{" 1.0 2.0 3.0 1000.0"});
  EXPECT_EQ(
      found_pairs("cat(1,2),(3,4), a dog(5,6),(7,8) and more"),
      (Names{"cat 1.0 2.0 3.0 4.0", "a dog 5.0 6.0 7.0 8.0"})
  );
  EXPECT_EQ(found_pairs("\xC3\xA4\xFF(1,2),(3,4)"), Names{"\xC3\xA4\xFF 1.0 2.0 3.0 4.0"});
}

TEST(FindBoxes, pairs_without_text_in_front_are_of_the_same_label) {
  const Names two = {"cats 1.0 2.0 3.0 4.0", "cats 5.0 6.0 7.0 8.0"};
  EXPECT_EQ(found_pairs("cats(1,2),(3,4)(5,6),(7,8)"), two);
  EXPECT_EQ(found_pairs("cats(1,2),(3,4), (5,6),(7,8)"), two);
  EXPECT_EQ(found_pairs("cats(1,2),(3,4)\n(5,6),(7,8)"), two);
}

TEST(FindBoxes, an_answer_has_lost_the_special_tokens_round_pairs) {
  const Tokenizer tokenizer = Tokenizer::load(test::source_dir() / "models/tiny-qwen2-vl-4bit");
  std::vector<int32_t> ids;
  const auto add = [&](const std::vector<int32_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
  };
  const auto token = [&](std::string_view name) {
    return std::vector<int32_t>{tokenizer.token_to_id(name).value()};
  };
  add(token("<|object_ref_start|>"));
  add(tokenizer.encode_text("cat"));
  add(token("<|object_ref_end|>"));
  add(token("<|box_start|>"));
  add(tokenizer.encode_text("(1,2),(3,4)"));
  add(token("<|box_end|>"));
  const std::string answer = tokenizer.decode(ids, SpecialTokens::skip);
  EXPECT_EQ(answer, "cat(1,2),(3,4)");
  EXPECT_EQ(found_pairs(answer), kOneCat);
}

TEST(FindBoxes, pairs_between_tokens_that_are_not_special) {
  const std::string label = "<|object_ref_start|>cats<|object_ref_end|>";
  const std::string box = "<|box_start|>(1,2),(3,4)<|box_end|>";
  const Names two = {"cats 1.0 2.0 3.0 4.0", "cats 1.0 2.0 3.0 4.0"};
  EXPECT_EQ(found_pairs("I see " + label + box + box + "."), two);
}

TEST(FindBoxes, chains_of_other_lengths_and_other_numbers_are_no_boxes) {
  for (const std::string_view text :
       {"(1,2)",
        "(1,2),(3,4),(5,6)",
        "(1,2),(3,4),(5,6),(7,8)",
        "(1,2),(3,",
        "(1,2), (3,4)",
        "(1, 2),(3, 4)",
        "(1.5,2),(3,4)",
        "(-1,2),(3,4)",
        "(12345,2),(3,4)",
        "(,2),(3,4)",
        "(1 2),(3,4)",
        "f(1,2,3),(3,4)"}) {
    EXPECT_EQ(found_pairs(text), Names{}) << text;
  }
  EXPECT_EQ(found_pairs("((1,2),(3,4)").size(), 1U);
  EXPECT_EQ(found_pairs("(9,(1,2),(3,4)").size(), 1U);
}

TEST(FindBoxes, pairs_are_looked_for_in_their_notation_only_and_behind_json) {
  EXPECT_EQ(found("cat(1,2),(3,4)"), Names{});
  EXPECT_EQ(found_pairs("dog(5,6),(7,8) " + std::string(kCat)), kOneCat);
}

TEST(FindBoxes, a_long_label_is_left_out_and_not_repeated) {
  EXPECT_EQ(found_pairs(std::string(256, 'a') + "(1,2),(3,4)")[0].size(), 256U + 16);
  EXPECT_EQ(found_pairs(std::string(257, 'a') + "(1,2),(3,4)")[0].size(), 16U);
}

std::string repeated(std::string_view piece, size_t size) {
  std::string text;
  while (text.size() < size) {
    text += piece;
  }
  return text;
}

// Quadratic time would be hours here.
TEST(FindBoxes, a_hostile_text_takes_linear_time) {
  constexpr size_t kSize = 4 << 20;
  for (const std::string_view piece :
       {"[{\"bbox_2d\": [",
        "(1,",
        "(",
        "(1,2),",
        "{",
        "[",
        "\"",
        "\\",
        "{\"",
        "{\"\\",
        "{ ",
        "{\"a\":",
        "{\"bbox_2d\":[1,2,3,",
        "{\"a\": \"{",
        "<|object_ref_start|>(1,2),(3,4)",
        "1",
        "(1",
        "{\"bbox_2d\":[1",
        "{\"label\":\"",
        "}",
        "{\"a\":{\"b\":1},",
        "(1,2),(3,4)",
        "(1,2),(3,4) "}) {
    const std::string text = repeated(piece, kSize);
    const size_t boxes = find_boxes(text, BoxNotation::pairs).size();
    EXPECT_LE(boxes, kSize / piece.size() + 1) << piece;
    find_boxes("{\"bbox_2d\": [" + text, BoxNotation::pairs);
    find_boxes("{\"label\": \"" + text, BoxNotation::pairs);
  }
}

TEST(FindBoxes, any_bytes_will_do) {
  constexpr std::string_view kParts[] = {
      "{",
      "}",
      "[",
      "]",
      "\"",
      "\\",
      ",",
      ":",
      "(",
      ")",
      "1",
      "-2.5",
      "\"bbox_2d\"",
      "\"label\"",
      "\"point_2d\"",
      "true",
      "\n",
      "\xFF",
      "\xC3",
      " ",
      "(1,2),(3,4)",
      "{\"bbox_2d\":[1,2,3,4]}"
  };
  std::mt19937 random(5);
  size_t boxes = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t i = random() % 24; i > 0; --i) {
      text += kParts[random() % std::size(kParts)];
    }
    text += random() % 8 == 0 ? std::string(1, '\0') : "";
    for (const BoxNotation notation : {BoxNotation::json, BoxNotation::pairs}) {
      for (const Box& box : find_boxes(text, notation)) {
        ASSERT_TRUE(box.numbers.size() == 4 || box.numbers.size() == 2) << text;
        ++boxes;
      }
    }
  }
  EXPECT_GT(boxes, 1000U);
}

}  // namespace
}  // namespace whimbrel
