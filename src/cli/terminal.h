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

/// Colours for stdout: on a terminal, unless NO_COLOR is set.
Style stdout_style();

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Writes to stdout and flushes. Throws Error(Fault::io) where that fails (a full disk).
void write_stdout(std::string_view text);

/// Writes to stderr. A failure is not reported: there is nowhere left to say so.
void write_stderr(std::string_view text);

/// Text from outside as a terminal may show it: control characters but tab and line feed become
/// signs for them (U+2400 and on, U+FFFD for C1), so that no text can steer the terminal.
std::string visible(std::string_view text);

/// Writes a piece of a model's text to stdout: as it is, on a terminal as visible() shows it.
/// Throws as write_stdout.
void write_answer(std::string_view text);

/// Writes `error: SENTENCE` to stderr, in one line whatever the sentence quotes.
void write_error(std::string_view sentence);

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
