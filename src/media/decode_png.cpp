#include "media/decode_png.h"

#include <png.h>

#include <csetjmp>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <vector>

#include "media/composite.h"
#include "media/decode_error.h"
#include "media/exif.h"

namespace whimbrel {

namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kHeaderBytes = 33;  // signature and the IHDR chunk

// What libpng's callbacks reach.
struct PngSource {
  std::string_view rest;
  Damage damage = Damage::corrupt;
};

extern "C" {

[[noreturn]] void on_png_error(png_structp png, png_const_charp) {
  png_longjmp(png, 1);
}

void ignore_png_warning(png_structp, png_const_charp) {}

void read_png_bytes(png_structp png, png_bytep to, size_t count) {
  PngSource& source = *static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source.rest.size()) {
    source.damage = Damage::truncated;
    png_error(png, "");
  }
  std::memcpy(to, source.rest.data(), count);
  source.rest.remove_prefix(count);
}

}  // extern "C"

// Runs libpng calls; false where one failed. libpng leaves a failing call by longjmp to here, so
// nothing inside `calls` may need a destructor.
template <typename Calls>
bool guarded(png_structp png, const Calls& calls) {
  if (setjmp(png_jmpbuf(png)) != 0) {
    return false;
  }
  calls();
  return true;
}

// A decoder over bytes in memory, open for as long as this object lives.
class PngReader {
 public:
  PngReader(std::string_view bytes, std::string_view where) : source_{bytes}, where_(where) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, on_png_error, ignore_png_warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Reads up to the pixels and chooses the output: RGB or RGBA of 8 bits.
  void open() {
    run([this] {
      png_set_read_fn(png_, &source_, read_png_bytes);
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
      png_read_info(png_, info_);
      png_set_expand(png_);
      png_set_scale_16(png_);
      png_set_gray_to_rgb(png_);
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
  }

  /// One pointer a row; reads to the end of the file.
  void read(std::vector<uint8_t*>& rows) {
    run([this, &rows] {
      png_read_image(png_, rows.data());
      png_read_end(png_, nullptr);
    });
  }

  Size size() const {
    return {
        static_cast<int>(png_get_image_height(png_, info_)),
        static_cast<int>(png_get_image_width(png_, info_)),
    };
  }
  int channels() const { return png_get_channels(png_, info_); }

 private:
  template <typename Calls>
  void run(const Calls& calls) {
    if (!guarded(png_, calls)) {
      throw_damaged(source_.damage, ImageFormat::png, where_);
    }
  }

  PngSource source_;
  std::string_view where_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

std::optional<uint32_t> read_big_endian(std::string_view bytes, size_t offset) {
  if (bytes.size() < 4 || offset > bytes.size() - 4) {
    return std::nullopt;
  }
  return png_get_uint_32(reinterpret_cast<const uint8_t*>(bytes.data()) + offset);
}

// The data of the eXIf chunk, wherever it stands; empty where there is none.
std::string_view find_exif(std::string_view bytes) {
  std::string_view rest = bytes.substr(kSignatureBytes);
  while (const std::optional<uint32_t> length = read_big_endian(rest, 0)) {
    const size_t chunk_bytes = size_t{*length} + 12;  // length, name, data, checksum
    if (chunk_bytes > rest.size()) {
      break;
    }
    if (rest.substr(4, 4) == "eXIf") {
      return rest.substr(8, *length);
    }
    rest.remove_prefix(chunk_bytes);
  }
  return {};
}

int read_side(std::string_view bytes, size_t offset, std::string_view where) {
  const uint32_t side = read_big_endian(bytes, offset).value_or(0);
  if (side > static_cast<uint32_t>(std::numeric_limits<int>::max())) {
    throw_damaged(Damage::corrupt, ImageFormat::png, where);
  }
  return static_cast<int>(side);
}

std::vector<uint8_t*> row_pointers(std::vector<uint8_t>& pixels, int height) {
  std::vector<uint8_t*> rows;
  for (int y = 0; y < height; ++y) {
    rows.push_back(pixels.data() + pixels.size() / height * y);
  }
  return rows;
}

}  // namespace

EncodedHeader read_png_header(std::string_view bytes, std::string_view where) {
  if (bytes.size() < kHeaderBytes) {
    throw_damaged(Damage::truncated, ImageFormat::png, where);
  }
  if (bytes.substr(12, 4) != "IHDR") {
    throw_damaged(Damage::corrupt, ImageFormat::png, where);
  }
  const Size size{read_side(bytes, 20, where), read_side(bytes, 16, where)};
  return {size, exif_orientation(find_exif(bytes))};
}

Image decode_png(std::string_view bytes, const EncodedHeader& header, std::string_view where) {
  PngReader reader(bytes, where);
  reader.open();
  if (reader.size() != header.size) {
    throw_damaged(Damage::corrupt, ImageFormat::png, where);
  }
  const size_t pixels = size_t(header.size.height) * header.size.width;
  std::vector<uint8_t> levels(pixels * reader.channels());
  std::vector<uint8_t*> rows = row_pointers(levels, header.size.height);
  reader.read(rows);
  if (reader.channels() == 4) {
    return composite_on_white(levels, header.size);
  }
  return {header.size.height, header.size.width, std::move(levels)};
}

}  // namespace whimbrel
