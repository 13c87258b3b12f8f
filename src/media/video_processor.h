#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "media/image_processor.h"
#include "media/video_sampling.h"
#include "media/video_size.h"

namespace whimbrel {

/// How a family looks at videos.
struct VideoRules {
  FrameCount frame_count = FrameCount::even;
  VideoSizing sizing = VideoSizing::per_frame;
  PixelBounds bounds = {};  // where the checkpoint states none
};

/// A checkpoint's video preprocessing, as data.
struct VideoProcessor {
  ImageProcessor pixels;  // min_pixels and max_pixels in the meaning of `rules.sizing`
  FrameSampling sampling;
  VideoRules rules;
};

/// Reads `video_processor` of processor_config.json, or video_preprocessor_config.json, or what
/// pictures are read from (transformers' order); `fps`, `min_frames`, `max_frames` beside the keys
/// of an image processor. More than kMaxVideoFrames are never sampled. Throws Error(Fault::model)
/// as read_image_processor does.
VideoProcessor read_video_processor(const std::filesystem::path& folder, const VideoRules& rules);

/// One frame, and what to call it in error texts.
struct VideoFrame {
  std::string where;
  Image image;
};

/// Gives frame i; called once for each, in order, so that a video is never held decoded as a whole.
using FrameSource = std::function<VideoFrame(int i)>;

/// The size to which each of `count` frames of `size` is resized (video_frame_size).
Size resized_frame_size(
    Size size, int count, const VideoProcessor& processor, std::string_view where
);

/// Resizes `count` frames as video_frame_size says, repeats the last one up to a multiple of the
/// temporal patch, and cuts them into patches as pictures are. Throws Error(Fault::input): a frame
/// of another size than the first one (named), an aspect over 200.
Patches preprocess_video(int count, const FrameSource& frame, const VideoProcessor& processor);

}  // namespace whimbrel
