#pragma once

#include <cstdint>
#include <optional>

namespace whimbrel {

/// Bytes that this process can still take without swapping: the system's own figure, or what its
/// cgroup leaves if that is less. Nothing where the system doesn't say.
std::optional<uint64_t> available_memory();

/// Bytes of memory that this process could have at most: the system's, or its cgroup's limit if
/// that is less. Nothing where the system doesn't say.
std::optional<uint64_t> total_memory();

}  // namespace whimbrel
