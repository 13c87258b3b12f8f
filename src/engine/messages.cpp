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

/// The URL of an `image_url` or `video_url` part: the string itself, or the object's `url`.
std::string media_url(const Json& part, std::string_view key, const std::string& where) {
  const Json value = part.value(key, Json());
  const Json url = value.is_object() ? value.value("url", Json()) : value;
  if (!url.is_string()) {
    const std::string_view article = key.starts_with('i') ? "an" : "a";
    refuse(
        where, shortened(part), fmt::format("{} {} that is a string or has a url", article, key)
    );
  }
  return url.get<std::string>();
}

/// Slower than a frame in three hours, or faster than a camera: a mistake.
constexpr double kLeastFps = 1e-4;
constexpr double kMostFps = 1000;

std::optional<double> frame_rate(const Json& part, const std::string& where) {
  if (!has_value(part, "fps")) {
    return std::nullopt;
  }
  const Json& fps = part["fps"];
  const double rate = fps.is_number() ? fps.get<double>() : 0;
  if (!(rate >= kLeastFps && rate <= kMostFps)) {
    refuse(where, "fps " + shortened(fps), "frames a second from 0.0001 to 1000");
  }
  return rate;
}

void require_frame_count(size_t frames, const std::string& where) {
  if (frames < 1 || frames > kMaxVideoFrames) {
    refuse(
        where,
        fmt::format("{} frames", frames),
        fmt::format("from 1 to {} in a video; leave some out", kMaxVideoFrames)
    );
  }
}

/// Adds frames up to what a video may hold.
class FrameList {
 public:
  explicit FrameList(std::string where) : where_(std::move(where)) {}

  void add(EncodedPicture frame) {
    bytes_ += frame.bytes.size();
    if (bytes_ > kMaxVideoBytes) {
      refuse(
          where_, fmt::format("over {} bytes of frames", kMaxVideoBytes), "fewer or smaller ones"
      );
    }
    frames_.push_back(std::move(frame));
  }

  /// A video that is called as its first frame.
  MediaInput take(std::optional<double> fps) {
    std::string source = frames_.front().source;
    return {
        .source = std::move(source),
        .kind = MediaKind::video,
        .frames = std::move(frames_),
        .fps = fps,
    };
  }

 private:
  std::string where_;
  std::vector<EncodedPicture> frames_;
  uint64_t bytes_ = 0;
};

/// Reads a conversation message by message; pictures and videos are collected in order.
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
      media_.push_back(read_media_(media_url(part, "image_url", where), MediaKind::image));
      return {{"type", "image"}};
    }
    if (type == "video_url") {
      media_.push_back(read_media_(media_url(part, "video_url", where), MediaKind::video));
      return {{"type", "video"}};
    }
    if (type == "video") {
      media_.push_back(frame_list(part, where));
      return {{"type", "video"}};
    }
    refuse(where, shortened(part), "a part of type text, image_url, video_url or video");
  }

  MediaInput frame_list(const Json& part, const std::string& where) const {
    const Json files = part.value("video", Json());
    if (!files.is_array()) {
      refuse(where, shortened(part), "a video that is a list of frames; a file is a video_url");
    }
    require_frame_count(files.size(), where);
    FrameList frames(where);
    for (const Json& file : files) {
      if (!file.is_string()) {
        refuse(where, shortened(file), "a frame's path, file:// or data:");
      }
      MediaInput frame = read_media_(file.get<std::string>(), MediaKind::image);
      frames.add({std::move(frame.source), std::move(frame.bytes)});
    }
    return frames.take(frame_rate(part, where));
  }

  const MediaReader& read_media_;
  std::vector<MediaInput> media_;
};

std::string decoded(std::string_view base64) {
  std::optional<std::string> bytes = decode_base64(base64);
  if (!bytes) {
    refuse("data:", "invalid base64", "base64 of a picture's or video's bytes");
  }
  return *std::move(bytes);
}

MediaInput read_frames(std::string_view data) {
  require_frame_count(static_cast<size_t>(std::ranges::count(data, ',')) + 1, "data:");
  FrameList frames("data:");
  for (size_t begin = 0; begin <= data.size();) {
    const size_t end = std::min(data.find(',', begin), data.size());
    frames.add({"data:", decoded(data.substr(begin, end - begin))});
    begin = end + 1;
  }
  return frames.take(std::nullopt);
}

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

MediaInput read_data_url(std::string_view url, MediaKind kind) {
  constexpr std::string_view kMarker = ";base64,";
  const size_t marker = url.find(kMarker);
  if (!url.starts_with("data:") || marker == std::string_view::npos) {
    refuse("data:", std::string(url.substr(0, 40)), "data:<type>;base64,<data>");
  }
  const std::string_view type = url.substr(5, marker - 5);
  const std::string_view data = url.substr(marker + kMarker.size());
  if (kind == MediaKind::video && type == "video/jpeg") {
    return read_frames(data);
  }
  return {.source = "data:", .bytes = decoded(data), .kind = kind};
}

}  // namespace whimbrel
