#include "tests/support/decoders.h"

namespace whimbrel::test {

namespace {

const std::filesystem::path kDecoders = WHIMBREL_DECODERS;
const std::filesystem::path kBreakouts = WHIMBREL_BREAKOUTS;

}  // namespace

std::filesystem::path video_decoder() {
  return kDecoders / "whimbrel-video";
}

std::filesystem::path picture_decoder() {
  return kDecoders / "whimbrel-picture";
}

std::filesystem::path video_breakout() {
  return kBreakouts / "whimbrel-video-breakout";
}

std::filesystem::path picture_breakout() {
  return kBreakouts / "whimbrel-picture-breakout";
}

}  // namespace whimbrel::test
