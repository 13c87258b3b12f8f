#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <iterator>

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr int kBarWidth = 30;

bool colours_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool forbidden = no_color != nullptr && *no_color != '\0';
  return !forbidden && stderr_is_terminal() && stdout_is_terminal();
}

}  // namespace

Style stderr_style() {
  return colours_wanted() ? Style{"\x1b[31m", "\x1b[2m", "\x1b[0m"} : Style{};
}

bool stdin_is_terminal() {
  return isatty(STDIN_FILENO) != 0;
}
bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) != 0;
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) != 0;
}

void write_stdout(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Error(Fault::io, "stdout", "writing failed: {}; free some space", std::strerror(errno));
  }
}

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

std::string read_stdin() {
  std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (std::cin.bad()) {
    throw Error(Fault::io, "stdin", "reading failed: {}", std::strerror(errno));
  }
  return text;
}

ProgressBar::ProgressBar(std::string label, bool enabled)
    : label_(std::move(label)), enabled_(enabled && stderr_is_terminal()) {}

ProgressBar::~ProgressBar() {
  if (percent_ >= 0) {
    write_stderr("\r\x1b[K");
  }
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  const int percent = total == 0 ? 100 : static_cast<int>(done * 100 / total);
  if (!enabled_ || percent == percent_) {
    return;
  }
  percent_ = percent;
  const std::string full(static_cast<size_t>(percent * kBarWidth / 100), '#');
  const Style style = stderr_style();
  write_stderr(
      fmt::format(
          "\r{}{} [{:<{}}] {:3}%{}", style.dim, label_, full, kBarWidth, percent, style.reset
      )
  );
}

}  // namespace whimbrel
