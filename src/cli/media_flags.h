#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/prepare.h"

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

/// The most pixels of a picture on a CPU where no flag asks for others: 1,280 tokens of 28 x 28
/// pixels. Tower and prompt of a model of 3 billion parameters are then 7e12 multiply-adds, 14 s at
/// 5e11 a second; the largest picture that its checkpoint allows is some 20 times as many.
constexpr int64_t kCpuMaxPixels = 1280 * 28 * 28;

/// What the flags ask for, with kCpuMaxPixels where MLX computes on a CPU.
MediaOptions options_for_device(const MediaFlags& flags);

/// Says on stderr which pictures kCpuMaxPixels made smaller, and how to keep their size: by the
/// checkpoint's own bound.
void say_reduced(const std::vector<ReducedPicture>& reduced, const Frontend& frontend);

/// The files of --image and --video in the order in which `command` met them. Throws
/// Error(Fault::input).
std::vector<MediaInput> read_media_files(const CLI::App& command, const MediaFlags& flags);

/// Throws Error(Fault::usage) where a flag about videos has no video to act on.
void require_videos_for_flags(const MediaFlags& flags, const std::vector<MediaInput>& media);

}  // namespace whimbrel
