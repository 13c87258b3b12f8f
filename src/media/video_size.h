#pragma once

#include <cstdint>
#include <string_view>

#include "media/image.h"
#include "media/patchify.h"
#include "media/pixel_bounds.h"

namespace whimbrel {

/// What a family's pixel bounds of a video mean.
enum class VideoSizing {
  per_frame,  // the area of a frame; frames share a budget besides (qwen-vl-utils)
  per_video,  // frames x height x width (transformers' Qwen3VLVideoProcessor)
};

/// The size to which each of a video's `frames` frames is resized, as smart_resize does for a
/// picture, with the family's bounds.
/// - per_frame: the larger bound is at most 768 factor^2, and at most an even share of 0.9 * 128000
///   factor^2 for all, but never under 1.05 times the smaller one.
/// - per_video: a side under the factor is first scaled up to it; an odd number of frames counts
///   rounded to an even half, so that 5 count as 4 and 7 as 8.
/// Throws Error(Fault::input, where) on an aspect over 200.
Size video_frame_size(
    Size size,
    int frames,
    const PatchLayout& layout,
    const PixelBounds& bounds,
    VideoSizing sizing,
    std::string_view where
);

}  // namespace whimbrel
