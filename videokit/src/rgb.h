#pragma once

#include <cstdint>
#include <vector>

#include "libav.h"

namespace videokit {

/// A frame as displayed: 8-bit RGB, rows from the top down, height * width * 3 bytes.
struct Rgb {
  uint32_t height;
  uint32_t width;
  std::vector<uint8_t> pixels;
};

/// Turns decoded frames of one size into RGB, and by the quarters that the file asks for. Colours
/// follow the matrix and range that a frame states, BT.601 where it states none. Throws GiveUp.
class RgbConverter {
 public:
  explicit RgbConverter(const AVStream& video);

  Rgb convert(const AVFrame& frame);

 private:
  void require_size(const AVFrame& frame);
  void prepare(const AVFrame& frame);
  Rgb unturned(const AVFrame& frame);

  int quarters_ = 0;  // clockwise
  int height_ = 0;
  int width_ = 0;
  int format_ = -1;
  ScalerPtr scaler_;
};

}  // namespace videokit
