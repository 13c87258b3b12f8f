#include "media/decode_gif.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "media/decode_error.h"

namespace whimbrel {

namespace {

constexpr int kWhite = 255;

using Colour = std::array<uint8_t, 3>;
using Palette = std::array<Colour, 256>;

int read_gif_bytes(GifFileType* gif, GifByteType* to, int count) {
  std::string_view& rest = *static_cast<std::string_view*>(gif->UserData);
  const size_t taken = std::min(rest.size(), static_cast<size_t>(std::max(count, 0)));
  std::memcpy(to, rest.data(), taken);
  rest.remove_prefix(taken);
  return static_cast<int>(taken);
}

// A file read up to its first frame's pixels, open for as long as this object lives.
class GifReader {
 public:
  GifReader(std::string_view bytes, std::string_view where) : rest_(bytes), where_(where) {
    int error = 0;
    gif_.reset(DGifOpen(&rest_, read_gif_bytes, &error));
    if (!gif_) {
      fail();
    }
    find_frame();
  }

  /// The canvas, widened where the frame reaches beyond it.
  Size canvas() const {
    return {
        std::max(gif_->SHeight, frame().Top + frame().Height),
        std::max(gif_->SWidth, frame().Left + frame().Width),
    };
  }
  const GifImageDesc& frame() const { return gif_->Image; }
  int transparent() const { return transparent_; }
  Palette palette() const;
  /// Palette indices of the next row, in stored order.
  void read_row(std::span<uint8_t> row);

 private:
  struct Close {
    void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
  };

  // giflib tells an early end from broken data by unlike codes; that no bytes are left is surer.
  [[noreturn]] void fail() const {
    throw_damaged(rest_.empty() ? Damage::truncated : Damage::corrupt, ImageFormat::gif, where_);
  }
  void check(int result) const {
    if (result == GIF_ERROR) {
      fail();
    }
  }
  void find_frame();
  void read_extension();

  std::string_view rest_;
  std::string_view where_;
  std::unique_ptr<GifFileType, Close> gif_;
  int transparent_ = NO_TRANSPARENT_COLOR;
};

void GifReader::find_frame() {
  GifRecordType record = UNDEFINED_RECORD_TYPE;
  while (record != IMAGE_DESC_RECORD_TYPE) {
    check(DGifGetRecordType(gif_.get(), &record));
    if (record == TERMINATE_RECORD_TYPE) {
      throw_damaged(Damage::empty, ImageFormat::gif, where_);
    }
    if (record == EXTENSION_RECORD_TYPE) {
      read_extension();
    }
  }
  check(DGifGetImageDesc(gif_.get()));
  if (frame().Height < 1 || frame().Width < 1) {
    throw_damaged(Damage::empty, ImageFormat::gif, where_);
  }
}

void GifReader::read_extension() {
  int code = 0;
  GifByteType* block = nullptr;
  check(DGifGetExtension(gif_.get(), &code, &block));
  GraphicsControlBlock control{};
  // A block begins with its length.
  if (code == GRAPHICS_EXT_FUNC_CODE && block != nullptr &&
      DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
    transparent_ = control.TransparentColor;
  }
  while (block != nullptr) {
    check(DGifGetExtensionNext(gif_.get(), &block));
  }
}

Palette GifReader::palette() const {
  Palette palette;
  // Without a palette of its own a picture is grey, and so are indices beyond it, as in Pillow.
  for (size_t i = 0; i < palette.size(); ++i) {
    palette[i].fill(static_cast<uint8_t>(i));
  }
  const ColorMapObject* map = frame().ColorMap != nullptr ? frame().ColorMap : gif_->SColorMap;
  const int count = map != nullptr ? std::min(map->ColorCount, 256) : 0;
  for (int i = 0; i < count; ++i) {
    palette[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue};
  }
  return palette;
}

void GifReader::read_row(std::span<uint8_t> row) {
  check(DGifGetLine(gif_.get(), row.data(), static_cast<int>(row.size())));
}

// The order in which a frame's rows are stored.
std::vector<int> row_order(const GifImageDesc& frame) {
  std::vector<int> order;
  const auto add = [&](int first, int step) {
    for (int y = first; y < frame.Height; y += step) {
      order.push_back(y);
    }
  };
  if (!frame.Interlace) {
    add(0, 1);
    return order;
  }
  add(0, 8);
  add(4, 8);
  add(2, 4);
  add(1, 2);
  return order;
}

void paint_row(
    std::span<const uint8_t> indices, const Palette& palette, int transparent, uint8_t* out
) {
  for (const uint8_t index : indices) {
    if (index != transparent) {
      std::copy(palette[index].begin(), palette[index].end(), out);
    }
    out += 3;
  }
}

}  // namespace

EncodedHeader read_gif_header(std::string_view bytes, std::string_view where) {
  return {GifReader(bytes, where).canvas()};
}

Image decode_gif(std::string_view bytes, const EncodedHeader& header, std::string_view where) {
  GifReader reader(bytes, where);
  const GifImageDesc& frame = reader.frame();
  const size_t stride = size_t(header.size.width) * 3;
  Image image{
      header.size.height,
      header.size.width,
      std::vector<uint8_t>(stride * header.size.height, kWhite),
  };
  const Palette palette = reader.palette();
  std::vector<uint8_t> indices(frame.Width);
  for (const int y : row_order(frame)) {
    reader.read_row(indices);
    uint8_t* row = image.pixels.data() + (frame.Top + y) * stride + size_t(frame.Left) * 3;
    paint_row(indices, palette, reader.transparent(), row);
  }
  return image;
}

}  // namespace whimbrel
