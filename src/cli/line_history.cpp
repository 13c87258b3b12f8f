#include "cli/line_history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "base/file.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kOwnerOnly = 0600;

/// The value of a variable; nothing where it is unset or empty.
std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

[[noreturn]] void fail(const fs::path& file) {
  throw Error(
      Fault::io,
      file.string(),
      "keeping typed lines failed: {}; --no-history goes without",
      std::strerror(errno)
  );
}

/// Writes to a file for its owner alone, made where there is none.
void write_private(const fs::path& file, int flags, const std::string& bytes) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, kOwnerOnly);
  if (descriptor < 0) {
    fail(file);
  }
  const bool written = fchmod(descriptor, kOwnerOnly) == 0 &&
                       write(descriptor, bytes.data(), bytes.size()) == std::ssize(bytes);
  const int kept = errno;
  close(descriptor);
  errno = kept;
  if (!written) {
    fail(file);
  }
}

void replace(const fs::path& file, const std::vector<std::string>& lines) {
  std::string bytes;
  for (const std::string& line : lines) {
    bytes += line + "\n";
  }
  const fs::path whole = file.string() + ".new";
  write_private(whole, O_TRUNC, bytes);
  std::error_code code;
  fs::rename(whole, file, code);
  if (code) {
    errno = code.value();
    fail(file);
  }
}

}  // namespace

std::optional<fs::path> history_file() {
  if (variable("WHIMBREL_NO_HISTORY")) {
    return std::nullopt;
  }
  if (const std::optional<std::string> state = variable("XDG_STATE_HOME")) {
    return fs::path(*state) / "whimbrel" / "history";
  }
  const std::optional<std::string> home = variable("HOME");
  return home ? std::optional(fs::path(*home) / ".local/state/whimbrel/history") : std::nullopt;
}

std::vector<std::string> read_history(const fs::path& file) {
  std::istringstream text(read_file_if_present(file, Fault::io).value_or(""));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  const bool is_long = lines.size() >= 2 * kHistoryLines;
  if (lines.size() > kHistoryLines) {
    lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(kHistoryLines));
  }
  if (is_long) {
    replace(file, lines);
  }
  return lines;
}

void append_history(const fs::path& file, const std::string& line) {
  std::error_code code;
  fs::create_directories(file.parent_path(), code);
  if (code) {
    errno = code.value();
    fail(file);
  }
  write_private(file, O_APPEND, line + "\n");
}

}  // namespace whimbrel
