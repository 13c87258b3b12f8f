#include "server/anthropic_messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace whimbrel::wire {

namespace {

std::string at(const std::string& path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

Json text_part(std::string_view text) {
  return {{"type", "text"}, {"text", text}};
}

/// Turns messages of content blocks into OpenAI's messages.
class BlockReader {
 public:
  explicit BlockReader(const RequestLimits& limits) : limits_(limits) {}

  void read_system(const Field& system) {
    if (system.value.is_string()) {
      add({{"role", "system"}, {"content", system.value}});
      return;
    }
    std::string text;
    for (size_t i = 0; i < to_list(system).size(); ++i) {
      Fields block(system.value[i], at(system.path, i));
      block.require("type");
      block.one_of("type", {"text"});
      text += (i > 0 ? "\n" : "") + to_text(block.require("text"));
    }
    if (!text.empty()) {
      add({{"role", "system"}, {"content", text}});
    }
  }

  void read_message(const Json& json, const std::string& path) {
    Fields fields(json, path);
    fields.require("role");
    const std::string role = *fields.one_of("role", {"user", "assistant"});
    const Field content = fields.require("content");
    if (content.value.is_string()) {
      add({{"role", role}, {"content", content.value}});
    } else if (!content.value.is_array()) {
      refuse(content.path, shown(content.value), "a string or a list of content blocks");
    } else if (role == "assistant") {
      read_answer(content);
    } else {
      read_turn(content);
    }
  }

  ChatMessages take() { return {.messages = std::move(messages_), .media = std::move(media_)}; }

 private:
  void add(Json message) { messages_.push_back(std::move(message)); }

  /// What a user says, behind the results of tools.
  void read_turn(const Field& content) {
    Json parts = Json::array();
    bool has_results = false;
    for (size_t i = 0; i < content.value.size(); ++i) {
      Fields block(content.value[i], at(content.path, i));
      block.require("type");
      const std::string type = *block.one_of("type", {"text", "image", "tool_result"});
      if (type == "tool_result") {
        if (!parts.empty()) {
          refuse(block.path_of("type"), "tool_result behind other content", "it in front of them");
        }
        read_result(block);
        has_results = true;
      } else {
        parts.push_back(read_part(block, type));
      }
    }
    if (!parts.empty() || !has_results) {
      add({{"role", "user"}, {"content", joined_texts(parts)}});
    }
  }

  void read_result(Fields& block) {
    const std::string id = to_text(block.require("tool_use_id"));
    block.boolean("is_error");
    add({{"role", "tool"}, {"tool_call_id", id}, {"content", read_result_content(block)}});
  }

  Json read_result_content(Fields& block) {
    const std::optional<Field> content = block.find("content");
    if (!content) {
      return "";
    }
    if (content->value.is_string()) {
      return content->value;
    }
    if (!content->value.is_array()) {
      refuse(content->path, shown(content->value), "a string or a list of content blocks");
    }
    Json parts = Json::array();
    for (size_t i = 0; i < content->value.size(); ++i) {
      Fields part(content->value[i], at(content->path, i));
      part.require("type");
      parts.push_back(read_part(part, *part.one_of("type", {"text", "image"})));
    }
    return joined_texts(parts);
  }

  Json read_part(Fields& block, std::string_view type) {
    return type == "text" ? text_part(to_text(block.require("text"))) : read_image(block);
  }

  Json read_image(Fields& block) {
    const Field source = block.require("source");
    Fields fields(source.value, source.path);
    fields.require("type");
    std::string url;
    if (fields.one_of("type", {"base64", "url"}) == "url") {
      url = to_text(fields.require("url"));
    } else {
      fields.require("media_type");
      const std::string type =
          *fields.one_of("media_type", {"image/jpeg", "image/png", "image/gif", "image/webp"});
      url = fmt::format("data:{};base64,{}", type, to_text(fields.require("data")));
    }
    if (std::cmp_greater_equal(media_.size(), limits_.images)) {
      refuse(source.path, fmt::format("over {} pictures", limits_.images), "fewer in one request");
    }
    media_.push_back({.param = source.path});
    return {{"type", "image_url"}, {"image_url", {{"url", std::move(url)}}}};
  }

  /// What the model said before: texts, reasoning and calls.
  void read_answer(const Field& content) {
    std::string text;
    std::string reasoning;
    Json calls = Json::array();
    for (size_t i = 0; i < content.value.size(); ++i) {
      Fields block(content.value[i], at(content.path, i));
      block.require("type");
      const std::string type = *block.one_of("type", {"text", "thinking", "tool_use"});
      if (type == "text") {
        text += to_text(block.require("text"));
      } else if (type == "thinking") {
        reasoning += to_text(block.require("thinking"));
      } else {
        calls.push_back(read_call(block));
      }
    }
    Json message = {{"role", "assistant"}, {"content", text}};
    if (!reasoning.empty()) {
      message["reasoning_content"] = reasoning;
    }
    if (!calls.empty()) {
      message["tool_calls"] = std::move(calls);
    }
    add(std::move(message));
  }

  static Json read_call(Fields& block) {
    const std::string id = to_text(block.require("id"));
    const std::string name = to_text(block.require("name"));
    const Field input = block.require("input");
    to_object(input);
    return {
        {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", input.value}}}
    };
  }

  const RequestLimits& limits_;
  Json messages_ = Json::array();
  std::vector<MediaPart> media_;
};

}  // namespace

ChatMessages read_anthropic_messages(
    const std::optional<Field>& system, const Field& messages, const RequestLimits& limits
) {
  const size_t count = to_list(messages).size();
  if (count < 1 || std::cmp_greater(count, limits.messages)) {
    refuse(
        messages.path,
        fmt::format("{} messages", count),
        fmt::format("from 1 to {}", limits.messages)
    );
  }
  BlockReader reader(limits);
  if (system) {
    reader.read_system(*system);
  }
  for (size_t i = 0; i < count; ++i) {
    reader.read_message(messages.value[i], at(messages.path, i));
  }
  return reader.take();
}

}  // namespace whimbrel::wire
