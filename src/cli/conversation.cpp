#include "cli/conversation.h"

#include <utility>

#include "cli/input_files.h"
#include "engine/messages.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

/// A URL of a messages file with its path made absolute; what is no path stays.
std::string absolute_url(const std::string& url, const fs::path& folder) {
  constexpr std::string_view kFileScheme = "file://";
  if (url.starts_with(kFileScheme)) {
    return absolute_url(url.substr(kFileScheme.size()), folder);
  }
  const bool is_path = !url.starts_with("data:") && url.find("://") == std::string::npos;
  return is_path ? fs::absolute(folder / url).lexically_normal().string() : url;
}

/// Makes the path absolute that `value` is or has as its `url`. What is neither is left for
/// read_messages to refuse.
void make_url_absolute(Json& value, const fs::path& folder) {
  Json& url = value.is_object() && value.contains("url") ? value["url"] : value;
  if (url.is_string()) {
    url = absolute_url(url.get<std::string>(), folder);
  }
}

void make_paths_absolute(Json& part, const fs::path& folder) {
  for (const char* key : {"image_url", "video_url"}) {
    if (part.is_object() && part.contains(key)) {
      make_url_absolute(part[key], folder);
    }
  }
  if (part.is_object() && part.contains("video") && part["video"].is_array()) {
    for (Json& frame : part["video"]) {
      make_url_absolute(frame, folder);
    }
  }
}

Json with_absolute_paths(Json messages, const fs::path& folder) {
  if (!messages.is_array()) {
    return messages;
  }
  for (Json& message : messages) {
    if (message.is_object() && message.contains("content") && message["content"].is_array()) {
      for (Json& part : message["content"]) {
        make_paths_absolute(part, folder);
      }
    }
  }
  return messages;
}

}  // namespace

Conversation Conversation::read(const Json& json, const fs::path& folder) {
  Conversation conversation;
  const bool has_more = json.is_object() && json.contains("messages");
  conversation.messages_ = with_absolute_paths(has_more ? json["messages"] : json, folder);
  const auto read_and_keep = [&](const std::string& url, MediaKind kind) {
    return conversation.media_.emplace_back(read_media_url(url, kind, fs::path()));
  };
  read_messages(conversation.messages_, read_and_keep);
  if (has_more && has_value(json, "tools")) {
    conversation.tools_ = json["tools"];
  }
  return conversation;
}

bool Conversation::has_system() const {
  if (messages_.empty()) {
    return false;
  }
  const Json& role = messages_.front()["role"];
  return role == "system" || role == "developer";
}

void Conversation::set_system(const std::string& text) {
  if (has_system()) {
    messages_.erase(messages_.begin());
  }
  if (!text.empty()) {
    messages_.insert(messages_.begin(), Json{{"role", "system"}, {"content", text}});
  }
}

void Conversation::attach(const fs::path& path, MediaKind kind) {
  const std::string url = fs::absolute(path).lexically_normal().string();
  const std::string type = kind == MediaKind::image ? "image_url" : "video_url";
  attached_.push_back({
      .part = {{"type", type}, {type, {{"url", url}}}},
      .input = read_media_file(url, path.string(), kind),
  });
}

void Conversation::ask(const std::string& text) {
  asked_ = std::exchange(attached_, {});
  Json content = Json::array();
  for (const Attachment& attachment : asked_) {
    content.push_back(attachment.part);
    media_.push_back(attachment.input);
  }
  if (!text.empty()) {
    content.push_back({{"type", "text"}, {"text", text}});
  }
  // Templates of text models print nothing of a list.
  messages_.push_back({{"role", "user"}, {"content", asked_.empty() ? Json(text) : content}});
}

void Conversation::take_back() {
  media_.resize(media_.size() - asked_.size());
  attached_ = std::exchange(asked_, {});
  messages_.erase(messages_.size() - 1);
}

void Conversation::answer(const std::string& text, const std::string& reasoning) {
  Json message = {{"role", "assistant"}, {"content", text}};
  if (!reasoning.empty()) {
    message["reasoning_content"] = reasoning;
  }
  messages_.push_back(std::move(message));
  asked_.clear();
}

void Conversation::clear() {
  const Json system = has_system() ? messages_.front() : Json();
  *this = Conversation();
  if (!system.is_null()) {
    messages_.push_back(system);
  }
}

size_t Conversation::turns() const {
  return messages_.size() - (has_system() ? 1 : 0);
}

ChatInput Conversation::input() const {
  size_t next = 0;
  ChatInput input =
      read_messages(messages_, [&](const std::string&, MediaKind) { return media_.at(next++); });
  input.chat.tools = tools_;
  return input;
}

Json Conversation::json() const {
  return tools_.is_null() ? messages_ : Json{{"messages", messages_}, {"tools", tools_}};
}

}  // namespace whimbrel
