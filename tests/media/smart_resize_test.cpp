#include "media/smart_resize.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace whimbrel {

void PrintTo(const Size& size, std::ostream* out) {
  *out << size.height << "x" << size.width;
}

namespace {

struct Case {
  Size from;
  Size wide;    // factor 28, 3136 to 12845056
  Size narrow;  // factor 28, 3136 to 1003520
  Size coarse;  // factor 32, 65536 to 16777216
};

class SmartResize : public testing::TestWithParam<Case> {};

TEST_P(SmartResize, EqualsTheReference) {
  const Case& c = GetParam();
  EXPECT_EQ(smart_resize(c.from, 28, 3136, 12845056), c.wide);
  EXPECT_EQ(smart_resize(c.from, 28, 3136, 1003520), c.narrow);
  EXPECT_EQ(smart_resize(c.from, 32, 65536, 16777216), c.coarse);
}

INSTANTIATE_TEST_SUITE_P(
    Table,
    SmartResize,
    testing::Values(
        Case{{480, 640}, {476, 644}, {476, 644}, {480, 640}},
        Case{{1080, 1920}, {1092, 1932}, {728, 1316}, {1088, 1920}},
        Case{{70, 70}, {56, 56}, {56, 56}, {256, 256}},    // 2.5 rounds to 2
        Case{{98, 42}, {112, 56}, {112, 56}, {416, 192}},  // 3.5 to 4, 1.5 to 2
        Case{{4000, 6000}, {2912, 4368}, {812, 1204}, {3328, 4992}},
        Case{{3000, 20}, {2996, 28}, {2996, 28}, {3008, 32}},
        Case{{10, 300}, {28, 308}, {28, 308}, {64, 1408}},
        // A side that rounds to 0 goes the way of too small an area.
        Case{{10, 2000}, {28, 812}, {28, 812}, {32, 3648}},
        Case{{1, 1}, {56, 56}, {56, 56}, {256, 256}},
        Case{{1, 200}, {28, 812}, {28, 812}, {32, 3648}}
    )
);

TEST(SmartResizeLimits, ShrinkingKeepsOneFactorOfEachSide) {
  EXPECT_EQ(smart_resize({16, 3200}, 28, 3136, 4000), (Size{28, 868}));
}

TEST(SmartResizeLimits, AspectOf200IsTheLast) {
  EXPECT_NO_THROW(smart_resize({200, 1}, 28, 3136, 12845056));
  EXPECT_THROW(smart_resize({201, 1}, 28, 3136, 12845056), Error);
  EXPECT_THROW(smart_resize({1, 16384}, 28, 3136, 12845056), Error);
  EXPECT_THROW(smart_resize({0, 5}, 28, 3136, 12845056), Error);
}

TEST(SmartResizeLimits, ErrorNamesThePictureAndItsSize) {
  try {
    smart_resize({1, 16384}, 28, 3136, 12845056, "strip.png");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::input);
    EXPECT_EQ(
        std::string(error.what()),
        "[strip.png] got 1 x 16384 pixels (height x width), expected a longer side of at most 200 "
        "times the shorter; crop the picture"
    );
  }
}

}  // namespace
}  // namespace whimbrel
