#include "server/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>

namespace whimbrel::wire {

namespace {

std::string at(const std::string& path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

/// Checks a conversation and lists its media.
class MessageChecker {
 public:
  explicit MessageChecker(const RequestLimits& limits) : limits_(limits) {}

  Json read(const Json& message, const std::string& path) {
    Fields fields(message, path);
    fields.require("role");
    const std::string role =
        *fields.one_of("role", {"system", "developer", "user", "assistant", "tool"});
    const bool is_assistant = role == "assistant";
    fields.text("name");
    if (role == "tool") {
      fields.text("tool_call_id");
    }
    Json read = message;
    const std::optional<Field> calls = is_assistant ? fields.find("tool_calls") : std::nullopt;
    if (calls) {
      read["tool_calls"] = read_tool_calls(*calls);
    }
    check_content(fields, calls && !calls->value.empty());
    const Json content = message.value("content", Json());
    read["content"] = content.is_array() ? joined_texts(content) : content;
    fields.text("reasoning_content");
    return read;
  }

  std::vector<MediaPart> take_media() { return std::move(media_); }

 private:
  static Json read_tool_calls(const Field& calls) {
    Json read = to_list(calls);
    for (size_t i = 0; i < read.size(); ++i) {
      Fields call(read[i], at(calls.path, i));
      call.text("id");
      call.one_of("type", {"function"});
      const Field function = call.require("function");
      Fields parts(function.value, function.path);
      to_text(parts.require("name"));
      const std::optional<Field> arguments = parts.find("arguments");
      if (arguments && !arguments->value.is_object()) {
        read[i]["function"]["arguments"] = call_arguments(to_text(*arguments));
      }
    }
    return read;
  }

  void check_content(Fields& fields, bool has_calls) {
    const std::optional<Field> content = fields.find("content");
    if (!content) {
      if (!has_calls) {
        refuse(fields.path_of("content"), "nothing", "a string or a list of parts");
      }
      return;
    }
    if (content->value.is_string()) {
      return;
    }
    if (!content->value.is_array()) {
      refuse(content->path, shown(content->value), "a string or a list of parts");
    }
    for (size_t i = 0; i < content->value.size(); ++i) {
      check_part(content->value[i], at(content->path, i));
    }
  }

  void check_part(const Json& part, const std::string& path) {
    Fields fields(part, path);
    fields.require("type");
    const std::string type = *fields.one_of(
        "type", {"text", "image_url", "video_url", "video", "input_text", "input_image"}
    );
    if (type == "text" || type == "input_text") {
      to_text(fields.require("text"));
    } else if (type == "video") {
      check_frames(fields);
    } else {
      check_url(fields, type == "video_url" ? MediaKind::video : MediaKind::image);
    }
  }

  void check_url(Fields& fields, MediaKind kind) {
    const Field url = fields.require(kind == MediaKind::video ? "video_url" : "image_url");
    MediaPart part = {.param = url.path, .kind = kind, .detail = read_detail(fields)};
    if (url.value.is_object()) {
      Fields parts(url.value, url.path);
      to_text(parts.require("url"));
      if (parts.find("detail")) {
        part.detail = read_detail(parts);
      }
    } else if (!url.value.is_string()) {
      refuse(url.path, shown(url.value), "a URL, or an object with url");
    }
    if (kind == MediaKind::video && part.detail != ImageDetail::automatic) {
      refuse(url.path, "the detail of a video", "whimbrel.max_pixels for its frames");
    }
    add(std::move(part));
  }

  void check_frames(Fields& fields) {
    const Field frames = fields.require("video");
    to_list(frames);
    for (size_t i = 0; i < frames.value.size(); ++i) {
      to_text({frames.value[i], at(frames.path, i)});
    }
    constexpr double kLeastFps = 1e-4;
    constexpr double kMostFps = 1000;
    fields.number("fps", kLeastFps, kMostFps);
    add({.param = frames.path, .kind = MediaKind::video});
  }

  void add(MediaPart part) {
    const bool is_image = part.kind == MediaKind::image;
    const int most = is_image ? limits_.images : limits_.videos;
    if (std::ranges::count(media_, part.kind, &MediaPart::kind) >= most) {
      refuse(
          part.param,
          fmt::format("over {} {}", most, is_image ? "pictures" : "videos"),
          "fewer in one request"
      );
    }
    media_.push_back(std::move(part));
  }

  const RequestLimits& limits_;
  std::vector<MediaPart> media_;
};

}  // namespace

ImageDetail read_detail(Fields& fields) {
  const std::optional<std::string> detail = fields.one_of("detail", {"low", "high", "auto"});
  if (detail == "low") {
    return ImageDetail::low;
  }
  return detail == "high" ? ImageDetail::high : ImageDetail::automatic;
}

/// A model may have written arguments that are no JSON; a client that sends them back is not to
/// blame.
Json call_arguments(const std::string& text) {
  constexpr JsonLimits kLimits = {.depth = 32, .nodes = 10'000};
  constexpr int kMostMembers = 256;  // of one object: a body may hold thousands of calls
  if (text.empty()) {
    return Json::object();
  }
  if (!has_few_members(text, kLimits.depth, kMostMembers)) {
    return text;
  }
  try {
    Json arguments = parse_json(text, "arguments", Fault::input, kLimits);
    return arguments.is_object() ? arguments : Json(text);
  } catch (const Error&) {
    return text;
  }
}

Json joined_texts(const Json& parts) {
  std::string joined;
  for (const Json& part : parts) {
    const Json& type = part.at("type");
    if (type != "text" && type != "input_text") {
      return parts;
    }
    joined += part.at("text").get_ref<const std::string&>();
  }
  return joined;
}

ChatMessages read_chat_messages(const Field& messages, const RequestLimits& limits) {
  const size_t count = to_list(messages).size();
  if (count < 1 || std::cmp_greater(count, limits.messages)) {
    refuse(
        messages.path,
        fmt::format("{} messages", count),
        fmt::format("from 1 to {}", limits.messages)
    );
  }
  ChatMessages read;
  MessageChecker checker(limits);
  for (size_t i = 0; i < count; ++i) {
    read.messages.push_back(checker.read(messages.value[i], at(messages.path, i)));
  }
  read.media = checker.take_media();
  return read;
}

}  // namespace whimbrel::wire
