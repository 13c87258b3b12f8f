#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "cli/chat_line.h"
#include "cli/chat_session.h"
#include "cli/chat_settings.h"
#include "cli/terminal.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

using Run = void (*)(ChatSession& session, const std::string& rest);

struct Command {
  std::string_view name;
  std::string_view arguments;
  std::string_view help;
  Run run;
};

[[noreturn]] void refuse(
    std::string_view command, std::string_view got, std::string_view expected
) {
  throw Error(Fault::usage, command, "got {}, expected {}", got, expected);
}

bool is_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

/// The files that a command names. A path with spaces in it needs no quotes where it is alone.
std::vector<fs::path> paths_of(std::string_view command, const std::string& rest) {
  if (is_file(rest)) {
    return {rest};
  }
  const std::optional<std::vector<std::string>> words = split_words(rest);
  if (!words) {
    refuse(command, rest, "a quote to be closed");
  }
  return {words->begin(), words->end()};
}

fs::path path_of(std::string_view command, const std::string& rest) {
  const std::vector<fs::path> paths = paths_of(command, rest);
  if (paths.size() != 1) {
    refuse(
        command,
        paths.empty() ? "no file" : fmt::format("{} words", paths.size()),
        "one file; put quotes around a path with spaces"
    );
  }
  return paths.front();
}

// ---- pictures and videos

void attach_all(
    ChatSession& session, std::string_view command, const std::string& rest, MediaKind kind
) {
  const std::vector<fs::path> paths = paths_of(command, rest);
  if (paths.empty()) {
    refuse(command, "no file", "the path of one or several");
  }
  for (const fs::path& path : paths) {
    attach(session, path, kind);
  }
}

void run_image(ChatSession& session, const std::string& rest) {
  attach_all(session, "/image", rest, MediaKind::image);
}

void run_video(ChatSession& session, const std::string& rest) {
  attach_all(session, "/video", rest, MediaKind::video);
}

/// By its first bytes: MP4 and MOV (but not their relatives that hold pictures), WebM and MKV. A
/// GIF counts as a picture.
MediaKind kind_of(const fs::path& path) {
  std::string bytes(12, '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), std::ssize(bytes));
  const std::string_view brand = std::string_view(bytes).substr(8, 3);
  const bool is_mp4 = bytes.substr(4, 4) == "ftyp" && brand != "hei" && brand != "avi" &&
                      brand != "mif" && brand != "msf";
  return is_mp4 || bytes.starts_with("\x1a\x45\xdf\xa3") ? MediaKind::video : MediaKind::image;
}

bool attach_dropped(ChatSession& session, std::string_view line) {
  const std::vector<std::string> paths = dropped_paths(line);
  if (paths.empty() || !std::ranges::all_of(paths, is_file)) {
    return false;
  }
  for (const std::string& path : paths) {
    attach(session, path, kind_of(path));
  }
  return true;
}

// ---- how answers are asked for

void run_system(ChatSession& session, const std::string& rest) {
  session.conversation.set_system(rest);
  write_stderr(rest.empty() ? "no system message\n" : "system message set\n");
}

void run_set(ChatSession& session, const std::string& rest) {
  const ModelConfig& config = session.model.frontend.config;
  if (rest.empty()) {
    write_stderr(settings_text(session.sampling, config));
    return;
  }
  const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view value =
      trimmed(std::string_view(rest).substr(std::min(end + 1, rest.size())));
  session.sampling = with_setting(session.sampling, rest.substr(0, end), value, config);
}

/// Whether the template makes a difference between thinking and not.
bool can_think(const ChatSession& session) {
  const auto rendered = [&](bool thinking) {
    ChatRequest request;
    request.messages.push_back({{"role", "user"}, {"content", "Hello"}});
    request.kwargs = session.template_kwargs;
    request.kwargs["enable_thinking"] = thinking;
    return session.model.chat_template.render(request).text();
  };
  return rendered(true) != rendered(false);
}

void run_think(ChatSession& session, const std::string& rest) {
  if (rest != "on" && rest != "off") {
    refuse("/think", rest.empty() ? "nothing" : rest, "on or off");
  }
  if (!can_think(session)) {
    refuse(
        "/think", "a chat template that has no enable_thinking", "a model that thinks when asked"
    );
  }
  session.template_kwargs["enable_thinking"] = rest == "on";
}

// ---- the conversation

void require_nothing(std::string_view command, const std::string& rest) {
  if (!rest.empty()) {
    refuse(command, rest, "nothing behind it");
  }
}

void run_clear(ChatSession& session, const std::string& rest) {
  require_nothing("/clear", rest);
  session.conversation.clear();
  session.reductions_said = 0;
  write_stderr("a new conversation\n");
}

void run_save(ChatSession& session, const std::string& rest) {
  const fs::path path = fs::absolute(path_of("/save", rest)).lexically_normal();
  if (is_file(path) && !session.own_files.contains(path)) {
    refuse("/save", "a file that is there: " + path.string(), "a new name");
  }
  if (session.conversation.turns() == 0) {
    refuse("/save", "a conversation without messages", "at least one");
  }
  OutputFile file(path);
  file.write(session.conversation.json().dump(1, ' ', false, Json::error_handler_t::replace));
  file.write("\n");
  file.finish();
  session.own_files.insert(path);
  write_stderr(fmt::format("saved: {}\n", visible(path.string())));
}

void run_load(ChatSession& session, const std::string& rest) {
  const fs::path path = fs::absolute(path_of("/load", rest)).lexically_normal();
  const Json json = parse_json(read_file(path, Fault::input), path.string(), Fault::input);
  session.conversation = Conversation::read(json, path.parent_path());
  session.reductions_said = 0;
  session.own_files.insert(path);
  write_stderr(fmt::format("loaded: {} messages\n", session.conversation.turns()));
}

// ---- what is said of it

std::string rate(int tokens, double milliseconds) {
  return milliseconds > 0 ? fmt::format(" ({:.1f} tokens/s)", tokens * 1000 / milliseconds) : "";
}

std::string times_text(const ChatFigures& figures) {
  const ChatAnswer& answer = figures.answer;
  if (!answer.timings) {
    return "the answer was stopped: no times\n";
  }
  const RequestTimings& ms = *answer.timings;
  const std::string tower = ms.tower > 0 ? fmt::format("{:.0f} ms", ms.tower) : "not run";
  return fmt::format(
      "media {:.0f} ms, tower {}, prefill {:.0f} ms{}, decode {:.0f} ms{}\n",
      figures.media,
      tower,
      ms.prefill,
      rate(answer.prompt_tokens - answer.cached_tokens, ms.prefill),
      ms.decode,
      rate(answer.tokens - 1, ms.decode)
  );
}

void run_stats(ChatSession& session, const std::string& rest) {
  require_nothing("/stats", rest);
  if (!session.last) {
    refuse("/stats", "no answer yet", "one to speak of");
  }
  const ChatAnswer& answer = session.last->answer;
  write_stderr(
      fmt::format(
          "prompt {} tokens, {} of them cached; answer {} tokens; context {} of {}\n{}",
          answer.prompt_tokens,
          answer.cached_tokens,
          answer.tokens,
          answer.prompt_tokens + answer.tokens,
          session.model.context,
          times_text(*session.last)
      )
  );
}

void run_help(ChatSession& session, const std::string& rest);

void run_exit(ChatSession& session, const std::string& rest) {
  require_nothing("/exit", rest);
  session.leaving = true;
}

constexpr std::array kCommands = {
    Command{"image", "PATH...", "pictures for your next message", run_image},
    Command{"video", "PATH...", "videos for your next message", run_video},
    Command{"system", "[TEXT]", "the system message; without text: none", run_system},
    Command{"set", "[NAME VALUE]", "how answers are drawn; alone: all settings", run_set},
    Command{"think", "on|off", "let a thinking model think", run_think},
    Command{"clear", "", "a new conversation; the system message stays", run_clear},
    Command{"save", "FILE", "the conversation, as generate --messages takes it", run_save},
    Command{"load", "FILE", "a saved conversation instead of this one", run_load},
    Command{"stats", "", "tokens and times of the last answer", run_stats},
    Command{"help", "", "this list", run_help},
    Command{"exit", "", "leave; so does Ctrl-D", run_exit},
};

void run_help(ChatSession& /*session*/, const std::string& rest) {
  require_nothing("/help", rest);
  std::string text;
  for (const Command& command : kCommands) {
    const std::string usage = fmt::format("/{} {}", command.name, command.arguments);
    text += fmt::format("{:<20} {}\n", usage, command.help);
  }
  text +=
      "\"\"\"                  begins and ends a message of several lines\n"
      "A path alone on a line, as a terminal types it for a dropped file, is attached.\n"
      "Ctrl-C stops an answer; twice at an empty prompt it leaves.\n";
  write_stderr(text);
}

}  // namespace

bool run_command_line(ChatSession& session, std::string_view line) {
  const std::optional<ChatCommand> asked = parse_command(line);
  if (asked) {
    const auto* command = std::ranges::find(kCommands, asked->name, &Command::name);
    if (command != kCommands.end()) {
      command->run(session, asked->rest);
      return true;
    }
  }
  if (attach_dropped(session, line)) {
    return true;
  }
  if (asked) {
    refuse(
        "/" + asked->name,
        "neither a command nor a file",
        "one of /help; a message that begins with / goes between \"\"\""
    );
  }
  return false;
}

}  // namespace whimbrel
