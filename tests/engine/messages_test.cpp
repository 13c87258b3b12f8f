#include "engine/messages.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {
namespace {

ChatInput read(const char* json) {
  return read_messages(Json::parse(json), [](const std::string& url, MediaKind kind) {
    return MediaInput{.source = url, .bytes = "bytes of " + url, .kind = kind};
  });
}

std::string failure(const char* json) {
  try {
    read(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    return error.what();
  }
  return "";
}

TEST(Messages, text_stays_as_it_is) {
  const ChatInput input = read(R"([{"role": "system", "content": "Be brief."},
                                   {"role": "user", "content": "Hi", "name": "Ann"}])");
  EXPECT_EQ(
      input.chat.messages.dump(),
      R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi","name":"Ann"}])"
  );
  EXPECT_TRUE(input.media.empty());
}

TEST(Messages, pictures_are_collected_in_the_order_of_the_parts) {
  const ChatInput input = read(R"([
      {"role": "user", "content": [
          {"type": "image_url", "image_url": {"url": "a.png", "detail": "low"}},
          {"type": "text", "text": "and"},
          {"type": "image_url", "image_url": "b.png"}]},
      {"role": "assistant", "content": "Yes."},
      {"role": "user", "content": [{"type": "input_image", "image_url": "c.png"},
                                   {"type": "input_text", "text": "this?"}]}])");
  ASSERT_EQ(input.media.size(), 3U);
  EXPECT_EQ(input.media[0].source, "a.png");
  EXPECT_EQ(input.media[1].bytes, "bytes of b.png");
  EXPECT_EQ(input.media[2].source, "c.png");
  EXPECT_EQ(
      input.chat.messages[0]["content"].dump(),
      R"([{"type":"image"},{"type":"text","text":"and"},{"type":"image"}])"
  );
  EXPECT_EQ(
      input.chat.messages[2]["content"].dump(),
      R"([{"type":"image"},{"type":"text","text":"this?"}])"
  );
}

TEST(Messages, a_video_is_a_file_or_its_frames) {
  const ChatInput input = read(R"([{"role": "user", "content": [
      {"type": "video_url", "video_url": {"url": "a.mp4"}},
      {"type": "image_url", "image_url": "b.png"},
      {"type": "video", "video": ["c.png", "d.png"], "fps": 1.5},
      {"type": "video", "video": ["e.png"]}]}])");
  ASSERT_EQ(input.media.size(), 4U);
  EXPECT_EQ(input.media[0].kind, MediaKind::video);
  EXPECT_EQ(input.media[0].bytes, "bytes of a.mp4");
  EXPECT_TRUE(input.media[0].frames.empty());
  EXPECT_EQ(input.media[1].kind, MediaKind::image);
  EXPECT_EQ(input.media[2].kind, MediaKind::video);
  EXPECT_EQ(input.media[2].source, "c.png");
  EXPECT_EQ(input.media[2].fps, 1.5);
  ASSERT_EQ(input.media[2].frames.size(), 2U);
  EXPECT_EQ(input.media[2].frames[1].source, "d.png");
  EXPECT_EQ(input.media[2].frames[1].bytes, "bytes of d.png");
  EXPECT_FALSE(input.media[3].fps);
  EXPECT_EQ(
      input.chat.messages[0]["content"].dump(),
      R"([{"type":"video"},{"type":"image"},{"type":"video"},{"type":"video"}])"
  );
}

TEST(Messages, a_video_has_a_bounded_number_of_frames) {
  const auto with_frames = [](int count) {
    std::string files;
    for (int i = 0; i < count; ++i) {
      files += i == 0 ? "\"a.png\"" : ",\"a.png\"";
    }
    return R"([{"role":"user","content":[{"type":"video","video":[)" + files + "]}]}]";
  };
  EXPECT_EQ(read(with_frames(768).c_str()).media[0].frames.size(), 768U);
  EXPECT_NE(failure(with_frames(769).c_str()).find("got 769 frames"), std::string::npos);
  EXPECT_NE(failure(with_frames(0).c_str()).find("got 0 frames"), std::string::npos);
}

TEST(Messages, an_object_may_bring_tools) {
  const ChatInput input =
      read(R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function"}]})");
  EXPECT_EQ(input.chat.tools.dump(), R"([{"type":"function"}])");
  EXPECT_EQ(input.chat.messages.size(), 1U);
}

TEST(Messages, developer_is_system) {
  EXPECT_EQ(read(R"([{"role": "developer", "content": "x"}])").chat.messages[0]["role"], "system");
}

TEST(Messages, an_assistant_that_calls_tools_may_say_nothing) {
  EXPECT_EQ(failure(R"([{"role": "assistant", "content": null, "tool_calls": [{}]}])"), "");
  EXPECT_EQ(failure(R"([{"role": "assistant", "tool_calls": [{}]}])"), "");
  EXPECT_NE(failure(R"([{"role": "assistant", "content": null}])"), "");
}

TEST(Messages, what_is_wrong_is_named_with_its_place) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"[]", "[messages]"},
      {"{}", "[messages]"},
      {"\"x\"", "[messages]"},
      {"[1]", "[messages[0]]"},
      {R"([{"role": "user", "content": "x"}, {"content": "x"}])", "[messages[1]] got role"},
      {R"([{"role": "king", "content": "x"}])", "got role \"king\""},
      {R"([{"role": 1, "content": "x"}])", "got role 1"},
      {R"([{"role": "user"}])", "[messages[0].content]"},
      {R"([{"role": "user", "content": 5}])", "[messages[0].content] got 5"},
      {R"([{"role": "user", "content": ["x"]}])", "[messages[0].content[0]]"},
      {R"([{"role": "user", "content": [{"type": "text"}]}])", "expected a text"},
      {R"([{"role": "user", "content": [{"type": "image_url"}]}])", "expected an image_url"},
      {R"([{"role": "user", "content": [{"type": "audio"}]}])", "expected a part of type"},
      {R"([{"role": "user", "content": [{"type": "video_url"}]}])", "expected a video_url"},
      {R"([{"role": "user", "content": [{"type": "video", "video": "a.mp4"}]}])", "list of frames"},
      {R"([{"role": "user", "content": [{"type": "video", "video": [5]}]}])", "got 5"},
      {R"([{"role": "user", "content": [{"type": "video", "video": ["a"], "fps": 0}]}])",
       "got fps 0"},
      {R"([{"role": "user", "content": [{"type": "video", "video": ["a"], "fps": "2"}]}])",
       "got fps"},
  };
  for (const auto& [json, expected] : rows) {
    EXPECT_NE(failure(json).find(expected), std::string::npos) << json << " gave " << failure(json);
  }
}

TEST(DataUrl, carries_base64) {
  EXPECT_EQ(read_data_url("data:image/png;base64,Zm9v", MediaKind::image).bytes, "foo");
  EXPECT_EQ(read_data_url("data:video/mp4;base64,Zm9v", MediaKind::video).bytes, "foo");
  for (const char* url : {"data:image/png,Zm9v", "data:;base64,Z", "image/png;base64,Zm9v"}) {
    EXPECT_THROW(read_data_url(url, MediaKind::image), Error) << url;
  }
}

TEST(DataUrl, a_video_of_jpegs_is_a_list_of_frames) {
  const MediaInput video = read_data_url("data:video/jpeg;base64,Zm9v,YmFy", MediaKind::video);
  EXPECT_EQ(video.kind, MediaKind::video);
  EXPECT_FALSE(video.fps);
  ASSERT_EQ(video.frames.size(), 2U);
  EXPECT_EQ(video.frames[0].bytes, "foo");
  EXPECT_EQ(video.frames[1].bytes, "bar");
  EXPECT_THROW(read_data_url("data:video/jpeg;base64,Zm9v,Z", MediaKind::video), Error);
  EXPECT_THROW(read_data_url("data:image/jpeg;base64,Zm9v,YmFy", MediaKind::image), Error);
}

TEST(DataUrl, thousands_of_frames_are_refused) {
  const std::string url = "data:video/jpeg;base64," + std::string(5000, ',');
  try {
    read_data_url(url, MediaKind::video);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("got 5001 frames"), std::string::npos);
  }
}

}  // namespace
}  // namespace whimbrel
