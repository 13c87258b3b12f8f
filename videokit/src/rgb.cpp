#include "rgb.h"

#include <cstdlib>
#include <optional>

#include "give_up.h"

namespace videokit {

namespace {

const int32_t* display_matrix(const AVStream& video) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  const AVCodecParameters& parameters = *video.codecpar;
  const AVPacketSideData* data = av_packet_side_data_get(
      parameters.coded_side_data, parameters.nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX
  );
  return data == nullptr || data->size < 9 * sizeof(int32_t)
             ? nullptr
             : reinterpret_cast<const int32_t*>(data->data);
#else
  size_t size = 0;
  const uint8_t* data = av_stream_get_side_data(&video, AV_PKT_DATA_DISPLAYMATRIX, &size);
  return data == nullptr || size < 9 * sizeof(int32_t) ? nullptr
                                                       : reinterpret_cast<const int32_t*>(data);
#endif
}

// Below a hundredth: what rounding leaves of a 0.
bool is_small(int32_t value, int32_t beside) {
  return std::abs(int64_t{value}) * 100 < std::abs(int64_t{beside});
}

// Quarters clockwise, where a display matrix turns by some and does nothing else. Its upper left:
// what a step right (a, b) and a step down (c, d) become.
std::optional<int> quarters_of(const int32_t* matrix) {
  const int32_t a = matrix[0], b = matrix[1], c = matrix[3], d = matrix[4];
  if (is_small(b, a) && is_small(c, d) && (a > 0) == (d > 0)) {
    return a > 0 ? 0 : 2;
  }
  if (is_small(a, b) && is_small(d, c) && (b > 0) == (c < 0)) {
    return b > 0 ? 1 : 3;
  }
  return std::nullopt;
}

// Quarters clockwise by which a frame is turned for display.
int display_quarters(const AVStream& video) {
  const int32_t* matrix = display_matrix(video);
  if (matrix == nullptr) {
    return 0;
  }
  const std::optional<int> quarters = quarters_of(matrix);
  if (!quarters) {
    throw GiveUp{Status::unsupported};
  }
  return *quarters;
}

Rgb quarter_turned(const Rgb& from) {
  Rgb to{from.width, from.height, std::vector<uint8_t>(from.pixels.size())};
  for (uint32_t y = 0; y < to.height; ++y) {
    for (uint32_t x = 0; x < to.width; ++x) {
      const size_t source = size_t{from.height - 1 - x} * from.width + y;
      const size_t target = size_t{y} * to.width + x;
      for (size_t channel = 0; channel < 3; ++channel) {
        to.pixels[target * 3 + channel] = from.pixels[source * 3 + channel];
      }
    }
  }
  return to;
}

int matrix_of(const AVFrame& frame) {
  return frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : frame.colorspace;
}

}  // namespace

RgbConverter::RgbConverter(const AVStream& video) : quarters_(display_quarters(video)) {}

Rgb RgbConverter::convert(const AVFrame& frame) {
  require_size(frame);
  prepare(frame);
  Rgb rgb = unturned(frame);
  for (int i = 0; i < quarters_; ++i) {
    rgb = quarter_turned(rgb);
  }
  return rgb;
}

void RgbConverter::require_size(const AVFrame& frame) {
  if (format_ >= 0 && (frame.height != height_ || frame.width != width_)) {
    throw GiveUp{Status::changing_size};
  }
  height_ = frame.height;
  width_ = frame.width;
}

void RgbConverter::prepare(const AVFrame& frame) {
  if (frame.format == format_) {
    return;
  }
  format_ = frame.format;
  scaler_.reset(sws_getContext(
      width_,
      height_,
      static_cast<AVPixelFormat>(format_),
      width_,
      height_,
      AV_PIX_FMT_RGB24,
      SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT,
      nullptr,
      nullptr,
      nullptr
  ));
  allocated(scaler_.get());
  const int full_range = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
  const int* matrix = sws_getCoefficients(matrix_of(frame));
  // Formats that are RGB already have no matrix: the call then says so, and nothing is to be done.
  sws_setColorspaceDetails(scaler_.get(), matrix, full_range, matrix, 1, 0, 1 << 16, 1 << 16);
}

Rgb RgbConverter::unturned(const AVFrame& frame) {
  const int stride = width_ * 3;
  // swscale writes whole vectors: some room behind the last row.
  constexpr size_t kRoom = 64;
  const size_t size = static_cast<size_t>(stride) * static_cast<size_t>(height_);
  Rgb rgb{static_cast<uint32_t>(height_), static_cast<uint32_t>(width_), {}};
  rgb.pixels.resize(size + kRoom);
  uint8_t* const rows[] = {rgb.pixels.data()};
  check(
      sws_scale(scaler_.get(), frame.data, frame.linesize, 0, height_, rows, &stride) == height_
          ? 0
          : AVERROR_INVALIDDATA
  );
  rgb.pixels.resize(size);
  return rgb;
}

}  // namespace videokit
