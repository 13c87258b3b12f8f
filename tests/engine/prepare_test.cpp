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

  Prompt chat(
      const Json& content, std::vector<MediaInput> media = {}, const MediaOptions& options = {}
  ) const {
    return prepared(content, std::move(media), options).prompt;
  }

  Prepared prepared(
      const Json& content, std::vector<MediaInput> media, const MediaOptions& options
  ) const {
    ChatInput input;
    input.chat.messages.push_back(Json::object({{"role", "user"}, {"content", content}}));
    input.media = std::move(media);
    return prepare_chat(frontend_, chat_template_, input, options);
  }

  const MediaRules& rules() const { return *frontend_.media; }

  /// A video of the stored clip's first frames.
  static MediaInput video(int frames, std::optional<double> fps) {
    MediaInput input{.source = "clip", .kind = MediaKind::video, .fps = fps};
    for (int i = 0; i < frames; ++i) {
      const std::string name = fmt::format("clip-{}.png", i);
      input.frames.push_back(
          {name, read_file(source_dir() / "tests/golden/reference/media" / name, Fault::input)}
      );
    }
    return input;
  }

  long placeholders(const Prompt& prompt) const {
    return std::ranges::count(prompt.ids, frontend_.media->image_token_id);
  }

  static Json picture_part() { return Json::object({{"type", "image"}}); }
  static Json video_part() { return Json::object({{"type", "video"}}); }
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

TEST_F(PrepareTest, media_beyond_the_context_are_refused_before_their_pixels_are_made) {
  const Json two = Json::array({picture_part(), picture_part(), text_part("What?")});
  const int64_t tokens = chat(two, {picture_, picture_}).media[0].tokens();
  EXPECT_NO_THROW(chat(two, {picture_, picture_}, {.context = 2 * tokens + 1}));
  EXPECT_THROW(chat(two, {picture_, picture_}, {.context = 2 * tokens}), Error);
  // Its patches would take terabytes.
  const MediaOptions huge{
      .min_pixels = int64_t{1} << 40, .max_pixels = int64_t{1} << 40, .context = 4096
  };
  EXPECT_THROW(chat(Json::array({picture_part()}), {picture_}, huge), Error);
  const Json clip = Json::array({video_part(), text_part("What?")});
  const int64_t frames = chat(clip, {video(4, 2)}).media[0].tokens();
  EXPECT_NO_THROW(chat(clip, {video(4, 2)}, {.context = frames + 1}));
  EXPECT_THROW(chat(clip, {video(4, 2)}, {.context = frames}), Error);
}

TEST_F(PrepareTest, media_that_take_too_long_are_refused) {
  const Json part = Json::array({picture_part(), text_part("What?")});
  EXPECT_THROW(chat(part, {picture_}, {.seconds = 0}), Error);
  EXPECT_THROW(chat(Json::array({video_part()}), {video(4, 2)}, {.seconds = 0}), Error);
  EXPECT_NO_THROW(chat(part, {picture_}, {.seconds = 60}));
}

TEST_F(PrepareTest, media_that_nobody_waits_for_are_not_read) {
  const Json two = Json::array({picture_part(), picture_part(), text_part("What?")});
  int questions = 0;
  const MediaOptions leaves{.cancelled = [&questions] { return ++questions == 2; }};
  try {
    chat(two, {picture_, picture_}, leaves);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::interrupted) << error.what();
  }
  EXPECT_EQ(questions, 2);
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

TEST_F(PrepareTest, a_video_is_one_run_in_the_order_of_the_prompt) {
  const Json content = Json::array({video_part(), picture_part(), video_part()});
  const Prompt prompt = chat(content, {video(3, 2.0), picture_, video(2, 2.0)});
  ASSERT_EQ(prompt.media.size(), 3U);
  const std::vector<MediaKind> kinds = {
      prompt.media[0].kind, prompt.media[1].kind, prompt.media[2].kind
  };
  EXPECT_EQ(kinds, (std::vector{MediaKind::video, MediaKind::image, MediaKind::video}));
  EXPECT_EQ(prompt.media[0].patches.grid_thw[0], 2);
  EXPECT_EQ(prompt.media[2].patches.grid_thw[0], 1);
  for (const MediaSpan& span : prompt.media) {
    ASSERT_EQ(span.runs.size(), 1U);
    EXPECT_EQ(span.tokens(), span.patches.count / 4);
    const auto [token, other] = span.kind == MediaKind::video
                                    ? std::pair(rules().video_token_id, rules().image_token_id)
                                    : std::pair(rules().image_token_id, rules().video_token_id);
    const auto first = prompt.ids.begin() + span.first_token();
    EXPECT_EQ(std::count(first, first + span.tokens(), token), span.tokens());
    EXPECT_EQ(std::count(first, first + span.tokens(), other), 0);
  }
}

/// The time axis of a video's patches, from its first position.
std::vector<int32_t> frame_times(const Prompt& prompt) {
  const MediaSpan& span = prompt.media[0];
  const int in_frame = span.tokens() / span.patches.grid_thw[0];
  const std::vector<int32_t>& axis = prompt.positions.axes[0];
  std::vector<int32_t> times;
  for (int at = span.first_token(); at < span.first_token() + span.tokens(); at += in_frame) {
    const auto here = static_cast<size_t>(at);
    times.push_back(axis[here] - axis[static_cast<size_t>(span.first_token())]);
  }
  return times;
}

TEST_F(PrepareTest, frames_stand_where_the_familys_clock_says) {
  const auto times = [this](VideoTiming timing, std::optional<double> fps) {
    frontend_.media->video_timing = timing;
    return frame_times(chat(Json::array({video_part()}), {video(8, fps)}));
  };
  frontend_.media->tokens_per_second = 2;
  using Times = std::vector<int32_t>;
  EXPECT_EQ(times(VideoTiming::by_frame, 0.5), (Times{0, 1, 2, 3}));
  EXPECT_EQ(times(VideoTiming::by_seconds, 2.0), (Times{0, 2, 4, 6}));
  EXPECT_EQ(times(VideoTiming::by_seconds, 4.0 / 3), (Times{0, 3, 6, 9}));  // 1.5 s a patch
  EXPECT_EQ(times(VideoTiming::by_seconds, 2.4), (Times{0, 1, 3, 5}));      // 1.67, 3.33, 5
  EXPECT_EQ(times(VideoTiming::by_seconds, std::nullopt), (Times{0, 2, 4, 6}));
}

TEST_F(PrepareTest, positions_that_no_int32_holds_are_refused) {
  frontend_.media->video_timing = VideoTiming::by_seconds;
  const auto refusal = [this](double tokens_per_second, int videos) -> std::string {
    frontend_.media->tokens_per_second = tokens_per_second;
    Json content = Json::array();
    for (int i = 0; i < videos; ++i) {
      content.push_back(video_part());
    }
    try {  // 20000 seconds a patch
      chat(content, std::vector(static_cast<size_t>(videos), video(8, 1e-4)));
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::input);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(1000, 1), "");  // 60 million a video
  EXPECT_EQ(refusal(1000, 17), "");
  EXPECT_TRUE(refusal(1000, 18).starts_with("[clip] got a video that with those before it"));
  EXPECT_TRUE(refusal(18000, 1).starts_with("[clip] got a video that reaches position 1"));
  EXPECT_TRUE(refusal(120000, 1).starts_with("[clip] got a video that reaches position 2"));
  EXPECT_TRUE(refusal(1e30, 1).starts_with("[clip] got a video that reaches position "));
}

TEST_F(PrepareTest, times_in_words_stand_in_front_of_their_patches) {
  frontend_.media->video_timing = VideoTiming::timestamped;
  const Prompt prompt = chat(Json::array({video_part(), text_part("What?")}), {video(5, 29.97)});
  ASSERT_EQ(prompt.media.size(), 1U);
  const MediaSpan& span = prompt.media[0];
  ASSERT_EQ(span.runs.size(), 3U);
  EXPECT_EQ(span.tokens(), span.patches.count / 4);
  std::string text = frontend_.tokenizer.decode(prompt.ids, SpecialTokens::keep);
  const std::string pad = "<|video_pad|>";
  for (size_t at = text.find(pad + pad); at != std::string::npos; at = text.find(pad + pad)) {
    text.erase(at, pad.size());
  }
  const auto block = [](std::string_view time) {
    return fmt::format("<{} seconds><|vision_start|><|video_pad|><|vision_end|>", time);
  };
  const std::string expected =
      "<|vision_start|>" + block("0.0") + block("0.1") + block("0.1") + "<|vision_end|>What?";
  EXPECT_NE(text.find(expected), std::string::npos) << text;
  for (const TokenRun& run : span.runs) {  // each patch is a block without time
    const auto at = static_cast<size_t>(run.first);
    const auto last = static_cast<size_t>(run.first + run.tokens - 1);
    EXPECT_EQ(prompt.positions.axes[0][at], prompt.positions.axes[0][at - 1] + 1);
    EXPECT_EQ(prompt.positions.axes[0][last], prompt.positions.axes[0][at]);
  }
}

TEST_F(PrepareTest, a_raw_prompt_may_place_a_video_with_times) {
  frontend_.media->video_timing = VideoTiming::timestamped;
  const Prompt prompt =
      prepare_raw(frontend_, "a <|video_pad|> b", {video(2, std::nullopt)}).prompt;
  const std::string text = frontend_.tokenizer.decode(prompt.ids, SpecialTokens::keep);
  EXPECT_TRUE(text.starts_with("a <0.0 seconds><|vision_start|><|video_pad|>")) << text;
  EXPECT_TRUE(text.ends_with("<|video_pad|><|vision_end|> b")) << text;
}

TEST_F(PrepareTest, videos_and_their_placeholders_must_match) {
  EXPECT_THROW(chat(Json::array({video_part()})), Error);
  EXPECT_THROW(chat("x", {video(2, 1.0)}), Error);
  EXPECT_THROW(chat(Json::array({picture_part()}), {video(2, 1.0)}), Error);
  EXPECT_THROW(prepare_raw(frontend_, "x <|image_pad|>", {video(2, 1.0)}), Error);
}

TEST_F(PrepareTest, a_frame_that_is_no_picture_is_named) {
  MediaInput broken = video(3, 1.0);
  broken.frames[1] = {"frame-1.png", "no picture"};
  try {
    chat(Json::array({video_part()}), {broken});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_TRUE(std::string_view(error.what()).starts_with("[frame-1.png]")) << error.what();
  }
}

TEST_F(PrepareTest, a_user_may_bound_pictures_and_frames) {
  const auto tokens = [this](const MediaOptions& options) {
    const Json content = Json::array({picture_part(), video_part()});
    const Prompt prompt = chat(content, {picture_, video(4, 1.0)}, options);
    return std::pair(prompt.media[0].tokens(), prompt.media[1].tokens() / 2);
  };
  const auto [picture, frame] = tokens({});
  EXPECT_EQ(tokens({.image_tokens = 20}), (std::pair(15, 16)));  // 3 x 5 and 4 x 4
  EXPECT_EQ(tokens({.image_tokens = 20}), tokens({.max_pixels = 20 * 28 * 28}));
  EXPECT_GT(tokens({.min_pixels = 40000}).second, frame);
  EXPECT_EQ(tokens({.min_pixels = 12544}), (std::pair(picture, frame)));
}

TEST_F(PrepareTest, a_picture_that_the_machine_cannot_afford_is_made_smaller_and_named) {
  const Json content = Json::array({picture_part()});
  const Size whole = chat(content, {picture_}).media[0].patches.resized;
  const Prepared small = prepared(content, {picture_}, {.affordable_pixels = 20 * 28 * 28});
  ASSERT_EQ(small.reduced.size(), 1U);
  EXPECT_EQ(small.reduced[0].source, "shapes.png");
  EXPECT_EQ(small.reduced[0].wanted, whole);
  EXPECT_EQ(small.reduced[0].taken, small.prompt.media[0].patches.resized);
  EXPECT_EQ(small.prompt.media[0].tokens(), 15);
}

TEST_F(PrepareTest, what_a_machine_affords_is_only_a_default) {
  const Json content = Json::array({picture_part()});
  const auto look = [&](const MediaOptions& options) {
    const Prepared found = prepared(content, {picture_}, options);
    EXPECT_TRUE(found.reduced.empty());
    return found.prompt.media[0].tokens();
  };
  constexpr int64_t kFew = 20 * 28 * 28;
  EXPECT_EQ(
      look({.max_pixels = 1 << 20, .affordable_pixels = kFew}), look({.max_pixels = 1 << 20})
  );
  EXPECT_EQ(look({.affordable_pixels = kFew, .image_tokens = 60}), look({.image_tokens = 60}));
  EXPECT_EQ(look({.affordable_pixels = 1 << 20}), look({})) << "the checkpoint's own bound is less";
}

/// Bounds that cross are the user's mistake, never the machine's.
TEST_F(PrepareTest, what_a_machine_affords_gives_way_to_the_least) {
  const Json content = Json::array({picture_part()});
  const MediaOptions options{.min_pixels = 50000, .affordable_pixels = 20000};
  const Size taken = prepared(content, {picture_}, options).prompt.media[0].patches.resized;
  EXPECT_GT(int64_t{taken.height} * taken.width, 40000);
}

TEST_F(PrepareTest, what_a_machine_affords_leaves_videos_alone) {
  const Json content = Json::array({video_part()});
  const Prepared found = prepared(content, {video(2, 1.0)}, {.affordable_pixels = 13000});
  EXPECT_TRUE(found.reduced.empty());
  EXPECT_EQ(found.prompt.media[0].tokens(), chat(content, {video(2, 1.0)}).media[0].tokens());
}

TEST_F(PrepareTest, bounds_of_a_whole_video_add_up_a_users) {
  frontend_.video_processor->rules.sizing = VideoSizing::per_video;
  frontend_.video_processor->pixels.max_pixels = 1 << 24;
  const auto tokens = [this](const MediaOptions& options) {
    return chat(Json::array({video_part()}), {video(4, 1.0)}, options).media[0].tokens();
  };
  EXPECT_EQ(tokens({.image_tokens = 20}), 2 * 16);  // 4 x 4 units: the aspect is kept
}

TEST_F(PrepareTest, contradictions_are_wrong_usage) {
  const std::vector<MediaOptions> rows = {
      {.max_pixels = 12543},  // below the checkpoint's min_pixels
      {.min_pixels = 56449},  // over its max_pixels
      {.image_tokens = 15},
      {.min_pixels = 30000, .max_pixels = 20000},
      {.fps = 2},  // frames of a list are not sampled
  };
  for (const MediaOptions& options : rows) {
    try {
      chat(Json::array({video_part()}), {video(2, 1.0)}, options);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::usage) << error.what();
    }
  }
  EXPECT_THROW(chat(Json::array({video_part()}), {video(5, 1.0)}, {.max_frames = 4}), Error);
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
