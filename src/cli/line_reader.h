#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

struct editline;  // libedit's
struct history;

namespace whimbrel {

/// What came of a person's typing.
struct TypedLine {
  enum class Kind { text, interrupted, end };
  Kind kind = Kind::text;
  std::string text = {};  // UTF-8, without its end
  bool was_empty = true;  // where it was interrupted: whether nothing stood on the line
};

/// Lines typed at a terminal, with libedit: keys as in ~/.editrc, by default Emacs', and the lines
/// before under the arrows. Needs note_each_interrupt. One at a time: stdin and the signals of the
/// window are the process's.
class LineReader {
 public:
  /// `earlier`: lines before, oldest first. Without `show_on_stdout` prompt and line are shown on
  /// stderr.
  LineReader(const std::vector<std::string>& earlier, bool show_on_stdout);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// Waits for a line. An interrupt is not taken (take_interrupt).
  TypedLine read(const std::string& prompt);

  /// Puts a line under the arrows.
  void remember(const std::string& line);

 private:
  static char* prompt_of(editline* editor);
  static int read_character(editline* editor, wchar_t* character);
  void follow_window();

  FILE* screen_;
  std::string prompt_;
  bool interrupted_ = false;
  std::unique_ptr<struct history, void (*)(struct history*)> history_;
  std::unique_ptr<editline, void (*)(editline*)> editor_;
};

}  // namespace whimbrel
