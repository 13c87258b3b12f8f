#pragma once

#include <cstddef>
#include <functional>

namespace whimbrel {

/// Fills `size` bytes with what a decoder's process says next, or throws.
using ByteSource = std::function<void(void* data, size_t size)>;

}  // namespace whimbrel
