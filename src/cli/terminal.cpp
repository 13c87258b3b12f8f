#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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

Style style_for(bool terminal) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool forbidden = no_color != nullptr && *no_color != '\0';
  return terminal && !forbidden ? Style{"\x1b[31m", "\x1b[2m", "\x1b[0m"} : Style{};
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

bool is_control(unsigned char byte) {
  return byte < 0x20 || byte == 0x7f;
}

/// The picture of a control character: U+2400 and on, U+2421 for DEL.
std::string control_sign(unsigned char control) {
  std::string sign = "\xe2\x90";
  sign += static_cast<char>(0x80 + (control == 0x7f ? 0x21 : control));
  return sign;
}

/// Whether U+0080 to U+009F stands here, which some terminals obey as ESC and a letter.
bool is_c1(std::string_view text) {
  return text.size() >= 2 && text[0] == '\xc2' && static_cast<unsigned char>(text[1]) < 0xa0;
}

}  // namespace

Style stderr_style() {
  return style_for(stderr_is_terminal() && stdout_is_terminal());
}
Style stdout_style() {
  return style_for(stdout_is_terminal());
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

std::string visible(std::string_view text) {
  std::string shown;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (is_c1(text.substr(i))) {
      shown += kReplacement;
      ++i;
    } else if (is_control(byte) && byte != '\n' && byte != '\t') {
      shown += control_sign(byte);
    } else {
      shown += text[i];
    }
  }
  return shown;
}

void write_answer(std::string_view text) {
  write_stdout(stdout_is_terminal() ? visible(text) : std::string(text));
}

void write_error(std::string_view sentence) {
  const Style style = stderr_style();
  std::string line = visible(sentence);
  std::ranges::replace_if(line, is_control, ' ');
  write_stderr(fmt::format("{}error:{} {}\n", style.red, style.reset, line));
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
