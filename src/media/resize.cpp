#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace whimbrel {

namespace {

constexpr int kChannels = 3;
constexpr double kSupport = 2.0;  // of the kernel, in source pixels
constexpr int kWeightBits = 22;   // fraction bits: 8-bit levels and overshoot fit in 32 bits
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) {
    return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
  }
  if (x < 2.0) {
    return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
  }
  return 0.0;
}

// The source pixels of one output pixel along one dimension.
struct Window {
  int first = 0;
  int count = 0;
  size_t weights = 0;  // index of the first weight
};

struct Filter {
  std::vector<Window> windows;   // one an output pixel
  std::vector<int32_t> weights;  // fixed point
};

int32_t to_fixed(double weight) {
  const double scaled = weight * (1 << kWeightBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

// The order of the floating-point operations is Pillow's: the weights have to agree in every bit.
Filter make_filter(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double stretch = std::max(scale, 1.0);
  const double support = kSupport * stretch;
  const double inverse = 1.0 / stretch;
  Filter filter;
  std::vector<double> exact;
  for (int out = 0; out < to; ++out) {
    const double center = (out + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - support + 0.5), 0);
    const int last = std::min(static_cast<int>(center + support + 0.5), from);
    exact.clear();
    double sum = 0.0;
    for (int source = first; source < last; ++source) {
      exact.push_back(bicubic((source - center + 0.5) * inverse));
      sum += exact.back();
    }
    filter.windows.push_back({first, last - first, filter.weights.size()});
    for (const double weight : exact) {
      filter.weights.push_back(to_fixed(sum != 0.0 ? weight / sum : weight));
    }
  }
  return filter;
}

uint8_t to_level(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

size_t row_bytes(int width) {
  return static_cast<size_t>(width) * kChannels;
}

void resize_row(const uint8_t* source, const Filter& filter, uint8_t* out) {
  for (const Window& window : filter.windows) {
    const uint8_t* pixel = source + row_bytes(window.first);
    const int32_t* weight = filter.weights.data() + window.weights;
    int32_t red = kHalf;
    int32_t green = kHalf;
    int32_t blue = kHalf;
    for (int i = 0; i < window.count; ++i, pixel += kChannels) {
      red += pixel[0] * weight[i];
      green += pixel[1] * weight[i];
      blue += pixel[2] * weight[i];
    }
    *out++ = to_level(red);
    *out++ = to_level(green);
    *out++ = to_level(blue);
  }
}

Image resize_width(const Image& image, int width) {
  const Filter filter = make_filter(image.width, width);
  Image out{image.height, width, std::vector<uint8_t>(image.height * row_bytes(width))};
  for (int y = 0; y < image.height; ++y) {
    resize_row(
        image.pixels.data() + y * row_bytes(image.width),
        filter,
        out.pixels.data() + y * row_bytes(width)
    );
  }
  return out;
}

Image resize_height(const Image& image, int height) {
  const Filter filter = make_filter(image.height, height);
  const size_t stride = row_bytes(image.width);
  Image out{height, image.width, std::vector<uint8_t>(height * stride)};
  std::vector<int32_t> sums(stride);
  uint8_t* level = out.pixels.data();
  for (const Window& window : filter.windows) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int i = 0; i < window.count; ++i) {
      const uint8_t* row = image.pixels.data() + (window.first + i) * stride;
      const int32_t weight = filter.weights[window.weights + i];
      for (size_t x = 0; x < stride; ++x) {
        sums[x] += row[x] * weight;
      }
    }
    level = std::transform(sums.begin(), sums.end(), level, to_level);
  }
  return out;
}

}  // namespace

Image resize_bicubic(const Image& image, int height, int width) {
  if (width == image.width) {
    return height == image.height ? image : resize_height(image, height);
  }
  if (height == image.height) {
    return resize_width(image, width);
  }
  // Pillow's rule for strips, which would grow very large if they were widened first.
  if (image.height > image.width * 100 && height < image.height) {
    return resize_width(resize_height(image, height), width);
  }
  return resize_height(resize_width(image, width), height);
}

}  // namespace whimbrel
