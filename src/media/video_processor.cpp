#include "media/video_processor.h"

#include <algorithm>

#include "media/processor_config.h"
#include "media/resize.h"

namespace whimbrel {

namespace {

FrameSampling parse_sampling(const ProcessorConfig& found) {
  const auto& [config, source] = found;
  FrameSampling sampling;
  sampling.fps = get_number_or(config, "fps", sampling.fps, source);
  sampling.min_frames =
      static_cast<int>(get_int_or(config, "min_frames", sampling.min_frames, source));
  const int64_t most = get_int_or(config, "max_frames", sampling.max_frames, source);
  sampling.max_frames = static_cast<int>(std::min<int64_t>(most, kMaxVideoFrames));
  if (!(sampling.fps > 0) || sampling.min_frames > sampling.max_frames) {
    throw Error(
        source.fault,
        source.where,
        "got \"fps\" {}, \"min_frames\" {} and \"max_frames\" {}, expected an fps over 0, and "
        "min_frames at most max_frames",
        sampling.fps,
        sampling.min_frames,
        most
    );
  }
  return sampling;
}

void require_size(const VideoFrame& frame, Size expected) {
  const Size found{frame.image.height, frame.image.width};
  if (found != expected) {
    throw Error(
        Fault::input,
        frame.where,
        "got a frame of {} x {} pixels (height x width), expected {} x {} as the first frame has; "
        "bring all frames of a video to one size",
        found.height,
        found.width,
        expected.height,
        expected.width
    );
  }
}

}  // namespace

VideoProcessor read_video_processor(const std::filesystem::path& folder, const VideoRules& rules) {
  const ProcessorConfig found = find_video_config(folder);
  return {parse_processor(found, rules.bounds), parse_sampling(found), rules};
}

Size resized_frame_size(
    Size size, int count, const VideoProcessor& processor, std::string_view where
) {
  const ImageProcessor& pixels = processor.pixels;
  return video_frame_size(
      size,
      count,
      pixels.layout(),
      {pixels.min_pixels, pixels.max_pixels},
      processor.rules.sizing,
      where
  );
}

Patches preprocess_video(int count, const FrameSource& frame, const VideoProcessor& processor) {
  std::vector<Image> frames;
  Size original;
  Size size;
  for (int i = 0; i < count; ++i) {
    const VideoFrame next = frame(i);
    if (i == 0) {
      original = {next.image.height, next.image.width};
      size = resized_frame_size(original, count, processor, next.where);
    }
    require_size(next, original);
    frames.push_back(resize_bicubic(next.image, size.height, size.width));
  }
  const auto depth = static_cast<size_t>(processor.pixels.temporal_patch_size);
  while (frames.size() % depth != 0) {
    frames.push_back(frames.back());
  }
  Patches patches = patchify(frames, processor.pixels.layout(), pixel_scale(processor.pixels));
  patches.original = original;
  return patches;
}

}  // namespace whimbrel
