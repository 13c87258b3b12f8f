#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/prepare.h"

namespace whimbrel {

/// A chat's messages as people save them (OpenAI's form), and the bytes of all that is looked at in
/// them, read once. What is attached goes with the next question.
class Conversation {
 public:
  /// From a messages file's JSON, as `generate --messages` takes it; paths in it are relative to
  /// `folder`. Throws Error(Fault::input) that names the message and part.
  static Conversation read(const Json& json, const std::filesystem::path& folder);

  /// The system message; none where it is empty.
  void set_system(const std::string& text);

  /// A picture or video file for the next question. Throws Error(Fault::input).
  void attach(const std::filesystem::path& path, MediaKind kind);
  size_t attached() const { return attached_.size(); }

  /// A question: what is attached, then the text, which may be empty where something is.
  void ask(const std::string& text);

  /// The last question is not to be answered: its pictures and videos are attached again.
  void take_back();

  /// The answer to the last question.
  void answer(const std::string& text, const std::string& reasoning);

  /// Forgets all but the system message.
  void clear();

  /// Questions and answers so far.
  size_t turns() const;

  /// For prepare_chat, without template variables.
  ChatInput input() const;

  /// For a messages file: a list, or an object where there are tools. Paths in it are absolute.
  Json json() const;

 private:
  struct Attachment {
    Json part;  // of a message's content
    MediaInput input;
  };

  bool has_system() const;

  Json messages_ = Json::array();
  Json tools_ = nullptr;
  std::vector<MediaInput> media_;  // of the messages, as read_messages asks for them
  std::vector<Attachment> attached_;
  std::vector<Attachment> asked_;  // of the last question
};

}  // namespace whimbrel
