#pragma once

// What the program and its picture decoder, a process of its own, say to each other over one
// socket. Host byte order: both run on one machine. The program sends a PictureRequest and the
// file's bytes and gets a PictureReply with the size; where it wants the picture it sends kDecode,
// gets the same reply again, and height * width * 3 bytes of RGB. A damage is the last thing that
// is said.

#include <cstdint>

#include "media/decode_error.h"
#include "media/image_format.h"

namespace whimbrel {

inline constexpr uint32_t kPictureRequestMagic = 0x51434950;  // "PICQ"
inline constexpr uint32_t kPictureReplyMagic = 0x52434950;    // "PICR"
inline constexpr uint32_t kDecode = 0x4f474950;               // "PIGO"

struct PictureRequest {
  uint32_t magic = kPictureRequestMagic;
  ImageFormat format = ImageFormat::png;
  uint64_t bytes = 0;
};

struct PictureReply {
  uint32_t magic = kPictureReplyMagic;
  Damage damage = Damage::none;
  uint32_t height = 0;  // as displayed
  uint32_t width = 0;
};

static_assert(sizeof(PictureRequest) == 16 && sizeof(PictureReply) == 16);

}  // namespace whimbrel
