#include "tests/support/video_helper.h"

namespace whimbrel::test {

std::filesystem::path video_helper() {
  return WHIMBREL_VIDEO_HELPER;
}

std::filesystem::path breakout_helper() {
  return WHIMBREL_BREAKOUT_HELPER;
}

}  // namespace whimbrel::test
