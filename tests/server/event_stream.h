#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace whimbrel::wire {

/// The `data` of each frame, as a client reads them: fails where the bytes are no event stream.
inline std::vector<std::string> frames_of(std::string_view bytes) {
  std::vector<std::string> frames;
  while (!bytes.empty()) {
    const size_t end = bytes.find("\n\n");
    if (!bytes.starts_with("data: ") || end == std::string_view::npos) {
      ADD_FAILURE() << "no frame: " << bytes;
      return frames;
    }
    frames.emplace_back(bytes.substr(6, end - 6));
    bytes.remove_prefix(end + 2);
  }
  return frames;
}

/// The objects of a stream; `[DONE]` has to be its last frame, and is left out.
inline std::vector<Json> chunks_of(std::string_view bytes) {
  std::vector<std::string> frames = frames_of(bytes);
  EXPECT_FALSE(frames.empty());
  EXPECT_EQ(frames.back(), "[DONE]");
  frames.pop_back();
  std::vector<Json> chunks;
  for (const std::string& frame : frames) {
    chunks.push_back(Json::parse(frame));
  }
  return chunks;
}

/// The objects of named events; each name has to be its object's type.
inline std::vector<Json> named_events_of(std::string_view bytes) {
  std::vector<Json> events;
  while (!bytes.empty()) {
    const size_t line = bytes.find('\n');
    const size_t end = bytes.find("\n\n");
    EXPECT_TRUE(bytes.starts_with("event: ")) << bytes;
    EXPECT_EQ(bytes.substr(line + 1, 6), "data: ");
    events.push_back(Json::parse(bytes.substr(line + 7, end - line - 7)));
    EXPECT_EQ(events.back()["type"], bytes.substr(7, line - 7));
    bytes.remove_prefix(end + 2);
  }
  return events;
}

/// A text cut at random places between characters; some pieces are empty.
inline std::vector<std::string> cut_at_random(std::string_view text, std::mt19937& random) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    const bool begins_character = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    while (begins_character && random() % 3 == 0) {
      pieces.emplace_back();
    }
    pieces.back() += c;
  }
  return pieces;
}

}  // namespace whimbrel::wire
