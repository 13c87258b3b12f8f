#include "weights/stored_dtype.h"

#include <fmt/format.h>

#include <array>

namespace whimbrel {

namespace {

struct DtypeRow {
  StoredDtype dtype;
  std::string_view name;
  uint64_t bytes;
};

// In the enum's order. MLX reads no F64, and FP8 only as bytes.
constexpr std::array<DtypeRow, 15> kDtypes = {{
    {StoredDtype::boolean, "BOOL", 1},
    {StoredDtype::u8, "U8", 1},
    {StoredDtype::i8, "I8", 1},
    {StoredDtype::f8_e4m3, "F8_E4M3", 1},
    {StoredDtype::f8_e8m0, "F8_E8M0", 1},
    {StoredDtype::u16, "U16", 2},
    {StoredDtype::i16, "I16", 2},
    {StoredDtype::f16, "F16", 2},
    {StoredDtype::bf16, "BF16", 2},
    {StoredDtype::u32, "U32", 4},
    {StoredDtype::i32, "I32", 4},
    {StoredDtype::f32, "F32", 4},
    {StoredDtype::u64, "U64", 8},
    {StoredDtype::i64, "I64", 8},
    {StoredDtype::c64, "C64", 8},
}};

const DtypeRow& dtype_row(StoredDtype dtype) {
  return kDtypes.at(static_cast<size_t>(dtype));
}

}  // namespace

std::string_view dtype_name(StoredDtype dtype) {
  return dtype_row(dtype).name;
}

uint64_t dtype_bytes(StoredDtype dtype) {
  return dtype_row(dtype).bytes;
}

std::optional<StoredDtype> find_dtype(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) {
      return row.dtype;
    }
  }
  return std::nullopt;
}

std::string known_dtypes() {
  std::string names;
  for (const DtypeRow& row : kDtypes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

}  // namespace whimbrel
