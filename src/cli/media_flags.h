#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/media_input.h"

namespace whimbrel {

/// The flags of pictures and videos, as typed.
struct MediaFlags {
  std::vector<std::string> images;
  std::vector<std::string> videos;
  MediaOptions options;

  bool empty() const { return images.empty() && videos.empty(); }
};

/// Adds --image, --video, and what is asked of both, to a command.
void add_media_options(CLI::App& command, MediaFlags& flags);

/// The files of --image and --video in the order in which `command` met them. Throws
/// Error(Fault::input).
std::vector<MediaInput> read_media_files(const CLI::App& command, const MediaFlags& flags);

/// Throws Error(Fault::usage) where a flag about videos has no video to act on.
void require_videos_for_flags(const MediaFlags& flags, const std::vector<MediaInput>& media);

}  // namespace whimbrel
