#include "engine/cut_media.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "media/decode.h"
#include "media/picture_decoder.h"
#include "media/video_decoder.h"

namespace whimbrel {

namespace {

/// transformers' guess where a family that writes times isn't told the frame rate.
constexpr double kUnknownFps = 24;

/// The furthest that the videos of a prompt may move its positions on the time axis, together. Text
/// and pictures move them by less than a position a token: an int32 holds both.
constexpr int32_t kMostTime = 1 << 30;

/// The bounds in force: the user's, otherwise the checkpoint's.
PixelBounds asked_bounds(
    const MediaOptions& options, const PatchLayout& layout, const PixelBounds& given
) {
  const int64_t token_pixels = int64_t{layout.factor()} * layout.factor();
  PixelBounds bounds = given;
  bounds.min_pixels = options.min_pixels.value_or(given.min_pixels);
  bounds.max_pixels = options.max_pixels.value_or(given.max_pixels);
  if (options.image_tokens) {
    bounds.max_pixels = *options.image_tokens * token_pixels;
  }
  if (options.image_tokens && bounds.min_pixels > bounds.max_pixels) {
    throw Error(
        Fault::usage,
        "--image-tokens",
        "got {} as the most tokens of a picture or video, expected {} or more, the least in force; "
        "ask for more tokens, or lower --min-pixels",
        *options.image_tokens,
        (bounds.min_pixels + token_pixels - 1) / token_pixels
    );
  }
  if (bounds.min_pixels > bounds.max_pixels) {
    throw Error(
        Fault::usage,
        "picture size",
        "got at least {} and at most {} pixels a picture, expected the first at or below the "
        "second; give both --min-pixels and --max-pixels",
        bounds.min_pixels,
        bounds.max_pixels
    );
  }
  return bounds;
}

ImageProcessor asked_processor(const ImageProcessor& processor, const MediaOptions& options) {
  const PixelBounds bounds =
      asked_bounds(options, processor.layout(), {processor.min_pixels, processor.max_pixels});
  ImageProcessor asked = processor;
  asked.min_pixels = bounds.min_pixels;
  asked.max_pixels = bounds.max_pixels;
  return asked;
}

/// The area that a picture is to have at most, inside the bounds asked for: its own tokens, or
/// what a machine that can't look at the largest pictures can afford.
std::optional<int64_t> picture_budget(
    const MediaInput& input, const PatchLayout& layout, const MediaOptions& options
) {
  if (input.most_tokens) {
    return *input.most_tokens * layout.factor() * layout.factor();
  }
  const bool asked = options.max_pixels || options.image_tokens;
  return asked ? std::nullopt : options.affordable_pixels;
}

/// The bounds within a budget. They never cross: where the least is asked to be more, that counts.
ImageProcessor affordable_processor(const ImageProcessor& asked, std::optional<int64_t> budget) {
  ImageProcessor affordable = asked;
  if (budget) {
    affordable.max_pixels = std::min(asked.max_pixels, std::max(*budget, asked.min_pixels));
  }
  return affordable;
}

/// A user's bounds are those of a frame; where a family's hold for a whole video they add up.
VideoProcessor asked_processor(
    const VideoProcessor& processor, const MediaOptions& options, int frames
) {
  const bool whole = processor.rules.sizing == VideoSizing::per_video;
  const int64_t count = whole ? frames : 1;
  const auto times = [count](const auto& asked) {
    return asked ? std::optional<int64_t>(*asked * count) : std::nullopt;
  };
  MediaOptions scaled = options;
  scaled.min_pixels = times(options.min_pixels);
  scaled.max_pixels = times(options.max_pixels);
  if (options.image_tokens) {
    constexpr int64_t kMost = std::numeric_limits<int>::max();
    scaled.image_tokens = static_cast<int>(std::min(*options.image_tokens * count, kMost));
  }
  VideoProcessor asked = processor;
  asked.pixels = asked_processor(processor.pixels, scaled);
  return asked;
}

/// When the sampled frames of a video are shown.
struct FrameTimes {
  std::vector<int64_t> indices;  // of the sampled frames, in the video
  double fps = 0;                // of the video
  double sampled_fps = 0;
};

int32_t position_at(float time, const std::string& source) {
  if (!(time <= static_cast<float>(kMostTime))) {
    throw Error(
        Fault::input,
        source,
        "got a video that reaches position {:.0f} on the time axis, expected at most {}; give a "
        "shorter one, or frames with a higher \"fps\"",
        time,
        kMostTime
    );
  }
  return static_cast<int32_t>(std::floor(time));
}

/// Position of each temporal patch on the time axis. In float32, as torch multiplies.
std::vector<int32_t> axis_times(
    const FrameTimes& times, int patches, const MediaRules& rules, const std::string& source
) {
  const auto second_per_grid =
      static_cast<float>(rules.layout.temporal_patch_size / times.sampled_fps);
  const auto tokens_per_second = static_cast<float>(rules.tokens_per_second);
  std::vector<int32_t> positions;
  for (int i = 0; i < patches; ++i) {
    const float time = static_cast<float>(i) * second_per_grid * tokens_per_second;
    const bool by_seconds = rules.video_timing == VideoTiming::by_seconds;
    positions.push_back(by_seconds ? position_at(time, source) : i);
  }
  return positions;
}

CutMedium timed(
    std::string source, Patches patches, const FrameTimes& times, const MediaRules& rules
) {
  CutMedium cut{
      .kind = MediaKind::video,
      .source = std::move(source),
      .patches = {},
      .frame_times = {},
      .seconds = {},
  };
  cut.frame_times = axis_times(times, patches.grid_thw[0], rules, cut.source);
  if (rules.video_timing == VideoTiming::timestamped) {
    cut.seconds = patch_seconds(times.indices, times.fps, rules.layout.temporal_patch_size);
  }
  cut.patches = std::move(patches);
  return cut;
}

/// Cuts media one after the other and adds up the time that took.
class MediaCutter {
 public:
  MediaCutter(const Frontend& frontend, const MediaOptions& options)
      : rules_(*frontend.media),
        images_(*frontend.image_processor),
        videos_(*frontend.video_processor),
        options_(options) {}

  void add(const MediaInput& input) {
    const Stopwatch watch;
    const double decoded_before = cut_.media_decode;
    cut_.media.push_back(cut(input));
    require_time(cut_.media.back());
    cut_.preprocess += watch.milliseconds() - (cut_.media_decode - decoded_before);
  }

  CutMedia take() { return std::move(cut_); }

 private:
  void require_time(const CutMedium& medium) {
    time_ += medium.frame_times.back();
    if (time_ > kMostTime) {
      throw Error(
          Fault::input,
          medium.source,
          "got a video that with those before it reaches position {} on the time axis, expected at "
          "most {}; give fewer or shorter ones",
          time_,
          kMostTime
      );
    }
  }

  CutMedium cut(const MediaInput& input) {
    if (input.kind == MediaKind::image) {
      return picture(input);
    }
    return input.frames.empty() ? file(input) : frames(input);
  }

  CutMedium picture(const MediaInput& input) {
    const Image image = decode(input.source, input.bytes);
    const ImageProcessor asked = asked_processor(images_, options_);
    const ImageProcessor affordable =
        affordable_processor(asked, picture_budget(input, asked.layout(), options_));
    const Size size{image.height, image.width};
    take_tokens(resized_size(size, affordable, input.source), 1, input.source);
    return {
        .kind = MediaKind::image,
        .source = input.source,
        .patches = preprocess_image(image, affordable, input.source),
        .frame_times = {0},
        .seconds = {},
        .wanted = resized_size(size, asked, input.source),
    };
  }

  /// Frames that were given as pictures: all of them, at the rate that came with them.
  CutMedium frames(const MediaInput& input) {
    const int count = static_cast<int>(input.frames.size());
    require_frames(input, count);
    const VideoProcessor processor = asked_processor(videos_, options_, count);
    Patches patches = preprocess_video(
        count,
        [&](int i) {
          const EncodedPicture& given = input.frames[static_cast<size_t>(i)];
          VideoFrame frame{given.source, decode(given.source, given.bytes)};
          take_frames(i, count, frame, processor);
          return frame;
        },
        processor
    );
    return timed(input.source, std::move(patches), given_times(input, count), rules_);
  }

  /// A video file, some of whose frames are decoded.
  CutMedium file(const MediaInput& input) {
    require_going_on(input.source);
    const Stopwatch opening;
    VideoDecoder decoder(find_video_decoder(), input.bytes, input.source, patience(kVideoSeconds));
    const auto [total, fps] = decoder.timeline();
    FrameTimes times{sample_frames(total, fps, sampling(), rules_.video.frame_count), fps, 0};
    const int count = static_cast<int>(times.indices.size());
    times.sampled_fps = sampled_fps(count, total, fps);
    decoder.choose(times.indices);
    cut_.media_decode += opening.milliseconds();
    const VideoProcessor processor = asked_processor(videos_, options_, count);
    const auto next = [&](int i) {
      require_going_on(input.source);
      const Stopwatch decoding;
      VideoFrame frame{input.source, decoder.next()};
      cut_.media_decode += decoding.milliseconds();
      take_frames(i, count, frame, processor);
      return frame;
    };
    Patches patches = preprocess_video(count, next, processor);
    return timed(input.source, std::move(patches), times, rules_);
  }

  FrameSampling sampling() const {
    FrameSampling asked = videos_.sampling;
    asked.fps = options_.fps.value_or(asked.fps);
    asked.max_frames = std::min(options_.max_frames.value_or(asked.max_frames), kMaxVideoFrames);
    asked.min_frames = std::min(asked.min_frames, asked.max_frames);
    return asked;
  }

  FrameTimes given_times(const MediaInput& input, int count) const {
    const bool in_words = rules_.video_timing == VideoTiming::timestamped;
    const double unknown = in_words ? kUnknownFps : rules_.layout.temporal_patch_size;
    const double fps = input.fps.value_or(unknown);
    FrameTimes times{std::vector<int64_t>(static_cast<size_t>(count)), fps, fps};
    std::iota(times.indices.begin(), times.indices.end(), 0);
    return times;
  }

  void require_frames(const MediaInput& input, int count) const {
    const int most = options_.max_frames.value_or(kMaxVideoFrames);
    if (count > most) {
      throw Error(
          Fault::input,
          input.source,
          "got a list of {} frames, expected at most {}: frames of a list are taken as they are; "
          "leave some out",
          count,
          most
      );
    }
    if (options_.fps) {
      throw Error(
          Fault::usage,
          input.source,
          "got a list of frames and a rate to sample at, expected a video file for that; state the "
          "list's own rate beside it as \"fps\""
      );
    }
  }

  /// Before a medium is resized: `slices` of `size` in time.
  void take_tokens(Size size, int64_t slices, const std::string& source) {
    const int64_t factor = images_.layout().factor();
    tokens_ += slices * (size.height / factor) * (size.width / factor);
    if (options_.context && tokens_ >= *options_.context) {
      throw Error(
          Fault::input,
          source,
          "got pictures and videos of {} tokens, expected fewer than the context of {}; make them "
          "smaller or fewer",
          tokens_,
          *options_.context
      );
    }
  }

  /// With the first of a video's frames, all of them.
  void take_frames(int i, int count, const VideoFrame& frame, const VideoProcessor& processor) {
    if (i == 0) {
      const Size size{frame.image.height, frame.image.width};
      const int64_t depth = processor.pixels.temporal_patch_size;
      take_tokens(
          resized_frame_size(size, count, processor, frame.where),
          (count + depth - 1) / depth,
          frame.where
      );
    }
  }

  /// Of a decoder that may take so many seconds, where that many are left.
  Patience patience(double seconds) const {
    const double left =
        options_.seconds ? *options_.seconds - watch_.milliseconds() / 1000 : seconds;
    return {.seconds = std::min(seconds, left), .cancelled = options_.cancelled};
  }

  /// Before each picture and frame.
  void require_going_on(const std::string& source) const {
    require_wanted(options_.cancelled, source);
    if (options_.seconds && watch_.milliseconds() > *options_.seconds * 1000) {
      throw Error(
          Fault::input,
          source,
          "got pictures and videos that take over {} s to read, expected less; give fewer or "
          "smaller ones",
          *options_.seconds
      );
    }
  }

  Image decode(const std::string& source, const std::string& bytes) {
    require_going_on(source);
    const Stopwatch watch;
    Image image = options_.picture_decoder.empty()
                      ? decode_image(bytes, source)
                      : decode_image_apart(
                            options_.picture_decoder, bytes, source, {}, patience(kPictureSeconds)
                        );
    cut_.media_decode += watch.milliseconds();
    return image;
  }

  const MediaRules& rules_;
  const ImageProcessor& images_;
  const VideoProcessor& videos_;
  const MediaOptions& options_;
  CutMedia cut_;
  Stopwatch watch_;
  int64_t tokens_ = 0;
  int64_t time_ = 0;  // what the videos so far move the time axis by
};

}  // namespace

CutMedia cut_media(
    const Frontend& frontend, const std::vector<MediaInput>& inputs, const MediaOptions& options
) {
  MediaCutter cutter(frontend, options);
  for (const MediaInput& input : inputs) {
    cutter.add(input);
  }
  return cutter.take();
}

}  // namespace whimbrel
