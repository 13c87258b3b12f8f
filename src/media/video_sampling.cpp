#include "media/video_sampling.h"

#include <algorithm>
#include <cmath>

namespace whimbrel {

namespace {

// nearbyint rounds half to even, as Python, numpy and torch do.
int64_t rounded(double value) {
  return static_cast<int64_t>(std::nearbyint(value));
}

int64_t even_count(int64_t total, double wanted, const FrameSampling& sampling) {
  const double least = 2 * std::ceil(sampling.min_frames / 2.0);
  const double most =
      2 * std::floor(static_cast<double>(std::min<int64_t>(sampling.max_frames, total)) / 2);
  const double bounded = std::min({std::max(wanted, least), most, static_cast<double>(total)});
  return 2 * static_cast<int64_t>(std::floor(bounded / 2));
}

int64_t any_count(int64_t total, double wanted, const FrameSampling& sampling) {
  const double floored = std::floor(std::min(wanted, static_cast<double>(sampling.max_frames)));
  const int64_t least = std::max<int64_t>(static_cast<int64_t>(floored), sampling.min_frames);
  return std::min<int64_t>({least, sampling.max_frames, total});
}

// torch.linspace in float32: from both ends towards the middle. The products are exact in double,
// so that one rounding follows on every machine.
std::vector<int64_t> spread_float32(int64_t total, int64_t count) {
  const float end = static_cast<float>(total - 1);
  const float step = end / static_cast<float>(count - 1);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t steps = i < count / 2 ? i : count - 1 - i;
    const float way = static_cast<float>(double{step} * static_cast<double>(steps));
    indices.push_back(rounded(i < count / 2 ? way : end - way));
  }
  return indices;
}

// numpy.linspace.
std::vector<int64_t> spread_float64(int64_t total, int64_t count) {
  const double step = static_cast<double>(total - 1) / static_cast<double>(count - 1);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    indices.push_back(rounded(static_cast<double>(i) * step));
  }
  indices.back() = total - 1;
  return indices;
}

}  // namespace

std::vector<int64_t> sample_frames(
    int64_t total, double source_fps, const FrameSampling& sampling, FrameCount count
) {
  const double wanted = static_cast<double>(total) / source_fps * sampling.fps;
  const int64_t taken = count == FrameCount::even ? even_count(total, wanted, sampling)
                                                  : any_count(total, wanted, sampling);
  if (taken < 2) {
    return {0};
  }
  return count == FrameCount::even ? spread_float32(total, taken) : spread_float64(total, taken);
}

double sampled_fps(int64_t sampled, int64_t total, double source_fps) {
  return static_cast<double>(sampled) / static_cast<double>(total) * source_fps;
}

std::vector<double> patch_seconds(
    std::vector<int64_t> indices, double fps, int temporal_patch_size
) {
  const auto depth = static_cast<size_t>(temporal_patch_size);
  while (indices.size() % depth != 0) {
    indices.push_back(indices.back());
  }
  std::vector<double> seconds;
  for (size_t first = 0; first < indices.size(); first += depth) {
    const double from = static_cast<double>(indices[first]) / fps;
    const double to = static_cast<double>(indices[first + depth - 1]) / fps;
    seconds.push_back((from + to) / 2);
  }
  return seconds;
}

}  // namespace whimbrel
