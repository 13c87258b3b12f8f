#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace whimbrel {

/// Element types of a safetensors file that we (and MLX) can read.
enum class StoredDtype {
  boolean,
  u8,
  i8,
  f8_e4m3,
  f8_e8m0,
  u16,
  i16,
  f16,
  bf16,
  u32,
  i32,
  f32,
  u64,
  i64,
  c64,
};

/// The name in the file: "BF16", "U32" and so on.
std::string_view dtype_name(StoredDtype dtype);

/// Bytes of one element.
uint64_t dtype_bytes(StoredDtype dtype);

/// The dtype of a name, or nothing where we don't read such a one.
std::optional<StoredDtype> find_dtype(std::string_view name);

/// All names, for error texts.
std::string known_dtypes();

}  // namespace whimbrel
