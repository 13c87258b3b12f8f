#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/chat_line.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/line_history.h"
#include "cli/line_reader.h"
#include "cli/load_model.h"
#include "cli/media_flags.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/sampling_flags.h"
#include "cli/template_flags.h"
#include "cli/terminal.h"
#include "engine/serving_engine.h"
#include "ops/device.h"
#include "server/model_service.h"

namespace whimbrel {

namespace {

/// Where the system doesn't say what is left.
constexpr uint64_t kDefaultMemory = uint64_t{4} << 30;

constexpr std::string_view kDefaultPicturePrompt = "Describe this image.";

/// The flags of `run`, as typed.
struct RunFlags {
  std::string model;
  MediaFlags media;
  std::optional<std::string> prompt;
  std::string system;
  TemplateFlags chat_template;
  SamplingFlags sampling;
  std::optional<int> context;
  int prefill_chunk = ServingOptions{}.prefill_chunk;
  int kv_bits = 0;
  int prompt_lookup = 0;
  std::optional<int> threads;
  ops::OpsOptions ops;
  bool force = false;
  bool no_history = false;
  bool no_progress = false;
};

void add_options(CLI::App& command, RunFlags& flags) {
  const auto positive = CLI::Range(1, std::numeric_limits<int>::max(), "POSITIVE");
  command.add_option("-m,--model", flags.model, kModelHelp);
  add_media_options(command, flags.media);
  command.add_option("-p,--prompt", flags.prompt, "Ask this and leave; - reads it from stdin");
  command.add_option("--system", flags.system, "System message");
  add_template_options(command, flags.chat_template);
  add_sampling_options(command, flags.sampling);
  command.add_option("-c,--ctx", flags.context, "Context in tokens (default: the model's)")
      ->check(positive);
  command.add_option("--prefill-chunk", flags.prefill_chunk, "Prompt tokens a step (default: 512)")
      ->check(positive);
  command.add_option("--kv-bits", flags.kv_bits, "Hold keys and values in 8 bits")
      ->check(CLI::IsMember({8}));
  command
      .add_option("--prompt-lookup", flags.prompt_lookup, "Tokens of an answer to guess at a time")
      ->check(CLI::Range(0, kMostGuesses));
  command.add_option("--threads", flags.threads, "Threads for matrix products on a CPU")
      ->check(positive);
  add_prefill_int8(command, flags.ops);
  command.add_flag("--force", flags.force, "Go on though memory looks too small");
  command.add_flag("--no-history", flags.no_history, "Keep no typed lines");
  command.add_flag("--no-progress", flags.no_progress, "No progress bars");
}

int context_of(const RunFlags& flags, const ModelShape& shape) {
  const int most = shape.max_position_embeddings;
  if (flags.context.value_or(most) > most) {
    throw Error(
        Fault::usage, "--ctx", "got {}, expected at most the model's {}", *flags.context, most
    );
  }
  return flags.context.value_or(most);
}

/// What to ask once, or nothing where a person is there to chat with.
std::optional<std::string> single_question(const RunFlags& flags) {
  const bool reads_stdin = flags.prompt ? *flags.prompt == "-" : !stdin_is_terminal();
  if (!reads_stdin) {
    return flags.prompt;
  }
  const std::string text = read_stdin();
  const bool is_blank = trimmed(text).empty();
  return is_blank && !flags.media.empty() ? std::string(kDefaultPicturePrompt) : text;
}

/// One person's: half of the memory for the conversation that goes on, a quarter for what towers
/// made of its pictures.
ServingOptions serving_options(const RunFlags& flags, int context) {
  const uint64_t memory = memory_for_requests().value_or(kDefaultMemory);
  return {
      .context = context,
      .parallel = 1,
      .prefill_chunk = flags.prefill_chunk,
      .kv_bits = flags.kv_bits,
      .prompt_lookup = flags.prompt_lookup,
      .memory = memory,
      .prefix_memory = memory / 2,
      .feature_memory = memory / 4,
  };
}

/// A loaded model that answers one person.
struct LoadedChat {
  Engine engine;
  ServingEngine serving;

  LoadedChat(Engine loaded, const Frontend& frontend, const ServingOptions& options)
      : engine(std::move(loaded)),
        serving(engine.model(), frontend.shape, frontend.tokenizer, options) {}
};

std::unique_ptr<LoadedChat> load(
    const RunFlags& flags, const Frontend& frontend, int context, bool progress
) {
  Engine engine = load_model(
      frontend,
      Prompt{},
      {.prefill_chunk = flags.prefill_chunk, .kv_bits = flags.kv_bits},
      {.force = flags.force, .progress = progress, .ops = flags.ops}
  );
  // How much memory is left is known only now.
  return std::make_unique<LoadedChat>(std::move(engine), frontend, serving_options(flags, context));
}

[[noreturn]] void leave_interrupted() {
  throw Error(Fault::interrupted, "run", "interrupted");
}

/// A kill ends a chat, and Ctrl-C doesn't.
void leave_where_asked() {
  if (take_interrupt() == Interrupt::leave) {
    leave_interrupted();
  }
}

void answer_once(
    const RunFlags& flags, ChatSession& session, const Frontend& frontend, const std::string& text
) {
  const bool progress = stdin_is_terminal() && !flags.no_progress;
  Prepared prepared = ask_question(session, text);
  catch_interrupts();
  const std::unique_ptr<LoadedChat> chat = load(flags, frontend, session.model.context, progress);
  const ChatDisplay display = {
      .interactive = false,
      .show_reasoning = false,
      .progress = progress,
      .interrupt = [] { return interrupted() ? Interrupt::leave : Interrupt::none; },
  };
  if (answer_question(session, chat->serving, std::move(prepared), display) != Interrupt::none) {
    leave_interrupted();
  }
  if (stdout_is_terminal()) {
    write_stdout("\n");
  }
}

/// A person's lines, kept for the next time where that is wanted.
class Typing {
 public:
  explicit Typing(bool keep)
      : file_(keep ? history_file() : std::nullopt), reader_(earlier(), stdout_is_terminal()) {}

  TypedLine read(const std::string& prompt) {
    TypedLine line = reader_.read(prompt);
    if (line.kind == TypedLine::Kind::text && !trimmed(line.text).empty()) {
      reader_.remember(line.text);
      keep(line.text);
    }
    return line;
  }

 private:
  std::vector<std::string> earlier() {
    try {
      return file_ ? read_history(*file_) : std::vector<std::string>();
    } catch (const Error& error) {
      go_without(error);
      return {};
    }
  }

  void keep(const std::string& line) {
    try {
      if (file_) {
        append_history(*file_, line);
      }
    } catch (const Error& error) {
      go_without(error);
    }
  }

  /// Said once: a chat is worth more than its history.
  void go_without(const Error& error) {
    write_stderr(fmt::format("warning: {}\n", visible(error.what())));
    file_.reset();
  }

  std::optional<std::filesystem::path> file_;
  LineReader reader_;
};

/// A message of several lines whose first one is given; nothing where it was given up.
std::optional<std::string> read_block(Typing& typing, std::string_view first) {
  std::string text(first.substr(kFence.size()));
  while (!text.ends_with(kFence)) {
    const TypedLine line = typing.read("... ");
    if (line.kind != TypedLine::Kind::text) {
      leave_where_asked();
      return std::nullopt;
    }
    text += "\n" + line.text;
  }
  text.resize(text.size() - kFence.size());
  return std::string(text.starts_with('\n') ? text.substr(1) : text);
}

/// The chat with a person at a terminal.
class Chat {
 public:
  Chat(ChatSession& session, ServingEngine& serving, ChatDisplay display, bool keep_lines)
      : session_(session), serving_(serving), display_(std::move(display)), typing_(keep_lines) {}

  /// Until the person leaves. Throws Error(Fault::interrupted) where Ctrl-C or a kill ends it.
  void run() {
    while (!session_.leaving) {
      const TypedLine line = typing_.read(">>> ");
      switch (line.kind) {
        case TypedLine::Kind::end:
          return;
        case TypedLine::Kind::interrupted:
          on_interrupt(line);
          break;
        case TypedLine::Kind::text:
          warned_ = false;
          take(line.text);
      }
    }
  }

 private:
  void on_interrupt(const TypedLine& line) {
    if (take_interrupt() == Interrupt::leave || (warned_ && line.was_empty)) {
      leave_interrupted();
    }
    if (line.was_empty) {
      write_stderr("Ctrl-C again, Ctrl-D or /exit leaves\n");
      warned_ = true;
    }
  }

  /// What goes wrong with a line is said, and the chat goes on.
  void take(const std::string& line) {
    try {
      if (line.starts_with(kFence)) {
        if (const std::optional<std::string> block = read_block(typing_, line)) {
          ask(*block);
        }
      } else if (!trimmed(line).empty() && !run_command_line(session_, trimmed(line))) {
        ask(line);
      }
    } catch (const Error& error) {
      if (error.fault() == Fault::interrupted) {
        throw;
      }
      leave_where_asked();
      write_error(error.what());
    }
  }

  void ask(const std::string& text) {
    Prepared prepared = ask_question(session_, text);
    if (answer_question(session_, serving_, std::move(prepared), display_) == Interrupt::leave) {
      leave_interrupted();
    }
  }

  ChatSession& session_;
  ServingEngine& serving_;
  ChatDisplay display_;
  Typing typing_;
  bool warned_ = false;  // that another Ctrl-C leaves
};

void chat(const RunFlags& flags, ChatSession& session, const Frontend& frontend) {
  catch_interrupts();
  const bool progress = !flags.no_progress;
  const std::unique_ptr<LoadedChat> loaded = load(flags, frontend, session.model.context, progress);
  note_each_interrupt();
  const ChatDisplay display = {
      .interactive = true,
      .show_reasoning = stdout_is_terminal(),
      .progress = progress,
      .interrupt = take_interrupt,
  };
  write_stderr("/help lists what you can do here; Ctrl-D leaves\n");
  Chat(session, loaded->serving, display, !flags.no_history).run();
}

void run_chat(const CLI::App& command, const RunFlags& flags) {
  leave_on_interrupt();
  if (flags.threads) {
    ops::set_threads(*flags.threads);
  }
  const Frontend frontend = load_frontend(find_model_folder(flags.model));
  const ChatTemplate chat_template = load_template(flags.chat_template, frontend);
  const std::optional<std::string> question = single_question(flags);
  ChatSession session = {
      .model =
          {frontend,
           chat_template,
           options_for_device(flags.media),
           context_of(flags, frontend.shape)},
      .sampling = flags.sampling,
      .template_kwargs = template_kwargs(flags.chat_template),
  };
  sampling_options(flags.sampling, frontend.config);  // refused before weights are read
  session.conversation.set_system(flags.system);
  const std::vector<MediaInput> media = read_media_files(command, flags.media);
  if (question) {
    require_videos_for_flags(flags.media, media);
    for (const MediaInput& medium : media) {
      session.conversation.attach(medium.source, medium.kind);
    }
    answer_once(flags, session, frontend, *question);
  } else {
    for (const MediaInput& medium : media) {
      attach(session, medium.source, medium.kind);
    }
    chat(flags, session, frontend);
  }
}

}  // namespace

void add_run_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("run", "Chat about pictures, videos or text in a terminal");
  const auto flags = std::make_shared<RunFlags>();
  add_options(*command, *flags);
  command->footer(
      "Without -p it is a chat: /help there lists its commands. Where stdin is no terminal, all "
      "of\n"
      "it is one question.\n"
      "Examples:\n"
      "  whimbrel run\n"
      "  whimbrel run -m DIR --image photo.jpg --system \"Answer in one sentence.\"\n"
      "  whimbrel run -m DIR --image photo.jpg -p \"What is this?\"\n"
      "  echo \"Name three rivers.\" | whimbrel run -m DIR"
  );
  command->callback([command, flags] { run_chat(*command, *flags); });
}

}  // namespace whimbrel
