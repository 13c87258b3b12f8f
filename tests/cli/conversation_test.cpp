#include "cli/conversation.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace whimbrel {
namespace {

namespace fs = std::filesystem;

/// A folder with two files that stand for pictures; nothing here decodes them.
class ConversationTest : public testing::Test {
 protected:
  ConversationTest()
      : folder_(fs::path(testing::TempDir()) / ("whimbrel_chat_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "a.png") << "bytes of a";
    std::ofstream(folder_ / "b.png") << "bytes of b";
  }
  ~ConversationTest() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

std::vector<std::string> bytes_of(const Conversation& conversation) {
  std::vector<std::string> bytes;
  for (const MediaInput& medium : conversation.input().media) {
    bytes.push_back(medium.bytes);
  }
  return bytes;
}

using Bytes = std::vector<std::string>;

TEST_F(ConversationTest, messages_are_in_openais_form) {
  Conversation chat;
  chat.set_system("Be brief.");
  chat.ask("Hello");
  chat.answer("Hi", "");
  EXPECT_EQ(
      chat.json().dump(),
      R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"},)"
      R"({"role":"assistant","content":"Hi"}])"
  );
  EXPECT_EQ(chat.turns(), 2U);
}

TEST_F(ConversationTest, what_is_attached_goes_with_the_next_question) {
  Conversation chat;
  chat.attach(path("a.png"), MediaKind::image);
  EXPECT_EQ(chat.attached(), 1U);
  chat.ask("What?");
  EXPECT_EQ(chat.attached(), 0U);
  EXPECT_EQ(
      chat.json()[0]["content"].dump(),
      R"([{"type":"image_url","image_url":{"url":")" + path("a.png") +
          R"("}},{"type":"text","text":"What?"}])"
  );
  chat.answer("A", "");
  chat.attach(path("b.png"), MediaKind::image);
  chat.ask("And this?");
  EXPECT_EQ(bytes_of(chat), (Bytes{"bytes of a", "bytes of b"}));
}

TEST_F(ConversationTest, a_file_is_read_once) {
  Conversation chat;
  chat.attach(path("a.png"), MediaKind::image);
  fs::remove(folder_ / "a.png");
  chat.ask("What?");
  EXPECT_EQ(bytes_of(chat), Bytes{"bytes of a"});
}

TEST_F(ConversationTest, a_question_that_is_taken_back_leaves_its_pictures_attached) {
  Conversation chat;
  chat.attach(path("a.png"), MediaKind::image);
  chat.ask("What?");
  chat.answer("A", "");
  chat.attach(path("b.png"), MediaKind::image);
  chat.ask("And this?");
  chat.take_back();
  EXPECT_EQ(chat.turns(), 2U);
  EXPECT_EQ(chat.attached(), 1U);
  EXPECT_EQ(bytes_of(chat), Bytes{"bytes of a"});
  chat.ask("Again?");
  EXPECT_EQ(bytes_of(chat), (Bytes{"bytes of a", "bytes of b"}));
}

TEST_F(ConversationTest, a_file_that_is_missing_changes_nothing) {
  Conversation chat;
  EXPECT_THROW(chat.attach(path("c.png"), MediaKind::image), Error);
  EXPECT_EQ(chat.attached(), 0U);
}

TEST_F(ConversationTest, the_system_message_is_replaced_and_taken_away) {
  Conversation chat;
  chat.ask("Hello");
  chat.set_system("A");
  chat.set_system("B");
  EXPECT_EQ(chat.json()[0]["content"], "B");
  EXPECT_EQ(chat.json().size(), 2U);
  chat.set_system("");
  EXPECT_EQ(chat.json()[0]["content"], "Hello");
}

TEST_F(ConversationTest, clear_leaves_the_system_message_alone) {
  Conversation chat;
  chat.set_system("A");
  chat.attach(path("a.png"), MediaKind::image);
  chat.ask("Hello");
  chat.answer("Hi", "");
  chat.attach(path("b.png"), MediaKind::image);
  chat.clear();
  EXPECT_EQ(chat.json().dump(), R"([{"role":"system","content":"A"}])");
  EXPECT_EQ(chat.attached(), 0U);
  EXPECT_EQ(chat.turns(), 0U);
}

TEST_F(ConversationTest, reasoning_is_kept_beside_the_answer) {
  Conversation chat;
  chat.ask("Hello");
  chat.answer("Hi", "Hm.");
  EXPECT_EQ(chat.json()[1]["reasoning_content"], "Hm.");
  EXPECT_EQ(chat.json()[1]["content"], "Hi");
}

TEST_F(ConversationTest, what_is_saved_can_be_read) {
  Conversation chat;
  chat.set_system("S");
  chat.attach(path("a.png"), MediaKind::image);
  chat.ask("What?");
  chat.answer("A", "Hm.");
  const Conversation again = Conversation::read(chat.json(), "/elsewhere");
  EXPECT_EQ(again.json(), chat.json());
  EXPECT_EQ(bytes_of(again), Bytes{"bytes of a"});
}

TEST_F(ConversationTest, paths_of_a_file_are_made_absolute) {
  const Json read = Json::parse(R"({"tools": [{"a": 1}], "messages": [{"role": "user", "content": [
      {"type": "image_url", "image_url": "a.png"},
      {"type": "image_url", "image_url": {"url": "file://b.png", "detail": "low"}},
      {"type": "image_url", "image_url": "data:image/png;base64,QQ=="},
      {"type": "video", "video": ["a.png", "./b.png"]}]}]})");
  const Conversation chat = Conversation::read(read, folder_);
  const Json saved = chat.json();
  const Json& parts = saved["messages"][0]["content"];
  EXPECT_EQ(parts[0]["image_url"], path("a.png"));
  EXPECT_EQ(parts[1]["image_url"]["url"], path("b.png"));
  EXPECT_EQ(parts[1]["image_url"]["detail"], "low");
  EXPECT_EQ(parts[2]["image_url"], "data:image/png;base64,QQ==");
  EXPECT_EQ(parts[3]["video"], Json({path("a.png"), path("b.png")}));
  EXPECT_EQ(saved["tools"], read["tools"]);
  const ChatInput input = chat.input();
  ASSERT_EQ(input.media.size(), 4U);
  EXPECT_EQ(input.media[2].bytes, "A");
  EXPECT_EQ(input.media[3].frames.size(), 2U);
  EXPECT_EQ(input.media[3].frames[1].bytes, "bytes of b");
  EXPECT_EQ(input.chat.tools, read["tools"]);
}

TEST_F(ConversationTest, what_is_no_conversation_is_refused) {
  for (const char* json :
       {"3",
        "{}",
        "[]",
        R"([{"role": "judge", "content": "x"}])",
        R"([{"role": "user", "content": [{"type": "image_url"}]}])",
        R"([{"role": "user", "content": [{"type": "video", "video": [1]}]}])"}) {
    EXPECT_THROW(Conversation::read(Json::parse(json), folder_), Error) << json;
  }
}

}  // namespace
}  // namespace whimbrel
