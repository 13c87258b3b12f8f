#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "cli/commands.h"
#include "cli/input_files.h"
#include "cli/interrupt.h"
#include "cli/load_model.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/prepare.h"
#include "engine/trace_file.h"
#include "generate/trace.h"
#include "ops/device.h"
#include "weights/fingerprint.h"

namespace whimbrel {

namespace {

struct TraceFlags {
  std::string model;
  std::string text;
  std::string messages;
  TraceOptions options;
  std::string output;
  std::optional<int> threads;
  ops::OpsOptions ops;
  bool force = false;
  bool no_progress = false;
};

/// What is traced, and its SHA-256.
struct TraceInput {
  Prompt prompt;
  std::string sha256;
};

TraceInput read_text(const std::string& file, const Frontend& frontend) {
  const std::string text = file == "-" ? read_stdin() : read_file(file, Fault::input);
  Prompt prompt = prepare_text(frontend, text);
  std::string sha256 = input_sha256(prompt, {});
  return {std::move(prompt), std::move(sha256)};
}

TraceInput read_conversation(const std::string& file, const Frontend& frontend) {
  const ChatTemplate chat_template = ChatTemplate::load(frontend.config.folder, frontend.tokenizer);
  const ChatInput input = read_messages_file(file);
  Prompt prompt = prepare_chat(frontend, chat_template, input).prompt;
  std::string sha256 = input_sha256(prompt, input.media);
  return {std::move(prompt), std::move(sha256)};
}

TraceInput read_input(const TraceFlags& flags, const Frontend& frontend) {
  if (flags.text.empty() == flags.messages.empty()) {
    throw Error(
        Fault::usage,
        "trace",
        "got {} of --text and --messages, expected exactly one",
        flags.text.empty() ? "none" : "both"
    );
  }
  return flags.text.empty() ? read_conversation(flags.messages, frontend)
                            : read_text(flags.text, frontend);
}

/// Text behind the last target is never looked at, and needs no memory.
void drop_untraced_text(Prompt& prompt, const TraceOptions& options) {
  if (!prompt.media.empty()) {
    return;
  }
  const auto kept = static_cast<size_t>(options.fed()) + 1;
  prompt.ids.resize(kept);
  for (std::vector<int32_t>& axis : prompt.positions.axes) {
    axis.resize(kept);
  }
}

TraceHeader trace_header(
    const TraceFlags& flags, const Frontend& frontend, const TraceInput& input, const Engine& engine
) {
  return {
      .build = build_json(engine.ops_name()),
      .model = checkpoint_sha256(frontend.config.folder),
      .input = input.sha256,
      .ops = std::string(engine.ops_name()),
      .dtype = dtype_text(engine.dtype()),
      .depth = flags.options.depth,
      .width = flags.options.width,
      .positions = flags.options.positions,
      .prefill_int8 = flags.ops.prefill_int8,
  };
}

std::vector<TraceRow> make_rows(
    const TraceFlags& flags, const Engine& engine, const Prompt& prompt
) {
  ProgressBar bar("tracing", !flags.no_progress);
  const auto on_tokens = [&bar](int done, int total) {
    bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  };
  return trace(
      engine.model(), prompt, flags.options, {.on_tokens = on_tokens, .cancelled = interrupted}
  );
}

void write_trace(OutputFile& file, const TraceHeader& header, const std::vector<TraceRow>& rows) {
  file.write(trace_line(header) + "\n");
  for (const TraceRow& row : rows) {
    file.write(trace_line(row) + "\n");
  }
  file.finish();
}

void run_trace(const TraceFlags& flags) {
  leave_on_interrupt();
  if (flags.threads) {
    ops::set_threads(*flags.threads);
  }
  const Frontend frontend = load_frontend(find_model_folder(flags.model));
  require_valid(flags.options, frontend.shape.vocab_size);
  TraceInput input = read_input(flags, frontend);
  require_trace_room(input.prompt, flags.options, frontend.shape.max_position_embeddings);
  drop_untraced_text(input.prompt, flags.options);

  catch_interrupts();
  OutputFile file(flags.output);
  const Engine engine = load_model(
      frontend,
      input.prompt,
      {.prefill_chunk = std::max(flags.options.prefill_chunk, flags.options.width)},
      {.force = flags.force, .progress = !flags.no_progress, .ops = flags.ops}
  );
  const TraceHeader header = trace_header(flags, frontend, input, engine);
  write_trace(file, header, make_rows(flags, engine, input.prompt));
}

}  // namespace

void add_trace_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("trace", "Write a model's logits along a given text or conversation");
  const auto flags = std::make_shared<TraceFlags>();
  command->add_option("-m,--model", flags->model, kModelHelp);
  command->add_option("--text", flags->text, "Text file, taken without chat template; - is stdin");
  command->add_option("--messages", flags->messages, "Conversation as OpenAI messages; - is stdin");
  command->add_option("--depth", flags->options.depth, "Tokens in front that aren't traced")
      ->capture_default_str();
  command->add_option("--positions", flags->options.positions, "Tokens that are traced")
      ->capture_default_str();
  command
      ->add_option("--width", flags->options.width, "Traced tokens at a time; 1 is the decode path")
      ->capture_default_str();
  command->add_option("--top", flags->options.top, "Best logits to keep of each position")
      ->capture_default_str();
  command->add_option("-o,--output", flags->output, "File to write, JSON Lines")->required();
  command->add_option("--threads", flags->threads, "Threads for matrix products on a CPU")
      ->check(CLI::Range(1, std::numeric_limits<int>::max(), "POSITIVE"));
  add_prefill_int8(*command, flags->ops);
  command->add_flag("--force", flags->force, "Go on though memory looks too small");
  command->add_flag("--no-progress", flags->no_progress, "No progress bars");
  command->footer(
      "Examples:\n"
      "  whimbrel trace -m DIR --text book.txt --depth 2048 -o decode.jsonl\n"
      "  whimbrel trace -m DIR --text book.txt --depth 2048 --width 64 -o chunks.jsonl\n"
      "  whimbrel trace -m DIR --messages conversation.json --positions 64 -o picture.jsonl\n"
      "Then: whimbrel compare decode.jsonl chunks.jsonl"
  );
  command->callback([flags] { run_trace(*flags); });
}

}  // namespace whimbrel
