#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace whimbrel {

/// Lines that are kept at most.
inline constexpr size_t kHistoryLines = 1000;

/// Where typed lines are kept: whimbrel/history in $XDG_STATE_HOME, else in ~/.local/state.
/// Nothing without a home folder, and where WHIMBREL_NO_HISTORY is set.
std::optional<std::filesystem::path> history_file();

/// The last kHistoryLines lines, oldest first; none where there is no file. A file that has grown
/// to twice as many is cut to these. Throws Error(Fault::io).
std::vector<std::string> read_history(const std::filesystem::path& file);

/// Adds a line; the file is for its owner alone (mode 0600). Safe while other processes add theirs.
/// Throws Error(Fault::io).
void append_history(const std::filesystem::path& file, const std::string& line);

}  // namespace whimbrel
