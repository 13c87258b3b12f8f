#pragma once

#include <cstdint>
#include <vector>

namespace whimbrel {

/// The most frames of one video that a prompt may hold.
constexpr int kMaxVideoFrames = 768;

/// How many frames a second of a video file are looked at, and the bounds on their number.
struct FrameSampling {
  double fps = 2;
  int min_frames = 4;
  int max_frames = kMaxVideoFrames;
};

/// Which numbers of frames a family samples.
enum class FrameCount {
  even,  // as qwen-vl-utils: an even number, spread in float32
  any,   // as transformers' Qwen3VLVideoProcessor: any number, spread in float64
};

/// Indices of the frames that are looked at, ascending, the first and the last one among them: as
/// many as `sampling.fps` gives for the duration of `total` frames at `source_fps`, inside its
/// bounds and never more than there are. Equal to the Python rules that FrameCount names, half-even
/// rounding included; a video of one frame, which they refuse, gives that frame. `total` is at
/// least 1, `source_fps` over 0.
std::vector<int64_t> sample_frames(
    int64_t total, double source_fps, const FrameSampling& sampling, FrameCount count
);

/// Sampled frames a second, from what was really taken: `sampled` frames of `total`.
double sampled_fps(int64_t sampled, int64_t total, double source_fps);

/// The moment in seconds that each temporal patch of a video shows: the middle between its first
/// and its last frame, where frame `indices[i]` of a video stands at indices[i] / fps. The last
/// index is repeated up to a multiple of `temporal_patch_size` (transformers' Qwen3VLProcessor).
std::vector<double> patch_seconds(
    std::vector<int64_t> indices, double fps, int temporal_patch_size
);

}  // namespace whimbrel
