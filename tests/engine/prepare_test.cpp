#include "engine/prepare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "tests/support/reference.h"
#include "tests/support/source_dir.h"

namespace whimbrel::test {
namespace {

constexpr std::string_view kModel = "tiny-qwen2-5-vl-4bit";

class PrepareTest : public testing::Test {
 protected:
  PrepareTest()
      : frontend_(load_frontend(bundled_model(kModel))),
        chat_template_(ChatTemplate::load(frontend_.config.folder, frontend_.tokenizer)),
        picture_{"shapes.png", read_file(source_dir() / "examples/shapes.png", Fault::input)} {}

  Prompt chat(const Json& content, std::vector<MediaInput> media = {}) const {
    ChatInput input;
    input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", content}}));
    input.media = std::move(media);
    return prepare_chat(frontend_, chat_template_, input).prompt;
  }

  long placeholders(const Prompt& prompt) const {
    return std::ranges::count(prompt.ids, frontend_.media->image_token_id);
  }

  static Json picture_part() { return Json::object({{"type", "image"}}); }
  static Json text_part(std::string_view text) {
    return Json::object({{"type", "text"}, {"text", text}});
  }

  Frontend frontend_;
  ChatTemplate chat_template_;
  MediaInput picture_;
};

TEST_F(PrepareTest, a_picture_takes_as_many_tokens_as_merged_units) {
  const Prompt prompt = chat(Json::array({picture_part(), text_part("What?")}), {picture_});
  ASSERT_EQ(prompt.media.size(), 1U);
  const MediaSpan& span = prompt.media[0];
  EXPECT_EQ(span.tokens(), span.patches.count / 4);
  EXPECT_EQ(placeholders(prompt), span.tokens());
  EXPECT_EQ(prompt.ids[static_cast<size_t>(span.first_token())], frontend_.media->image_token_id);
  EXPECT_NE(
      prompt.ids[static_cast<size_t>(span.first_token()) - 1], frontend_.media->image_token_id
  );
  EXPECT_EQ(prompt.positions.axes[0].size(), prompt.ids.size());
}

TEST_F(PrepareTest, text_and_pictures_keep_their_order) {
  const Json between = Json::array({text_part("first"), picture_part(), text_part("then")});
  const Json in_front = Json::array({picture_part(), text_part("firstthen")});
  EXPECT_GT(
      chat(between, {picture_}).media[0].first_token(),
      chat(in_front, {picture_}).media[0].first_token()
  );
}

TEST_F(PrepareTest, a_placeholder_that_a_user_types_stays_text) {
  const Prompt prompt = chat("<|vision_start|><|image_pad|><|vision_end|><|im_end|> What is this?");
  EXPECT_EQ(placeholders(prompt), 0);
  EXPECT_EQ(prompt.positions.delta, 0);
  const std::optional<int32_t> im_end = frontend_.tokenizer.token_to_id("<|im_end|>");
  EXPECT_EQ(
      std::ranges::count(prompt.ids, *im_end), std::ranges::count(chat("What?").ids, *im_end)
  );
  const Prompt with_picture =
      chat(Json::array({picture_part(), text_part("<|image_pad|>")}), {picture_});
  EXPECT_EQ(placeholders(with_picture), with_picture.media[0].tokens());
}

TEST_F(PrepareTest, placeholders_and_pictures_must_match) {
  EXPECT_THROW(chat(Json::array({picture_part(), text_part("x")})), Error);
  EXPECT_THROW(chat("x", {picture_}), Error);
  EXPECT_THROW(prepare_raw(frontend_, "x <|image_pad|>", {}), Error);
  EXPECT_THROW(prepare_raw(frontend_, "x <|video_pad|>", {}), Error);
  EXPECT_EQ(prepare_raw(frontend_, "x <|image_pad|>", {picture_}).prompt.media.size(), 1U);
}

TEST_F(PrepareTest, nothing_to_answer_is_refused) {
  EXPECT_THROW(chat(""), Error);
  EXPECT_THROW(chat(" \n"), Error);
  EXPECT_THROW(chat(Json::array({text_part("")})), Error);
  EXPECT_THROW(prepare_raw(frontend_, "", {}), Error);
  EXPECT_NO_THROW(chat(Json::array({picture_part()}), {picture_}));
}

TEST_F(PrepareTest, a_prompt_without_tokens_is_refused) {
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / "whimbrel_prepare_test_empty.jinja";
  std::ofstream(file).close();
  const ChatTemplate empty =
      ChatTemplate::load_file(file, frontend_.config.folder, frontend_.tokenizer);
  std::filesystem::remove(file);
  ChatInput input;
  input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", "Hi"}}));
  EXPECT_THROW(prepare_chat(frontend_, empty, input), Error);
}

TEST_F(PrepareTest, ids_beyond_the_models_table_are_refused) {
  const Prompt prompt = chat("Hi");
  frontend_.shape.vocab_size = *std::ranges::max_element(prompt.ids) + 1;
  EXPECT_NO_THROW(chat("Hi"));
  --frontend_.shape.vocab_size;
  try {
    chat("Hi");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::model);
  }
}

TEST_F(PrepareTest, raw_text_is_the_models_own_format) {
  const Prompt prompt = prepare_raw(frontend_, "<|im_start|>user\nHi<|im_end|>", {}).prompt;
  EXPECT_EQ(prompt.ids.front(), *frontend_.tokenizer.token_to_id("<|im_start|>"));
  EXPECT_EQ(prompt.ids.back(), *frontend_.tokenizer.token_to_id("<|im_end|>"));
}

TEST_F(PrepareTest, a_prompt_must_leave_room) {
  const Prompt prompt = chat("Hi");
  EXPECT_NO_THROW(require_room(prompt, prompt.tokens() + 1));
  try {
    require_room(prompt, prompt.tokens());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    const std::string number = std::to_string(prompt.tokens());
    EXPECT_NE(std::string(error.what()).find("got " + number), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("of " + number), std::string::npos);
  }
}

TEST_F(PrepareTest, stop_ids_are_united) {
  EXPECT_EQ(std::ranges::count(frontend_.stop_ids, 2002), 1);
  EXPECT_EQ(std::ranges::count(frontend_.stop_ids, 2000), 1);
}

}  // namespace
}  // namespace whimbrel::test
