#include "cli/chat_line.h"

#include <algorithm>
#include <cstdlib>

namespace whimbrel {

namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

bool is_space(char c) {
  return kWhiteSpace.find(c) != std::string_view::npos;
}

/// Takes a quoted text from the front of `text`, which begins behind the quote. Nothing where it is
/// not closed.
std::optional<std::string> take_quoted(std::string_view& text, char quote) {
  std::string quoted;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == quote) {
      text.remove_prefix(i + 1);
      return quoted;
    }
    const bool escapes = quote == '"' && text[i] == '\\' && i + 1 < text.size() &&
                         (text[i + 1] == '"' || text[i + 1] == '\\');
    quoted += text[escapes ? ++i : i];
  }
  return std::nullopt;
}

/// Takes a word from the front of `text`, which begins with it. Nothing where a quote is left open.
std::optional<std::string> take_word(std::string_view& text) {
  std::string word;
  const char* home = std::getenv("HOME");
  if (text.starts_with("~/") && home != nullptr) {
    word = home;
    text.remove_prefix(1);
  }
  while (!text.empty() && !is_space(text.front())) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '\'' || c == '"') {
      const std::optional<std::string> quoted = take_quoted(text, c);
      if (!quoted) {
        return std::nullopt;
      }
      word += *quoted;
    } else if (c == '\\' && !text.empty()) {
      word += text.front();
      text.remove_prefix(1);
    } else {
      word += c;
    }
  }
  return word;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kWhiteSpace) + 1 - first);
}

std::optional<ChatCommand> parse_command(std::string_view line) {
  if (!line.starts_with('/')) {
    return std::nullopt;
  }
  const size_t end = std::min(line.find_first_of(kWhiteSpace), line.size());
  return ChatCommand{std::string(line.substr(1, end - 1)), std::string(trimmed(line.substr(end)))};
}

std::optional<std::vector<std::string>> split_words(std::string_view text) {
  std::vector<std::string> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    std::optional<std::string> word = take_word(text);
    if (!word) {
      return std::nullopt;
    }
    words.push_back(*std::move(word));
  }
  return words;
}

std::vector<std::string> dropped_paths(std::string_view line) {
  std::vector<std::string> words = split_words(line).value_or(std::vector<std::string>());
  const bool are_paths =
      std::ranges::all_of(words, [](const std::string& word) { return word.starts_with('/'); });
  return are_paths ? std::move(words) : std::vector<std::string>();
}

}  // namespace whimbrel
