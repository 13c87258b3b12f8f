#include "media/decode_error.h"

namespace whimbrel {

namespace {

std::string_view describe(Damage damage) {
  switch (damage) {
    case Damage::truncated:
      return "whose data end early, expected a whole picture; copy or download it again";
    case Damage::unsupported:
      return "of a kind that can't be decoded, expected 8 bits a channel (PNG: up to 16) and grey, "
             "RGB or CMYK; save it again in a common form";
    case Damage::empty:
      return "without a picture, expected one of at least 1 x 1 pixels";
    case Damage::too_large:
      return "with a side that is too long, expected at most 16384 pixels; scale it down";
    case Damage::too_many_scans:
      return "with an excessive number of progressive scans, expected a common one; save it again";
    case Damage::no_memory:
      return "that needs more memory to decode than there is for one, expected a smaller or "
             "simpler "
             "one; save it again";
    case Damage::corrupt:
    case Damage::none:
      break;
  }
  return "with broken data, expected an intact picture; save it again or take another";
}

}  // namespace

DamagedPicture::DamagedPicture(Damage damage, ImageFormat format, std::string_view where)
    : Error(Fault::input, where, "got a {} {}", format_name(format), describe(damage)),
      damage_(damage) {}

void throw_damaged(Damage damage, ImageFormat format, std::string_view where) {
  throw DamagedPicture(damage, format, where);
}

}  // namespace whimbrel
