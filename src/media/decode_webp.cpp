#include "media/decode_webp.h"

#include <webp/decode.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "media/composite.h"
#include "media/decode_error.h"
#include "media/exif.h"

namespace whimbrel {

namespace {

constexpr size_t kRiffBytes = 12;         // "RIFF", size, "WEBP"
constexpr size_t kChunkHeaderBytes = 8;   // name, size
constexpr size_t kFrameHeaderBytes = 16;  // of an animation's frame, before its picture

const uint8_t* data_of(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

// A little-endian integer of up to 4 bytes; the caller has checked that they are there.
uint32_t read_integer(std::string_view bytes, size_t offset, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i > 0; --i) {
    value = value << 8 | static_cast<uint8_t>(bytes[offset + i - 1]);
  }
  return value;
}

Damage damage_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return Damage::truncated;
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return Damage::unsupported;
    default:
      return Damage::corrupt;
  }
}

void check_status(VP8StatusCode status, std::string_view where) {
  if (status != VP8_STATUS_OK) {
    throw_damaged(damage_of(status), ImageFormat::webp, where);
  }
}

// The file without what may follow its RIFF container.
std::string_view riff_of(std::string_view bytes, std::string_view where) {
  const size_t size = size_t{read_integer(bytes, 4, 4)} + kChunkHeaderBytes;
  if (size > bytes.size()) {
    throw_damaged(Damage::truncated, ImageFormat::webp, where);
  }
  if (size < kRiffBytes) {
    throw_damaged(Damage::corrupt, ImageFormat::webp, where);
  }
  return bytes.substr(0, size);
}

// The data of the first chunk of this name.
std::optional<std::string_view> find_chunk(std::string_view riff, std::string_view name) {
  std::string_view rest = riff.substr(kRiffBytes);
  while (rest.size() >= kChunkHeaderBytes) {
    const size_t size = read_integer(rest, 4, 4);
    if (size > rest.size() - kChunkHeaderBytes) {
      return std::nullopt;
    }
    if (rest.starts_with(name)) {
      return rest.substr(kChunkHeaderBytes, size);
    }
    // Chunks start at even offsets.
    rest.remove_prefix(std::min(kChunkHeaderBytes + size + size % 2, rest.size()));
  }
  return std::nullopt;
}

WebPBitstreamFeatures read_features(std::string_view bytes, std::string_view where) {
  WebPBitstreamFeatures features;
  check_status(WebPGetFeatures(data_of(bytes), bytes.size(), &features), where);
  return features;
}

// Decodes into `out`, whose rows are `stride` bytes apart.
void decode_into(
    std::string_view bytes,
    WEBP_CSP_MODE mode,
    std::span<uint8_t> out,
    size_t stride,
    std::string_view where
) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) {
    throw_damaged(Damage::unsupported, ImageFormat::webp, where);
  }
  config.output.colorspace = mode;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {out.data(), static_cast<int>(stride), out.size()};
  check_status(WebPDecode(data_of(bytes), bytes.size(), &config), where);
}

// An animation's first frame and its place on the canvas.
struct Frame {
  std::string_view bytes;
  int top = 0;
  int left = 0;
  Size size;
};

Frame first_frame(std::string_view riff, Size canvas, std::string_view where) {
  const std::string_view chunk = find_chunk(riff, "ANMF").value_or("");
  if (chunk.size() < kFrameHeaderBytes) {
    throw_damaged(Damage::corrupt, ImageFormat::webp, where);
  }
  // Positions count pairs of pixels; sides are stored less one.
  const Frame frame{
      .bytes = chunk.substr(kFrameHeaderBytes),
      .top = static_cast<int>(read_integer(chunk, 3, 3)) * 2,
      .left = static_cast<int>(read_integer(chunk, 0, 3)) * 2,
      .size = {
          static_cast<int>(read_integer(chunk, 9, 3)) + 1,
          static_cast<int>(read_integer(chunk, 6, 3)) + 1
      },
  };
  const WebPBitstreamFeatures features = read_features(frame.bytes, where);
  if (frame.size != Size{features.height, features.width} ||
      frame.top + frame.size.height > canvas.height ||
      frame.left + frame.size.width > canvas.width) {
    throw_damaged(Damage::corrupt, ImageFormat::webp, where);
  }
  return frame;
}

Image decode_first_frame(std::string_view riff, Size canvas, std::string_view where) {
  const Frame frame = first_frame(riff, canvas, where);
  const size_t stride = size_t(canvas.width) * 4;
  std::vector<uint8_t> rgba(stride * canvas.height);
  const std::span<uint8_t> place =
      std::span(rgba).subspan(frame.top * stride + size_t(frame.left) * 4);
  decode_into(frame.bytes, MODE_RGBA, place, stride, where);
  return composite_on_white(rgba, canvas);
}

}  // namespace

EncodedHeader read_webp_header(std::string_view bytes, std::string_view where) {
  const std::string_view riff = riff_of(bytes, where);
  const WebPBitstreamFeatures features = read_features(riff, where);
  return {
      {features.height, features.width},
      exif_orientation(find_chunk(riff, "EXIF").value_or("")),
  };
}

Image decode_webp(std::string_view bytes, const EncodedHeader& header, std::string_view where) {
  const std::string_view riff = riff_of(bytes, where);
  const WebPBitstreamFeatures features = read_features(riff, where);
  const Size size = header.size;
  if (size != Size{features.height, features.width}) {
    throw_damaged(Damage::corrupt, ImageFormat::webp, where);
  }
  if (features.has_animation != 0) {
    return decode_first_frame(riff, size, where);
  }
  const size_t channels = features.has_alpha != 0 ? 4 : 3;
  std::vector<uint8_t> levels(size_t(size.height) * size.width * channels);
  decode_into(riff, channels == 4 ? MODE_RGBA : MODE_RGB, levels, size.width * channels, where);
  if (channels == 4) {
    return composite_on_white(levels, size);
  }
  return {size.height, size.width, std::move(levels)};
}

}  // namespace whimbrel
