#pragma once

#include <string_view>
#include <vector>

#include "weights/safetensors.h"

namespace whimbrel {

/// The entries of a header's JSON in the file's order, each well-formed by itself: name, dtype and
/// shape are checked, offsets are as stated. parse_safetensors_header checks them against the file.
/// Throws Error(Fault::model) naming `where` and the tensor.
std::vector<TensorInfo> read_safetensors_json(std::string_view json, std::string_view where);

}  // namespace whimbrel
