#include "ops/cpu/pack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace whimbrel::ops::cpu {

namespace {

constexpr int kLargestGroup = 128;

using GroupCodes = std::array<uint8_t, kLargestGroup>;

/// Widths of a layout's planes of bits, the second 0 where there is one only.
struct Planes {
  int first;
  int second;
};

constexpr Planes planes_of(int bits) {
  const int first = bits == 8 ? 8 : bits >= 4 ? 4 : 2;
  return {first, bits - first};
}

/// Codes of a group from its string of bits: eight codes fill `bits` bytes.
GroupCodes read_codes(const uint8_t* bytes, int bits, int count) {
  GroupCodes codes{};
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int i = 0; i < count; i += 8, bytes += bits) {
    uint64_t run = 0;
    std::memcpy(&run, bytes, static_cast<size_t>(bits));
    for (int j = 0; j < 8; ++j, run >>= bits) {
      codes[static_cast<size_t>(i) + j] = static_cast<uint8_t>(run & mask);
    }
  }
  return codes;
}

/// read_codes for 4 bits, which most models have.
GroupCodes read_nibbles(const uint8_t* bytes, int count) {
  GroupCodes codes{};
  for (int i = 0; i < count / 2; ++i) {
    codes[size_t{2} * i] = bytes[i] & 15;
    codes[size_t{2} * i + 1] = bytes[i] >> 4;
  }
  return codes;
}

uint32_t four_codes(const GroupCodes& codes, int vector) {
  uint32_t word = 0;
  std::memcpy(&word, codes.data() + 4 * vector, sizeof(word));
  return word;
}

uint32_t in_each_byte(int value) {
  return 0x01010101U * static_cast<uint32_t>(value);
}

/// Bits [base, base + width) of a group's codes into a plane, for one lane.
void write_plane(
    const GroupCodes& codes, int group_size, int base, int width, int lane, std::byte* plane
) {
  const int vectors = group_size * width / 32;
  const uint32_t mask = in_each_byte((1 << width) - 1);
  for (int vector = 0; vector < vectors; ++vector) {
    uint32_t word = 0;
    for (int t = 0; t < 8 / width; ++t) {
      const uint32_t bits = (four_codes(codes, vector + t * vectors) >> base) & mask;
      word |= bits << (t * width);
    }
    std::memcpy(plane + 64 * vector + 4 * lane, &word, sizeof(word));
  }
}

size_t plane_bytes(int group_size, int width) {
  return static_cast<size_t>(kLanes) * static_cast<size_t>(group_size * width) / 8;
}

void write_codes(const GroupCodes& codes, const CodesLayout& layout, int lane, std::byte* block) {
  const Planes planes = planes_of(layout.bits);
  write_plane(codes, layout.group_size, 0, planes.first, lane, block);
  if (planes.second > 0) {
    std::byte* plane = block + plane_bytes(layout.group_size, planes.first);
    write_plane(codes, layout.group_size, planes.first, planes.second, lane, plane);
  }
}

int read_plane(const std::byte* plane, int group_size, int width, int lane, int input) {
  const int vectors = group_size * width / 32;
  const int vector = input / 4;
  const std::byte byte = plane[64 * (vector % vectors) + 4 * lane + input % 4];
  return (std::to_integer<int>(byte) >> (width * (vector / vectors))) & ((1 << width) - 1);
}

int read_code(const std::byte* block, const CodesLayout& layout, int lane, int input) {
  const Planes planes = planes_of(layout.bits);
  int code = read_plane(block, layout.group_size, planes.first, lane, input);
  if (planes.second > 0) {
    const std::byte* plane = block + plane_bytes(layout.group_size, planes.first);
    code |= read_plane(plane, layout.group_size, planes.second, lane, input) << planes.first;
  }
  return code;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 31U;
  const uint32_t fraction = half & 1023U;
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

}  // namespace

void pack_codes(const StoredCodes& stored, const CodesLayout& layout, int panel, std::byte* out) {
  std::memset(out, 0, layout.panel_bytes());
  const int lanes = std::min(kLanes, stored.outputs - panel * kLanes);
  const size_t group_bytes = static_cast<size_t>(layout.group_size * layout.bits) / 8;
  const size_t scale_bytes = layout.scale_bytes();
  for (int group = 0; group < layout.groups; ++group, out += layout.block_bytes()) {
    for (int lane = 0; lane < lanes; ++lane) {
      const size_t place = static_cast<size_t>(panel * kLanes + lane) * layout.groups + group;
      const uint8_t* bytes = stored.codes + place * group_bytes;
      const GroupCodes codes = layout.bits == 4 ? read_nibbles(bytes, layout.group_size)
                                                : read_codes(bytes, layout.bits, layout.group_size);
      write_codes(codes, layout, lane, out);
      std::byte* scales = out + layout.code_bytes() + lane * scale_bytes;
      std::memcpy(scales, stored.scales + place * scale_bytes, scale_bytes);
      std::memcpy(scales + kLanes * scale_bytes, stored.offsets + place * scale_bytes, scale_bytes);
    }
  }
}

int padded_inputs(Float type, int inputs) {
  const int step = type == Float::bf16 ? 32 : 2;
  return (inputs + step - 1) / step * step;
}

namespace {

/// Bytes from a panel's start to the number of an output and input.
size_t place_of(const FloatsLayout& layout, int lane, int input) {
  const auto lanes = static_cast<size_t>(kLanes);
  if (layout.type == Float::bf16) {
    return 2 * (static_cast<size_t>(input / 2) * lanes * 2 + 2 * static_cast<size_t>(lane) +
                static_cast<size_t>(input % 2));
  }
  const size_t place = static_cast<size_t>(input) * lanes + static_cast<size_t>(lane);
  return place * (layout.type == Float::f32 ? 4 : 2);
}

}  // namespace

void pack_floats(
    const StoredFloats& stored, const FloatsLayout& layout, int panel, std::byte* out
) {
  std::memset(out, 0, layout.panel_bytes());
  const int lanes = std::min(kLanes, stored.outputs - panel * kLanes);
  const size_t bytes = layout.type == Float::f32 ? 4 : 2;
  for (int lane = 0; lane < lanes; ++lane) {
    const size_t row = static_cast<size_t>(panel * kLanes + lane) * stored.inputs;
    for (int input = 0; input < stored.inputs; ++input) {
      const std::byte* number = stored.numbers + (row + input) * bytes;
      std::memcpy(out + place_of(layout, lane, input), number, bytes);
    }
  }
}

void unpack_codes_row(const std::byte* panel, const CodesLayout& layout, int lane, float* y) {
  for (int group = 0; group < layout.groups; ++group, panel += layout.block_bytes()) {
    const std::byte* scales = panel + layout.code_bytes() + lane * layout.scale_bytes();
    const float scale = to_float(scales, layout.scales);
    const float offset = to_float(scales + kLanes * layout.scale_bytes(), layout.scales);
    for (int input = 0; input < layout.group_size; ++input) {
      *y++ = scale * static_cast<float>(read_code(panel, layout, lane, input)) + offset;
    }
  }
}

void unpack_floats_row(
    const std::byte* panel, const FloatsLayout& layout, int lane, int inputs, float* y
) {
  for (int input = 0; input < inputs; ++input) {
    y[input] = to_float(panel + place_of(layout, lane, input), layout.type);
  }
}

float to_float(const std::byte* p, Float type) {
  if (type == Float::f32) {
    float number = 0;
    std::memcpy(&number, p, sizeof(number));
    return number;
  }
  uint16_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  return type == Float::f16 ? half_to_float(word)
                            : std::bit_cast<float>(static_cast<uint32_t>(word) << 16);
}

}  // namespace whimbrel::ops::cpu
