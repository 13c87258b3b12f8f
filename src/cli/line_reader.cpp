#include "cli/line_reader.h"

#include <histedit.h>
#include <langinfo.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <string_view>

#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/line_history.h"

namespace whimbrel {

namespace {

volatile std::sig_atomic_t window_changed = 0;
volatile std::sig_atomic_t came_back = 0;  // from Ctrl-Z

void note_window(int signal) {
  (signal == SIGWINCH ? window_changed : came_back) = 1;
}

/// Without SA_RESTART: what waits for a key wakes up.
void note_window_signals() {
  struct sigaction action = {};
  action.sa_handler = note_window;
  sigaction(SIGWINCH, &action, nullptr);
  sigaction(SIGCONT, &action, nullptr);
}

/// libedit counts characters by the locale. Typed text is UTF-8 whatever the environment says.
void take_utf8_locale() {
  for (const char* locale : {"", "C.UTF-8", "en_US.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, locale) != nullptr &&
        std::string_view(nl_langinfo(CODESET)) == "UTF-8") {
      return;
    }
  }
}

History* make_history() {
  History* made = history_init();
  HistEvent event;
  if (made == nullptr || ::history(made, &event, H_SETSIZE, static_cast<int>(kHistoryLines)) < 0) {
    throw Error(Fault::memory, "run", "got no memory for typed lines");
  }
  ::history(made, &event, H_SETUNIQUE, 1);
  return made;
}

EditLine* make_editor(FILE* screen) {
  take_utf8_locale();
  EditLine* made = el_init("whimbrel", stdin, screen, stderr);
  if (made == nullptr) {
    throw Error(Fault::io, "run", "got a terminal that can't be used; try -p TEXT");
  }
  return made;
}

}  // namespace

LineReader::LineReader(const std::vector<std::string>& earlier, bool show_on_stdout)
    : screen_(show_on_stdout ? stdout : stderr),
      history_(make_history(), history_end),
      editor_(make_editor(screen_), el_end) {
  note_window_signals();
  EditLine* editor = editor_.get();
  el_set(editor, EL_CLIENTDATA, this);
  el_set(editor, EL_PROMPT, prompt_of);
  el_set(editor, EL_EDITOR, "emacs");
  el_set(editor, EL_HIST, ::history, history_.get());
  el_set(editor, EL_GETCFN, read_character);
  el_set(editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
  el_source(editor, nullptr);
  for (const std::string& line : earlier) {
    remember(line);
  }
}

LineReader::~LineReader() = default;

TypedLine LineReader::read(const std::string& prompt) {
  prompt_ = prompt;
  interrupted_ = false;
  el_resize(editor_.get());
  // Before the prompt is shown: what is typed at once would be echoed twice.
  el_set(editor_.get(), EL_PREP_TERM, 1);
  int count = 0;
  const char* line = el_gets(editor_.get(), &count);
  if (interrupted_) {
    const LineInfo* typed = el_line(editor_.get());
    std::fputs("\n", screen_);
    std::fflush(screen_);
    return {.kind = TypedLine::Kind::interrupted, .was_empty = typed->lastchar == typed->buffer};
  }
  if (line == nullptr || count <= 0) {
    std::fputs("\n", screen_);
    std::fflush(screen_);
    return {.kind = TypedLine::Kind::end};
  }
  std::string_view text(line, static_cast<size_t>(count));
  if (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  return {.text = std::string(text)};
}

void LineReader::remember(const std::string& line) {
  HistEvent event;
  ::history(history_.get(), &event, H_ENTER, line.c_str());
}

char* LineReader::prompt_of(editline* editor) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  return static_cast<LineReader*>(self)->prompt_.data();
}

/// As libedit wants it: 1 with a character, 0 at the end, -1 where there is none to come.
int LineReader::read_character(editline* editor, wchar_t* character) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  auto& reader = *static_cast<LineReader*>(self);
  std::mbstate_t state = {};
  for (;;) {
    reader.follow_window();
    const Awaited awaited = wait_for_input(STDIN_FILENO);
    if (awaited == Awaited::signal) {
      continue;
    }
    if (awaited == Awaited::interrupt) {
      reader.interrupted_ = true;
      return -1;
    }
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got != 1) {
      return static_cast<int>(got);
    }
    const size_t used = std::mbrtowc(character, &byte, 1, &state);
    if (used == static_cast<size_t>(-1)) {
      *character = L'\uFFFD';
    }
    if (used != static_cast<size_t>(-2)) {
      return 1;
    }
  }
}

/// Draws the line anew where the window has another size, or the shell had the terminal.
void LineReader::follow_window() {
  if (came_back != 0) {
    came_back = 0;
    el_set(editor_.get(), EL_PREP_TERM, 0);
    el_set(editor_.get(), EL_PREP_TERM, 1);
    el_set(editor_.get(), EL_REFRESH);
  }
  if (window_changed != 0) {
    window_changed = 0;
    el_resize(editor_.get());
    el_set(editor_.get(), EL_REFRESH);
  }
}

}  // namespace whimbrel
