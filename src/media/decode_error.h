#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "media/image_format.h"

namespace whimbrel {

/// Why a decoder gives up on a picture.
enum class Damage : uint32_t {
  none,
  truncated,       // the data end early
  corrupt,         // the data contradict the format
  unsupported,     // a kind of the format that its library doesn't decode
  empty,           // no picture in the file, or a side of 0 pixels
  too_large,       // a side over what the format's library accepts
  too_many_scans,  // a progressive JPEG made to take long
  no_memory,       // its decoder may have no more; only where that is a process of its own
  last = no_memory,
};

/// What throw_damaged throws: an Error that says as well what it is made of.
class DamagedPicture : public Error {
 public:
  DamagedPicture(Damage damage, ImageFormat format, std::string_view where);

  Damage damage() const { return damage_; }

 private:
  Damage damage_;
};

/// Throws DamagedPicture, an Error(Fault::input). The text is ours: a library's own may show
/// addresses or file content.
[[noreturn]] void throw_damaged(Damage damage, ImageFormat format, std::string_view where);

}  // namespace whimbrel
