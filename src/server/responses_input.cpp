#include "server/responses_input.h"

#include <fmt/format.h>

namespace whimbrel::wire {

namespace {

std::string at(const std::string& path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

bool is_empty_text(const Json& content) {
  return content.is_string() && content.get_ref<const std::string&>().empty();
}

/// Turns items into messages. Reasoning and calls gather in one assistant message.
class ItemReader {
 public:
  explicit ItemReader(const RequestLimits& limits) : limits_(limits) {}

  void add(std::string_view role, Json content) {
    messages_.push_back({{"role", role}, {"content", std::move(content)}});
  }

  void read(const Json& json, const std::string& path) {
    Fields item(json, path);
    const std::string type =
        item.one_of("type", {"message", "function_call", "function_call_output", "reasoning"})
            .value_or("message");
    if (type == "message") {
      read_message(item);
    } else if (type == "function_call") {
      read_call(item);
    } else if (type == "function_call_output") {
      const std::string id = to_text(item.require("call_id"));
      messages_.push_back(
          {{"role", "tool"},
           {"tool_call_id", id},
           {"content", read_content(item.require("output"))}}
      );
    } else {
      read_reasoning(item);
    }
  }

  ChatMessages take() { return {.messages = std::move(messages_), .media = std::move(media_)}; }

 private:
  void read_message(Fields& item) {
    item.require("role");
    const std::string role = *item.one_of("role", {"user", "assistant", "system", "developer"});
    const Json content = read_content(item.require("content"));
    if (role == "assistant") {
      Json& answer = open_answer();
      if (is_empty_text(answer["content"]) && !answer.contains("tool_calls")) {
        answer["content"] = content;
        return;
      }
    }
    add(role, content);
  }

  /// The assistant's message that the last item belongs to, or a new one.
  Json& open_answer() {
    if (messages_.empty() || messages_.back()["role"] != "assistant") {
      add("assistant", "");
    }
    return messages_.back();
  }

  void read_call(Fields& item) {
    const std::string id = to_text(item.require("call_id"));
    const std::string name = to_text(item.require("name"));
    const Json arguments = call_arguments(to_text(item.require("arguments")));
    open_answer()["tool_calls"].push_back(
        {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}}
    );
  }

  void read_reasoning(Fields& item) {
    std::string text;
    if (const std::optional<Field> content = item.find("content")) {
      for (size_t i = 0; i < to_list(*content).size(); ++i) {
        Fields part(content->value[i], at(content->path, i));
        part.require("type");
        part.one_of("type", {"reasoning_text"});
        text += to_text(part.require("text"));
      }
    }
    if (!text.empty()) {
      add("assistant", "");
      messages_.back()["reasoning_content"] = text;
    }
  }

  Json read_content(const Field& content) {
    if (content.value.is_string()) {
      return content.value;
    }
    if (!content.value.is_array()) {
      refuse(content.path, shown(content.value), "a string or a list of parts");
    }
    Json parts = Json::array();
    for (size_t i = 0; i < content.value.size(); ++i) {
      Fields part(content.value[i], at(content.path, i));
      part.require("type");
      const std::string type = *part.one_of("type", {"input_text", "output_text", "input_image"});
      if (type == "input_image") {
        parts.push_back(read_image(part));
      } else {
        parts.push_back({{"type", "text"}, {"text", to_text(part.require("text"))}});
      }
    }
    return joined_texts(parts);
  }

  Json read_image(Fields& part) {
    const Field url = part.require("image_url");
    MediaPart media = {.param = url.path, .detail = read_detail(part)};
    if (std::cmp_greater_equal(media_.size(), limits_.images)) {
      refuse(url.path, fmt::format("over {} pictures", limits_.images), "fewer in one request");
    }
    media_.push_back(std::move(media));
    return {{"type", "image_url"}, {"image_url", {{"url", to_text(url)}}}};
  }

  const RequestLimits& limits_;
  Json messages_ = Json::array();
  std::vector<MediaPart> media_;
};

}  // namespace

ChatMessages read_responses_input(
    const std::optional<std::string>& instructions, const Field& input, const RequestLimits& limits
) {
  ItemReader reader(limits);
  if (instructions) {
    reader.add("system", *instructions);
  }
  if (input.value.is_string()) {
    reader.add("user", input.value);
    return reader.take();
  }
  if (!input.value.is_array()) {
    refuse(input.path, shown(input.value), "a string or a list of items");
  }
  const size_t count = input.value.size();
  if (count < 1 || std::cmp_greater(count, limits.messages)) {
    refuse(
        input.path, fmt::format("{} items", count), fmt::format("from 1 to {}", limits.messages)
    );
  }
  for (size_t i = 0; i < count; ++i) {
    reader.read(input.value[i], at(input.path, i));
  }
  return reader.take();
}

}  // namespace whimbrel::wire
