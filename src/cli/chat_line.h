#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

/// What stands in front of and behind a text of several lines.
inline constexpr std::string_view kFence = "\"\"\"";

/// A command of a chat: `/name rest`.
struct ChatCommand {
  std::string name;
  std::string rest = {};  // without white space around it
};

/// A line that begins with `/` as a command, whether there is one of that name or not.
std::optional<ChatCommand> parse_command(std::string_view line);

/// A text without the white space around it.
std::string_view trimmed(std::string_view text);

/// The words of a text, parted as a shell does it: by white space, but for what stands in quotes or
/// behind a backslash. `~/` at the beginning of a word is the home folder. Nothing where a quote is
/// left open.
std::optional<std::vector<std::string>> split_words(std::string_view text);

/// The paths of a line that holds absolute paths alone: what a terminal types where files are
/// dropped on it, quoted or not. Otherwise none. Looks at no file.
std::vector<std::string> dropped_paths(std::string_view line);

}  // namespace whimbrel
