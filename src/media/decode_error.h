#pragma once

#include <string_view>

#include "media/decode.h"

namespace whimbrel {

/// Why a decoder gives up on a picture.
enum class Damage {
  none,
  truncated,       // the data end early
  corrupt,         // the data contradict the format
  unsupported,     // a kind of the format that its library doesn't decode
  empty,           // no picture in the file, or a side of 0 pixels
  too_large,       // a side over what the format's library accepts
  too_many_scans,  // a progressive JPEG made to take long
};

/// Throws Error(Fault::input). The text is ours: a library's own may show addresses or file
/// content.
[[noreturn]] void throw_damaged(Damage damage, ImageFormat format, std::string_view where);

}  // namespace whimbrel
