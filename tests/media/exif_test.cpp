#include "media/exif.h"

#include <gtest/gtest.h>

#include <string>

namespace whimbrel {
namespace {

using namespace std::string_literals;

// Entry: tag, type, count, value; little-endian.
std::string directory(const std::string& entry) {
  return "II\x2a\0\x08\0\0\0\x01\0"s + entry + "\0\0\0\0"s;
}

TEST(ExifOrientation, BothByteOrdersAndThePrefix) {
  const std::string little = directory("\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s);
  const std::string big = "MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0"s;
  EXPECT_EQ(exif_orientation(little), 6);
  EXPECT_EQ(exif_orientation("Exif\0\0"s + little), 6);
  EXPECT_EQ(exif_orientation(big), 8);
}

TEST(ExifOrientation, WhatIsNoOrientationMeansUpright) {
  EXPECT_EQ(exif_orientation(""), 1);
  EXPECT_EQ(exif_orientation("II"), 1);
  EXPECT_EQ(exif_orientation("XX\x2a\0\x08\0\0\0"s), 1);
  EXPECT_EQ(exif_orientation("II\x2b\0\x08\0\0\0"s), 1);
  EXPECT_EQ(exif_orientation(directory("\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"s)), 1);  // 9
  EXPECT_EQ(exif_orientation(directory("\x12\x01\x03\0\x01\0\0\0\0\0\0\0"s)), 1);    // 0
  EXPECT_EQ(exif_orientation(directory("\x13\x01\x03\0\x01\0\0\0\x06\0\0\0"s)), 1);  // other tag
}

TEST(ExifOrientation, OffsetsBeyondTheBlockMeanUpright) {
  EXPECT_EQ(exif_orientation("II\x2a\0\xff\xff\xff\xff"s), 1);
  EXPECT_EQ(exif_orientation("II\x2a\0\x08\0\0\0\xff\xff"s), 1);  // 65535 entries, none there
  const std::string whole = directory("\x12\x01\x03\0\x01\0\0\0\x06\0\0\0"s);
  for (size_t size = 0; size < 20; ++size) {
    EXPECT_EQ(exif_orientation(whole.substr(0, size)), 1) << size;
  }
}

TEST(TurnUpright, EveryOrientation) {
  // Stored:  1 2 3
  //          4 5 6
  Image stored{2, 3, std::vector<uint8_t>(18)};
  for (size_t i = 0; i < stored.pixels.size(); ++i) {
    stored.pixels[i] = static_cast<uint8_t>(i / 3 + 1);
  }
  const std::vector<std::pair<Size, std::string>> expected = {
      {{2, 3}, "123456"},
      {{2, 3}, "321654"},
      {{2, 3}, "654321"},
      {{2, 3}, "456123"},
      {{3, 2}, "142536"},
      {{3, 2}, "415263"},
      {{3, 2}, "635241"},
      {{3, 2}, "362514"},
  };
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Image seen = turn_upright(stored, orientation);
    const auto& [size, levels] = expected[orientation - 1];
    EXPECT_EQ(upright_size({2, 3}, orientation), size) << orientation;
    EXPECT_EQ((Size{seen.height, seen.width}), size) << orientation;
    for (size_t i = 0; i < levels.size(); ++i) {
      EXPECT_EQ(seen.pixels[i * 3 + 1], levels[i] - '0') << orientation << " at " << i;
    }
  }
}

}  // namespace
}  // namespace whimbrel
