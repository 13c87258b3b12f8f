#include "media/decode_jpeg.h"

// In this order: jpeglib.h needs FILE, and jerror.h numbers its messages by jpeglib.h's settings.
#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>
#include <cstddef>

#include "media/decode_error.h"
#include "media/exif.h"

namespace whimbrel {

namespace {

constexpr int kExifMarker = JPEG_APP0 + 1;

// A camera's progressive JPEG has about ten scans. Each scan walks the whole picture however few
// bytes it holds, so the product is bounded too.
constexpr int kMaxScans = 500;
constexpr int64_t kMaxScannedPixels = int64_t{1} << 31;

// What libjpeg's callbacks reach through client_data.
struct JpegState {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape{};
  Damage damage = Damage::none;
};

JpegState& state_of(j_common_ptr info) {
  return *static_cast<JpegState*>(info->client_data);
}

[[noreturn]] void give_up(j_common_ptr info, Damage damage) {
  JpegState& state = state_of(info);
  state.damage = damage;
  std::longjmp(state.escape, 1);
}

Damage damage_of(int message) {
  switch (message) {
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
    case JWRN_JPEG_EOF:
      return Damage::truncated;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_SOF_UNSUPPORTED:
      return Damage::unsupported;
    case JERR_EMPTY_IMAGE:
      return Damage::empty;
    case JERR_IMAGE_TOO_BIG:
      return Damage::too_large;
    default:
      return Damage::corrupt;
  }
}

// Warnings after which part of the picture is missing or wrong. Others (stray bytes before a
// marker, an odd version) leave it whole.
bool spoils_picture(int warning) {
  switch (warning) {
    case JWRN_ARITH_BAD_CODE:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_JPEG_EOF:
    case JWRN_MUST_RESYNC:
      return true;
    default:
      return false;
  }
}

extern "C" {

void on_jpeg_error(j_common_ptr info) {
  give_up(info, damage_of(info->err->msg_code));
}

void on_jpeg_message(j_common_ptr info, int level) {
  if (level < 0 && spoils_picture(info->err->msg_code)) {
    give_up(info, damage_of(info->err->msg_code));
  }
}

void ignore_jpeg_output(j_common_ptr) {}

void on_jpeg_progress(j_common_ptr info) {
  const jpeg_decompress_struct& decoder = state_of(info).info;
  const int64_t pixels = int64_t{decoder.image_height} * decoder.image_width;
  if (decoder.input_scan_number > kMaxScans ||
      decoder.input_scan_number * pixels > kMaxScannedPixels) {
    give_up(info, Damage::too_many_scans);
  }
}

}  // extern "C"

// Runs libjpeg calls; false where one failed, with the reason in state.damage. libjpeg leaves a
// failing call by longjmp to here, so nothing inside `calls` may need a destructor.
template <typename Calls>
bool guarded(JpegState& state, const Calls& calls) {
  if (setjmp(state.escape) != 0) {
    return false;
  }
  calls(state.info);
  return true;
}

// A decoder over bytes in memory, open for as long as this object lives.
class JpegReader {
 public:
  JpegReader(std::string_view bytes, std::string_view where) : where_(where) {
    state_.info.err = jpeg_std_error(&state_.errors);
    state_.errors.error_exit = on_jpeg_error;
    state_.errors.emit_message = on_jpeg_message;
    state_.errors.output_message = ignore_jpeg_output;
    state_.progress.progress_monitor = on_jpeg_progress;
    state_.info.client_data = &state_;
    run([&](jpeg_decompress_struct& info) {
      jpeg_create_decompress(&info);
      info.progress = &state_.progress;
      jpeg_mem_src(&info, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    });
  }
  ~JpegReader() { jpeg_destroy_decompress(&state_.info); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  template <typename Calls>
  void run(const Calls& calls) {
    if (!guarded(state_, calls)) {
      throw_damaged(state_.damage, ImageFormat::jpeg, where_);
    }
  }

  const jpeg_decompress_struct& info() const { return state_.info; }

 private:
  JpegState state_;
  std::string_view where_;
};

Size stored_size(const jpeg_decompress_struct& info) {
  return {static_cast<int>(info.image_height), static_cast<int>(info.image_width)};
}

int stored_orientation(const jpeg_decompress_struct& info) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  for (const jpeg_marker_struct* marker = info.marker_list; marker; marker = marker->next) {
    const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
    if (marker->marker == kExifMarker && data.starts_with(kPrefix)) {
      return exif_orientation(data);
    }
  }
  return 1;
}

// a * b / 255, rounded to nearest.
int scale_level(int a, int b) {
  return (a * b + 127) / 255;
}

// `inked` is CMYK stored inverted: 255 is no ink.
void cmyk_to_rgb(const uint8_t* inked, int width, uint8_t* rgb) {
  for (int x = 0; x < width; ++x, inked += 4) {
    const int light = inked[3];
    for (int channel = 0; channel < 3; ++channel) {
      *rgb++ = static_cast<uint8_t>(scale_level(inked[channel], light));
    }
  }
}

void read_rows(jpeg_decompress_struct& info, uint8_t* pixels, uint8_t* cmyk_row) {
  const size_t stride = size_t{info.output_width} * 3;
  while (info.output_scanline < info.output_height) {
    uint8_t* out = pixels + info.output_scanline * stride;
    uint8_t* row = cmyk_row != nullptr ? cmyk_row : out;
    if (jpeg_read_scanlines(&info, &row, 1) == 1 && cmyk_row != nullptr) {
      cmyk_to_rgb(cmyk_row, static_cast<int>(info.output_width), out);
    }
  }
}

}  // namespace

EncodedHeader read_jpeg_header(std::string_view bytes, std::string_view where) {
  JpegReader reader(bytes, where);
  reader.run([](jpeg_decompress_struct& info) {
    jpeg_save_markers(&info, kExifMarker, 0xffff);
    jpeg_read_header(&info, TRUE);
  });
  return {stored_size(reader.info()), stored_orientation(reader.info())};
}

Image decode_jpeg(std::string_view bytes, const EncodedHeader& header, std::string_view where) {
  JpegReader reader(bytes, where);
  reader.run([](jpeg_decompress_struct& info) { jpeg_read_header(&info, TRUE); });
  if (stored_size(reader.info()) != header.size) {
    throw_damaged(Damage::corrupt, ImageFormat::jpeg, where);
  }
  const bool has_black = reader.info().num_components == 4;
  const size_t pixels = size_t(header.size.height) * header.size.width;
  Image image{header.size.height, header.size.width, std::vector<uint8_t>(pixels * 3)};
  std::vector<uint8_t> cmyk_row(has_black ? size_t(header.size.width) * 4 : 0);
  reader.run([&](jpeg_decompress_struct& info) {
    info.out_color_space = has_black ? JCS_CMYK : JCS_RGB;
    info.dct_method = JDCT_ISLOW;
    info.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&info);
    read_rows(info, image.pixels.data(), has_black ? cmyk_row.data() : nullptr);
    jpeg_finish_decompress(&info);
  });
  return image;
}

}  // namespace whimbrel
