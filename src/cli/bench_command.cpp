#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "cli/bench_against.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "engine/bench.h"
#include "engine/bench_model.h"
#include "engine/engine.h"
#include "engine/memory_estimate.h"
#include "models/published.h"
#include "ops/device.h"

namespace whimbrel {

namespace {

struct BenchFlags {
  std::string model;
  std::string dims;
  std::string image;
  std::string format = "md";
  BenchOptions options;
  int threads = 0;  // 0: as the system says
  int probe_mib = 1024;
  bool force = false;
  std::string against;
  int rounds = 4;
  bool self = false;
};

/// "448x336" -> width 448, height 336.
Size parse_size(const std::string& text) {
  constexpr int kLargest = 16384;
  Size size;
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, size.width);
  const bool split = width.ec == std::errc() && width.ptr != end && *width.ptr == 'x';
  const auto height = split ? std::from_chars(width.ptr + 1, end, size.height) : width;
  const auto fits = [](int side) { return side >= 1 && side <= kLargest; };
  if (!split || height.ec != std::errc() || height.ptr != end || !fits(size.width) ||
      !fits(size.height)) {
    throw Error(
        Fault::usage,
        "--image",
        "got \"{}\", expected width and height in pixels such as 448x336, each at most {}",
        text,
        kLargest
    );
  }
  return size;
}

BenchModel open_model(const BenchFlags& flags) {
  return flags.dims.empty() ? open_bench_model(find_model_folder(flags.model))
                            : make_bench_model(flags.dims);
}

void require_bench_memory(uint64_t needed) {
  const std::optional<uint64_t> available = available_memory();
  if (available && needed > *available) {
    throw Error(
        Fault::memory,
        "bench",
        "got {} available, expected {} for weights, caches and activations; take a smaller model "
        "or depths, or try anyway with --force",
        size_text(*available),
        size_text(needed)
    );
  }
}

Engine load_engine(BenchModel& model, std::unique_ptr<const ops::Ops> ops) {
  ProgressBar bar("loading", true);
  return Engine(
      model.config,
      model.checkpoint,
      std::move(ops),
      {.on_bytes = [&bar](uint64_t done, uint64_t total) { bar.update(done, total); },
       .cancelled = interrupted}
  );
}

BenchMeasurement measure(
    const Engine& engine,
    const BenchOptions& options,
    const std::vector<BenchCell>& cells,
    const std::optional<Prompt>& picture,
    int probe_mib
) {
  ProgressBar bar("measuring", true);
  return measure_cells(
      engine.model(),
      options,
      cells,
      picture,
      ops::BandwidthProbe(static_cast<size_t>(probe_mib) << 20),
      {.on_cell = [&bar](
                      int done, int total
                  ) { bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total)); },
       .cancelled = interrupted}
  );
}

Json run_cells(BenchFlags flags) {
  BenchOptions& options = flags.options;
  if (!flags.image.empty()) {
    options.image = parse_size(flags.image);
  }
  BenchModel model = open_model(flags);
  std::optional<Prompt> picture;
  if (options.image) {
    picture = bench_picture(model, *options.image);
  }
  const std::vector<BenchCell> cells =
      plan_cells(options, model.shape.max_position_embeddings, picture ? picture->tokens() : 0);
  std::unique_ptr<const ops::Ops> ops =
      choose_ops(requested_ops(), model.checkpoint.summary(), options.ops);
  if (!flags.force) {
    require_bench_memory(bench_memory(model, options, cells, picture, *ops));
  }
  const ops::KVFormat kv =
      ops::kv_format(options.kv_bits, ops->kv_dtype(), model.shape.heads.head_dim);
  const Engine engine = load_engine(model, std::move(ops));
  const BenchMeasurement measured = measure(engine, options, cells, picture, flags.probe_mib);
  const int merge = model.media ? model.media->layout.merge_size : 1;
  const ModelWork work = model_work(model.checkpoint, engine.model().config(), kv, merge * merge);
  const int64_t patches = picture ? picture->media[0].patches.count : 0;
  const std::vector<BenchRow> rows = bench_rows(measured.samples, work, measured.probe, patches);
  return bench_json(model, options, measured, rows, engine.ops_name());
}

/// The flags that say what is measured, for a process that measures it.
std::vector<std::string> measuring_arguments(const BenchFlags& flags) {
  const BenchOptions& options = flags.options;
  std::vector<std::string> arguments;
  const auto add = [&arguments](const char* flag, std::string value) {
    if (!value.empty()) {
      arguments.insert(arguments.end(), {flag, std::move(value)});
    }
  };
  const auto list = [](const std::vector<int>& values) {
    return fmt::format("{}", fmt::join(values, ","));
  };
  add("--dims", flags.dims);
  add("-m", flags.dims.empty() ? find_model_folder(flags.model).string() : "");
  add("--image", flags.image);
  add("-p", list(options.prompts));
  add("-n", list(options.generated));
  add("-d", list(options.depths));
  add("--rows", list(options.rows));
  add("-r", std::to_string(options.repetitions));
  add("--warmup", std::to_string(options.warmup));
  add("--prefill-chunk", std::to_string(options.prefill_chunk));
  add("--kv-bits", options.kv_bits == 0 ? "" : std::to_string(options.kv_bits));
  add("--threads", flags.threads == 0 ? "" : std::to_string(flags.threads));
  add("--probe-mib", std::to_string(flags.probe_mib));
  if (options.ops.prefill_int8) {
    arguments.push_back("--prefill-int8");
  }
  if (flags.force) {
    arguments.push_back("--force");
  }
  return arguments;
}

/// Of its formats a comparison has two.
void require_against_format(BenchFormat format) {
  if (format != BenchFormat::md && format != BenchFormat::json) {
    throw Error(Fault::usage, "-o", "got --against in another format, expected md or json");
  }
}

void run_against(const BenchFlags& flags, BenchFormat format) {
  require_against_format(format);
  if (std::ranges::count(flags.options.generated, 0) != 0) {
    throw Error(
        Fault::usage, "-n", "got 0 with --against, expected decodes: its control doubles one"
    );
  }
  const Json comparison = bench_against({
      .binary = flags.against,
      .rounds = flags.rounds,
      .self = flags.self,
      .arguments = measuring_arguments(flags),
  });
  write_stdout(format == BenchFormat::json ? json_line(comparison) : against_text(comparison));
  require_controls(comparison);
}

void run_bench(const BenchFlags& flags) {
  catch_interrupts();
  const BenchFormat format = parse_bench_format(flags.format);
  if (!flags.against.empty()) {
    run_against(flags, format);
    return;
  }
  if (flags.threads != 0) {
    ops::set_threads(flags.threads);
  }
  write_stdout(bench_text(run_cells(flags), format));
}

std::string dims_help() {
  std::vector<std::string_view> names;
  for (const PublishedDims& dims : published_dims()) {
    names.push_back(dims.name);
  }
  return fmt::format(
      "Random weights at the size of a published model, NAME[:4bit|8bit|bf16]: {}",
      fmt::join(names, ", ")
  );
}

void add_what_to_measure(CLI::App& command, BenchFlags& flags) {
  const CLI::Range sizes(0, 10'000'000);
  BenchOptions& options = flags.options;
  const auto add_list = [&](const char* name, std::vector<int>& values, const char* help) {
    return command.add_option(name, values, help)->delimiter(',');
  };
  add_list("-p,--n-prompt", options.prompts, "Tokens of prefills, 0 for none")
      ->check(sizes)
      ->capture_default_str();
  add_list("-n,--n-gen", options.generated, "Tokens of decodes, 0 for none")
      ->check(sizes)
      ->capture_default_str();
  add_list(
      "-d,--n-depth",
      options.depths,
      "Tokens in the cache before; by default none for prefills, and 64,128,512,2048,8192 for "
      "decodes, as far as the model's context goes"
  )
      ->check(sizes);
  add_list("--rows", options.rows, "Sequences that are decoded in one step")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--image", flags.image, "Tower, first token and decode behind a picture, WxH");
  command.add_option("-r,--repetitions", options.repetitions, "Times that each test is repeated")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command.add_option("--warmup", options.warmup, "Steps before each decode that don't count")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

void add_how_to_run(CLI::App& command, BenchFlags& flags) {
  command
      .add_option("--prefill-chunk", flags.options.prefill_chunk, "Prompt tokens of one forward")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--kv-bits", flags.options.kv_bits, "8: keys and values in 8 bits")
      ->check(CLI::IsMember({8}));
  command.add_option("--threads", flags.threads, "Threads for matrix products on a CPU")
      ->check(CLI::Range(1, 1024));
  add_prefill_int8(command, flags.options.ops);
  command.add_option("--probe-mib", flags.probe_mib, "Size of what the bandwidth probe reads, MiB")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_flag(
      "--control", flags.options.control, "One more decode, every step of it computed twice"
  );
  command.add_flag("--force", flags.force, "Go on though memory looks too small");
  command.add_option("-o,--output", flags.format, "md, csv, json, jsonl or benchstat")
      ->capture_default_str();
}

void add_comparison(CLI::App& command, BenchFlags& flags) {
  CLI::Option* against =
      command.add_option("--against", flags.against, "Compare with this other build of whimbrel");
  command.add_option("--rounds", flags.rounds, "Rounds of a comparison: this, other, other, this")
      ->needs(against)
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_flag("--self", flags.self, "Let both builds of a comparison be one")->needs(against);
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("bench", "Measure prefill and decode beside what the machine can do");
  const auto flags = std::make_shared<BenchFlags>();
  CLI::Option* model = command->add_option("-m,--model", flags->model, kModelHelp);
  command->add_option("--dims", flags->dims, dims_help())->excludes(model);
  add_what_to_measure(*command, *flags);
  add_how_to_run(*command, *flags);
  add_comparison(*command, *flags);
  command->footer(
      "Prompts are random ids of exact length, end tokens are ignored, decoding is greedy.\n"
      "Examples:\n"
      "  whimbrel bench -m DIR\n"
      "  whimbrel bench -m DIR -p 512,2048 -n 128 -d 64,2048 -o jsonl\n"
      "  whimbrel bench -m DIR --image 448x448 --rows 1,8\n"
      "  whimbrel bench -m DIR -p 0 --against old/whimbrel"
  );
  command->callback([flags] { run_bench(*flags); });
}

}  // namespace whimbrel
