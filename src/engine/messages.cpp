#include "engine/messages.h"

#include <algorithm>
#include <array>

#include "base/base64.h"
#include "base/error.h"

namespace whimbrel {

namespace {

constexpr std::array<std::string_view, 5> kRoles = {
    "system", "developer", "user", "assistant", "tool"
};

[[noreturn]] void refuse(
    const std::string& where, const std::string& found, std::string_view want
) {
  throw Error(Fault::input, where, "got {}, expected {}", found, want);
}

std::string shortened(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 60);
}

/// The URL of an `image_url` part: the string itself, or the object's `url`.
std::string image_url(const Json& part, const std::string& where) {
  const Json value = part.value("image_url", Json());
  const Json url = value.is_object() ? value.value("url", Json()) : value;
  if (!url.is_string()) {
    refuse(where, shortened(part), "an image_url that is a string or has a url");
  }
  return url.get<std::string>();
}

/// Reads a conversation message by message; pictures are collected in order.
class MessageReader {
 public:
  explicit MessageReader(const MediaReader& read_media) : read_media_(read_media) {}

  Json message(const Json& message, const std::string& where) {
    if (!message.is_object()) {
      refuse(where, shortened(message), "an object with role and content");
    }
    Json read = message;
    read["role"] = role(message, where);
    read["content"] = content(message, where);
    return read;
  }

  std::vector<MediaInput> take_media() { return std::move(media_); }

 private:
  static std::string role(const Json& message, const std::string& where) {
    const Json role = message.value("role", Json());
    if (!role.is_string() || std::ranges::count(kRoles, role.get<std::string>()) == 0) {
      refuse(where, "role " + shortened(role), "one of system, developer, user, assistant, tool");
    }
    return role == "developer" ? "system" : role.get<std::string>();
  }

  Json content(const Json& message, const std::string& where) {
    const Json content = message.value("content", Json());
    const bool may_be_null = message["role"] == "assistant" && message.contains("tool_calls");
    if (content.is_string() || (content.is_null() && may_be_null)) {
      return content;
    }
    if (!content.is_array()) {
      refuse(where + ".content", shortened(content), "a string or a list of parts");
    }
    Json parts = Json::array();
    for (size_t i = 0; i < content.size(); ++i) {
      parts.push_back(part(content[i], fmt::format("{}.content[{}]", where, i)));
    }
    return parts;
  }

  Json part(const Json& part, const std::string& where) {
    const Json type = part.is_object() ? part.value("type", Json()) : Json();
    if (type == "text" || type == "input_text") {
      const Json text = part.value("text", Json());
      if (!text.is_string()) {
        refuse(where, shortened(part), "a text that is a string");
      }
      return {{"type", "text"}, {"text", text}};
    }
    if (type == "image_url" || type == "input_image") {
      media_.push_back(read_media_(image_url(part, where)));
      return {{"type", "image"}};
    }
    if (type == "video_url" || type == "video") {
      refuse(where, "a video", "text and pictures: videos can't be read yet");
    }
    refuse(where, shortened(part), "a part of type text or image_url");
  }

  const MediaReader& read_media_;
  std::vector<MediaInput> media_;
};

}  // namespace

ChatInput read_messages(const Json& json, const MediaReader& read_media) {
  const Json& messages = json.is_object() && json.contains("messages") ? json["messages"] : json;
  if (!messages.is_array() || messages.empty()) {
    refuse("messages", shortened(json), "a list of at least one message");
  }
  ChatInput input;
  MessageReader reader(read_media);
  for (size_t i = 0; i < messages.size(); ++i) {
    input.chat.messages.push_back(reader.message(messages[i], fmt::format("messages[{}]", i)));
  }
  if (json.is_object() && has_value(json, "tools")) {
    input.chat.tools = json["tools"];
  }
  input.media = reader.take_media();
  return input;
}

MediaInput read_data_url(std::string_view url) {
  constexpr std::string_view kMarker = ";base64,";
  const size_t marker = url.find(kMarker);
  if (!url.starts_with("data:") || marker == std::string_view::npos) {
    refuse("data:", std::string(url.substr(0, 40)), "data:<type>;base64,<data>");
  }
  const std::optional<std::string> bytes = decode_base64(url.substr(marker + kMarker.size()));
  if (!bytes) {
    refuse("data:", "invalid base64", "base64 of a picture's bytes");
  }
  return {"data:", *bytes};
}

}  // namespace whimbrel
