#pragma once

#include <filesystem>
#include <string_view>

#include "media/byte_source.h"
#include "media/decode.h"
#include "media/decoder_process.h"

namespace whimbrel {

/// The program that decodes pictures, beside find_video_decoder's. Throws Error(Fault::io) where it
/// isn't there.
std::filesystem::path find_picture_decoder();

/// How long a picture may take, in seconds of wall time: the machine may be busy. The decoder's own
/// bounds are 5 s of processor time and 1 GiB.
constexpr double kPictureSeconds = 60;

/// As decode_image, but by a process of its own (`decoder`), which sees this picture alone and may
/// do nothing but decode. This process reads no more than the first bytes. Throws as decode_image
/// with the same texts, and Error(Fault::input) where the decoder dies, takes too long, or breaks a
/// rule of its sandbox; Error(Fault::interrupted) where it was cancelled; Error(Fault::io) where it
/// can't be run.
Image decode_image_apart(
    const std::filesystem::path& decoder,
    std::string_view bytes,
    std::string_view where,
    const ImageLimits& limits = {},
    const Patience& patience = {.seconds = kPictureSeconds}
);

/// The size in what a decoder says (picture_wire.h), which is trusted in nothing. Throws
/// Error(Fault::input, where) with the decoder's reason, or where it is no valid answer.
Size read_picture_size(const ByteSource& source, ImageFormat format, std::string_view where);

}  // namespace whimbrel
