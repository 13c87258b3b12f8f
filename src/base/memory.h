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

/// Most bytes that this process has had in memory since it began, or since reset_peak_memory where
/// the system can do that. Nothing where the system doesn't say.
std::optional<uint64_t> peak_memory();

/// Peaks count from now on, as far as the system lets a process say so (Linux).
void reset_peak_memory();

}  // namespace whimbrel
