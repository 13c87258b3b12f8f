#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace whimbrel {

/// Escape sequences, or empty strings where colours are off.
struct Style {
  std::string_view red;
  std::string_view dim;
  std::string_view reset;
};

/// Colours for stderr: on a terminal, unless NO_COLOR is set or stdout is no terminal.
Style stderr_style();

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Writes to stdout and flushes. Throws Error(Fault::io) where that fails (a full disk).
void write_stdout(std::string_view text);

/// Writes to stderr. A failure is not reported: there is nowhere left to say so.
void write_stderr(std::string_view text);

/// All of stdin.
std::string read_stdin();

/// A bar on stderr that is redrawn in place and wiped at the end; silent unless stderr is a
/// terminal.
class ProgressBar {
 public:
  ProgressBar(std::string label, bool enabled);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(uint64_t done, uint64_t total);

 private:
  std::string label_;
  bool enabled_;
  int percent_ = -1;
};

}  // namespace whimbrel
