#include "text/reasoning.h"

#include <gtest/gtest.h>

#include "tests/text/stream_cuts.h"

namespace whimbrel {
namespace {

ReasoningPiece part(const std::vector<std::string>& pieces, bool opened) {
  ReasoningStream stream(opened);
  ReasoningPiece all;
  const auto add = [&](const ReasoningPiece& piece) {
    all.reasoning += piece.reasoning;
    all.text += piece.text;
  };
  for (const std::string& piece : pieces) {
    add(stream.push(piece));
  }
  add(stream.finish());
  return all;
}

struct Case {
  std::string answer;
  bool opened;
  std::string reasoning;
  std::string text;
};

const std::vector<Case> kCases = {
    {"<think>\nso\n</think>\n\nYes.", false, "so", "Yes."},
    {"so\n</think>\n\nYes.", true, "so", "Yes."},
    {"\n<think>so</think>Yes.\n", false, "so", "Yes.\n"},
    {"Yes.", false, "", "Yes."},
    {"  Yes.", false, "", "  Yes."},
    {"  ", false, "", "  "},
    {"", false, "", ""},
    {"", true, "", ""},
    {"<thi", false, "", "<thi"},
    {"<thin>k", false, "", "<thin>k"},
    {"<<think>a</think>b", false, "", "<<think>a</think>b"},
    {"a <think>b</think>", false, "", "a <think>b</think>"},
    {"<think></think>a", false, "", "a"},
    {"<think>\n\n</think>\n\n", false, "", ""},
    {"<think>never closed \n", false, "never closed \n", ""},
    {"a </thi", true, "a </thi", ""},
    {"a<</think>b", true, "a<", "b"},
    {"a</think</think>b", true, "a</think", "b"},
    {"a </ b </think> c </think> d", true, "a </ b", "c </think> d"},
    {"<think>one</think><think>two</think>", false, "one", "<think>two</think>"},
    {"<think>\xE4\xBD\xA0</think>\xE5\xA5\xBD", false, "\xE4\xBD\xA0", "\xE5\xA5\xBD"},
};

TEST(ReasoningStream, parts_an_answer_however_it_is_cut) {
  for (const Case& one : kCases) {
    for_each_cut(one.answer, [&](const std::vector<std::string>& pieces) {
      const ReasoningPiece parted = part(pieces, one.opened);
      ASSERT_EQ(parted.reasoning, one.reasoning) << one.answer << " in " << pieces.size();
      ASSERT_EQ(parted.text, one.text) << one.answer << " in " << pieces.size();
    });
  }
}

TEST(ReasoningStream, holds_back_what_may_become_a_tag) {
  ReasoningStream stream(true);
  EXPECT_EQ(stream.push("so </th").reasoning, "so");
  EXPECT_TRUE(stream.in_reasoning());
  EXPECT_EQ(stream.push("en").reasoning, " </then");
  EXPECT_EQ(stream.push("</think>").reasoning, "");
  EXPECT_FALSE(stream.in_reasoning());
  EXPECT_EQ(stream.push("\n\nYes").text, "Yes");
  EXPECT_EQ(stream.push(" \n").text, " \n");
}

TEST(ReasoningStream, is_linear_in_hostile_text) {
  for (const std::string part : {"</think", "<", "</", "\n", " </think"}) {
    std::string text;
    while (text.size() < 1'000'000) {
      text += part;
    }
    ReasoningStream stream(true);
    std::string reasoning = stream.push(text).reasoning;
    reasoning += stream.finish().reasoning;
    // White space alone, in front of any reasoning, is the tag's.
    EXPECT_EQ(reasoning.size(), part == "\n" ? 0 : text.size() - (part[0] == ' ' ? 1 : 0));
  }
}

TEST(ReasoningStream, opens_where_the_prompt_ends_inside_a_block) {
  EXPECT_TRUE(opens_reasoning("<|im_start|>assistant\n<think>\n"));
  EXPECT_TRUE(opens_reasoning("<think>"));
  EXPECT_FALSE(opens_reasoning("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning("<think> typed<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_FALSE(opens_reasoning(""));
}

}  // namespace
}  // namespace whimbrel
