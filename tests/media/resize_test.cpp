#include "media/resize.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/picture_file.h"

namespace whimbrel {
namespace {

struct Case {
  std::string source;
  Size size;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.source << " to " << c.size.height << "x" << c.size.width;
}

class Resize : public testing::TestWithParam<Case> {};

TEST_P(Resize, EqualsPillowInEveryByte) {
  const Case& c = GetParam();
  const Image source = test::read_ppm(test::media_golden("resize/" + c.source + ".ppm"));
  const std::string name = fmt::format("{}_{}x{}", c.source, c.size.height, c.size.width);
  const Image expected = test::read_ppm(test::media_golden("resize/" + name + ".ppm"));
  const Image found = resize_bicubic(source, c.size.height, c.size.width);
  EXPECT_EQ(test::largest_difference(found, expected), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Noise,
    Resize,
    testing::Values(
        Case{"noise_37x53", {28, 28}},
        Case{"noise_37x53", {56, 84}},
        Case{"noise_37x53", {37, 20}},  // the height stays
        Case{"noise_37x53", {37, 111}},
        Case{"noise_37x53", {11, 53}},  // the width stays
        Case{"noise_37x53", {90, 53}},
        Case{"noise_37x53", {37, 53}},  // both stay
        Case{"noise_37x53", {1, 1}},
        Case{"noise_37x53", {3, 140}},  // down and up
        Case{"noise_37x53", {120, 2}}
    )
);

INSTANTIATE_TEST_SUITE_P(
    Smooth,
    Resize,
    testing::Values(
        Case{"smooth_64x48", {28, 28}},
        Case{"smooth_64x48", {128, 96}},
        Case{"smooth_64x48", {63, 49}},
        Case{"smooth_64x48", {5, 7}},
        Case{"smooth_64x48", {64, 96}},
        Case{"smooth_64x48", {100, 48}}
    )
);

INSTANTIATE_TEST_SUITE_P(
    Small,
    Resize,
    testing::Values(
        Case{"noise_1x1", {1, 1}},
        Case{"noise_1x1", {28, 28}},
        Case{"noise_1x1", {2, 3}},
        Case{"noise_3x7", {56, 112}},
        Case{"noise_3x7", {2, 2}},
        Case{"noise_3x7", {7, 3}}
    )
);

INSTANTIATE_TEST_SUITE_P(
    Extreme,
    Resize,
    testing::Values(
        Case{"noise_1x150", {28, 700}},
        Case{"noise_1x150", {1, 9}},
        Case{"noise_1x150", {20, 30}},
        Case{"noise_250x2", {68, 28}},  // the height goes first
        Case{"noise_250x2", {68, 2}},
        Case{"noise_250x2", {300, 28}},
        Case{"checker_100x60", {28, 28}},
        Case{"checker_100x60", {50, 30}},
        Case{"checker_100x60", {99, 59}}  // overshoot is clipped
    )
);

}  // namespace
}  // namespace whimbrel
