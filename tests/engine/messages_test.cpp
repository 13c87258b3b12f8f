#include "engine/messages.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {
namespace {

ChatInput read(const char* json) {
  return read_messages(Json::parse(json), [](const std::string& url) {
    return MediaInput{url, "bytes of " + url};
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
      {R"([{"role": "user", "content": [{"type": "video_url", "video_url": "a.mp4"}]}])", "video"},
  };
  for (const auto& [json, expected] : rows) {
    EXPECT_NE(failure(json).find(expected), std::string::npos) << json << " gave " << failure(json);
  }
}

TEST(DataUrl, carries_base64) {
  EXPECT_EQ(read_data_url("data:image/png;base64,Zm9v").bytes, "foo");
  for (const char* url : {"data:image/png,Zm9v", "data:;base64,Z", "image/png;base64,Zm9v"}) {
    EXPECT_THROW(read_data_url(url), Error) << url;
  }
}

}  // namespace
}  // namespace whimbrel
