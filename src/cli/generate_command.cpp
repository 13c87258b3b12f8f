#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/input_files.h"
#include "cli/interrupt.h"
#include "cli/load_model.h"
#include "cli/media_flags.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "cli/sampling_flags.h"
#include "cli/template_flags.h"
#include "cli/terminal.h"
#include "engine/engine.h"
#include "engine/messages.h"
#include "engine/prepare.h"
#include "ops/device.h"

namespace whimbrel {

namespace {

constexpr std::string_view kDefaultPicturePrompt = "Describe this image.";

/// The flags of `generate`, as typed.
struct GenerateFlags {
  std::string model;
  MediaFlags media;
  std::optional<std::string> prompt;
  std::optional<std::string> system;
  std::string messages;
  bool json = false;
  SamplingFlags sampling;
  std::optional<int> context;
  int prefill_chunk = GenerateOptions{}.prefill_chunk;
  KVLimit kv_limit;
  int kv_bits = 0;
  std::optional<int> threads;
  ops::OpsOptions ops;
  TemplateFlags chat_template;
  bool raw = false;
  bool force = false;
  bool no_progress = false;
  bool verbose = false;
};

CLI::Range positive() {
  return {1, std::numeric_limits<int>::max(), "POSITIVE"};
}

void add_input_options(CLI::App& command, GenerateFlags& flags) {
  command.add_option("-m,--model", flags.model, kModelHelp);
  add_media_options(command, flags.media);
  command.add_option("-p,--prompt", flags.prompt, "What to ask; - reads it from stdin");
  command.add_option("--system", flags.system, "System message");
  command.add_option("--messages", flags.messages, "Conversation as OpenAI messages; - is stdin")
      ->excludes("--image")
      ->excludes("--video")
      ->excludes("--prompt")
      ->excludes("--system");
  add_template_options(command, flags.chat_template);
  command.add_flag("--raw", flags.raw, "The prompt is in the model's own format: no chat template")
      ->excludes("--messages")
      ->excludes("--system")
      ->excludes("--chat-template")
      ->excludes("--chat-template-kwargs")
      ->excludes("--thinking");
}

void add_run_options(CLI::App& command, GenerateFlags& flags) {
  command.add_option("--ctx", flags.context, "Context in tokens (default: the model's)")
      ->check(positive());
  command.add_option("--prefill-chunk", flags.prefill_chunk, "Prompt tokens a step (default: 512)")
      ->check(positive());
  CLI::Option* size = command
                          .add_option(
                              "--max-kv-size",
                              flags.kv_limit.max_rows,
                              "Tokens that the cache holds; older ones are dropped (default: all)"
                          )
                          ->check(positive());
  command
      .add_option("--keep", flags.kv_limit.keep, "First tokens that are never dropped (default: 4)")
      ->check(CLI::NonNegativeNumber)
      ->needs(size);
  command.add_option("--kv-bits", flags.kv_bits, "Hold keys and values in 8 bits")
      ->check(CLI::IsMember({8}));
  command.add_option("--threads", flags.threads, "Threads for matrix products on a CPU")
      ->check(positive());
  add_prefill_int8(command, flags.ops);
  command.add_flag("--json", flags.json, "One line of JSON instead of streamed text");
  command.add_flag("--force", flags.force, "Go on though memory looks too small");
  command.add_flag("--no-progress", flags.no_progress, "No progress bars");
  command.add_flag("--verbose", flags.verbose, "Say more on stderr");
}

/// The text to ask: the flag, stdin where the flag says so or nothing else is there.
std::string prompt_text(const GenerateFlags& flags) {
  if (flags.prompt && *flags.prompt != "-") {
    return *flags.prompt;
  }
  if (!flags.prompt && !flags.media.images.empty() && !flags.raw) {
    return std::string(kDefaultPicturePrompt);
  }
  if (!flags.prompt && stdin_is_terminal()) {
    throw Error(
        Fault::usage,
        "generate",
        "got nothing to ask, expected -p TEXT, --image FILE or text on stdin"
    );
  }
  return read_stdin();
}

Json media_part(const MediaInput& input) {
  return {{"type", input.kind == MediaKind::image ? "image" : "video"}};
}

/// One user turn: pictures and videos in the order of the flags, then the text.
ChatInput single_turn(const CLI::App& command, const GenerateFlags& flags) {
  ChatInput input;
  if (flags.system) {
    input.chat.messages.push_back({{"role", "system"}, {"content", *flags.system}});
  }
  const std::string text = prompt_text(flags);
  input.media = read_media_files(command, flags.media);
  Json content = text;
  if (!input.media.empty()) {
    content = Json::array();
    for (const MediaInput& medium : input.media) {
      content.push_back(media_part(medium));
    }
    content.push_back({{"type", "text"}, {"text", text}});
  }
  input.chat.messages.push_back({{"role", "user"}, {"content", content}});
  return input;
}

Prepared prepare(const CLI::App& command, const GenerateFlags& flags, const Frontend& frontend) {
  const MediaOptions options = options_for_device(flags.media);
  if (flags.raw) {
    const std::string text = prompt_text(flags);
    const std::vector<MediaInput> media = read_media_files(command, flags.media);
    require_videos_for_flags(flags.media, media);
    return prepare_raw(frontend, text, media, options);
  }
  const ChatTemplate chat_template = load_template(flags.chat_template, frontend);
  ChatInput input =
      flags.messages.empty() ? single_turn(command, flags) : read_messages_file(flags.messages);
  require_videos_for_flags(flags.media, input.media);
  input.chat.kwargs = template_kwargs(flags.chat_template);
  return prepare_chat(frontend, chat_template, input, options);
}

int context_of(const GenerateFlags& flags, const ModelShape& shape) {
  const int context = flags.context.value_or(shape.max_position_embeddings);
  if (context > shape.max_position_embeddings) {
    throw Error(
        Fault::usage,
        "--ctx",
        "got {}, expected at most the model's {}",
        context,
        shape.max_position_embeddings
    );
  }
  return context;
}

GenerateOptions generate_options(
    const GenerateFlags& flags, const Frontend& frontend, const Prompt& prompt
) {
  const int context = context_of(flags, frontend.shape);
  require_room(prompt, context);
  require_valid(flags.kv_limit);
  return {
      .sampling = sampling_options(flags.sampling, frontend.config),
      .max_tokens = std::min(
          flags.sampling.max_tokens.value_or(kDefaultMaxTokens), context - prompt.tokens()
      ),
      .stop_ids = frontend.stop_ids,
      .stops = flags.sampling.stops,
      .prefill_chunk = flags.prefill_chunk,
      .kv_limit = flags.kv_limit,
      .kv_bits = flags.kv_bits,
  };
}

Generation answer(
    const GenerateFlags& flags,
    const Frontend& frontend,
    const Engine& engine,
    const Prompt& prompt,
    const GenerateOptions& options
) {
  std::optional<ProgressBar> bar;
  bar.emplace("reading", !flags.no_progress);
  const auto on_text = [&](std::string_view text) {
    bar.reset();
    if (!flags.json) {
      write_answer(text);
    }
  };
  const auto on_prefill = [&](int done, int total) {
    bar->update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  };
  return generate(
      engine.model(),
      frontend.tokenizer,
      prompt,
      options,
      {.on_text = on_text, .on_prefill = on_prefill, .cancelled = interrupted}
  );
}

void say_loaded(const Frontend& frontend, const Prompt& prompt, std::string_view ops) {
  write_stderr(
      fmt::format(
          "{} in {}: {} layers, {} operations on {}, BLAS {}, prompt of {} tokens\n",
          frontend.config.model_type,
          frontend.config.folder.string(),
          frontend.shape.layers,
          ops,
          ops::backend_name(),
          ops::blas_description(),
          prompt.tokens()
      )
  );
}

void say_done(const Generation& generation, const RunTimings& timings) {
  const GenerateTimings& ms = timings.generate;
  write_stderr(
      fmt::format(
          "\nload {:.0f} ms, towers {:.0f} ms, prefill {:.0f} ms, {} tokens in {:.0f} ms\n",
          timings.load,
          ms.tower,
          ms.prefill,
          generation.ids.size(),
          ms.first_token + ms.decode
      )
  );
}

/// What a bounded cache made the model forget, with the media among it.
void say_dropped(const Prompt& prompt, const DroppedTokens& dropped) {
  std::string media;
  for (const MediaSpan& span : prompt.media) {
    if (span.first_token() >= dropped.first && span.first_token() < dropped.end) {
      media += fmt::format("{}{}", media.empty() ? ", among them " : ", ", span.source);
    }
  }
  write_stderr(
      fmt::format(
          "warning: the cache was full: {} tokens from token {} on were dropped{}\n",
          dropped.end - dropped.first,
          dropped.first,
          media
      )
  );
}

void print_answer(
    const GenerateFlags& flags,
    const Prompt& prompt,
    const Generation& generation,
    const RunTimings& timings,
    std::string_view ops
) {
  if (flags.json) {
    Json answer = answer_json(prompt, generation, timings, ops);
    if (flags.ops.prefill_int8) {
      answer["prefill_int8"] = true;
    }
    write_stdout(json_line(answer));
  } else if (stdout_is_terminal()) {
    write_stdout("\n");
  }
  if (generation.dropped) {
    say_dropped(prompt, *generation.dropped);
  }
  if (flags.verbose) {
    say_done(generation, timings);
  }
}

void run_generate(const CLI::App& command, const GenerateFlags& flags) {
  leave_on_interrupt();
  if (flags.threads) {
    ops::set_threads(*flags.threads);
  }
  const Stopwatch loading;
  const Frontend frontend = load_frontend(find_model_folder(flags.model));
  double load_ms = loading.milliseconds();

  const Prepared prepared = prepare(command, flags, frontend);
  say_reduced(prepared.reduced, frontend);
  const GenerateOptions options = generate_options(flags, frontend, prepared.prompt);

  catch_interrupts();
  const Stopwatch reading;
  const Engine engine = load_model(
      frontend,
      prepared.prompt,
      options,
      {.force = flags.force,
       .progress = !flags.no_progress,
       .announce_prefill = true,
       .ops = flags.ops}
  );
  load_ms += reading.milliseconds();
  if (flags.verbose) {
    const std::string rounding = flags.ops.prefill_int8 ? " (prompts in 8 bits)" : "";
    say_loaded(frontend, prepared.prompt, std::string(engine.ops_name()) + rounding);
  }

  const Generation generation = answer(flags, frontend, engine, prepared.prompt, options);
  const RunTimings timings{load_ms, prepared.media_decode, prepared.preprocess, generation.timings};
  print_answer(flags, prepared.prompt, generation, timings, engine.ops_name());
}

}  // namespace

void add_generate_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("generate", "Answer a question about pictures, videos or text");
  const auto flags = std::make_shared<GenerateFlags>();
  add_input_options(*command, *flags);
  add_sampling_options(*command, flags->sampling);
  add_run_options(*command, *flags);
  command->footer(
      "Examples:\n"
      "  whimbrel generate --image photo.jpg\n"
      "  whimbrel generate -m DIR --image a.jpg --image b.png -p \"What changed between these?\"\n"
      "  echo \"Name three rivers.\" | whimbrel generate -m DIR --temperature 0\n"
      "  whimbrel generate -m DIR --messages conversation.json --json"
  );
  command->callback([command, flags] { run_generate(*command, *flags); });
}

}  // namespace whimbrel
