#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/load_model.h"
#include "cli/media_flags.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/terminal.h"
#include "ops/device.h"
#include "server/http_server.h"
#include "server/model_service.h"
#include "server/routes.h"

namespace whimbrel {

namespace {

/// Of a prompt and one answer, where neither the flag nor the model asks for less.
constexpr int kDefaultContext = 16384;

/// Where the system doesn't say what is left.
constexpr uint64_t kDefaultMemory = uint64_t{4} << 30;

struct ServeFlags {
  std::string model;
  std::string alias;
  http::HttpServerOptions http;
  ServingOptions serving;
  std::optional<int> context;
  std::optional<uint64_t> memory_mib;
  std::optional<int> threads;
  std::optional<int64_t> max_pixels;
  int drain_seconds = 30;
  bool log_requests = false;
  ops::OpsOptions ops;
  bool force = false;
  bool no_progress = false;
};

void add_http_options(CLI::App& command, http::HttpServerOptions& http) {
  command.add_option("--host", http.host, "Address to listen to")->capture_default_str();
  command.add_option("--port", http.port, "Port, 0 for a free one")->capture_default_str();
  command.add_option("--api-key", http.access.api_keys, "Key that requests must have; repeatable")
      ->envname("WHIMBREL_API_KEY");
  command.add_flag(
      "--insecure-no-auth", http.access.insecure_no_auth, "Serve other machines without a key"
  );
  command.add_option(
      "--allowed-host", http.access.allowed_hosts, "Name that a request's Host may have; repeatable"
  );
  command.add_option(
      "--allowed-origin", http.access.allowed_origins, "Web page that may call; repeatable"
  );
  command.add_option("--tls-cert", http.tls_cert, "Certificate, PEM");
  command.add_option("--tls-key", http.tls_key, "Its private key, PEM");
}

void add_serving_options(CLI::App& command, ServeFlags& flags) {
  const auto positive = CLI::Range(1, std::numeric_limits<int>::max(), "POSITIVE");
  command
      .add_option(
          "-c,--ctx",
          flags.context,
          fmt::format(
              "Tokens of a prompt and its answer (the model's, at most {})", kDefaultContext
          )
      )
      ->check(positive);
  command.add_option("--parallel", flags.serving.parallel, "Answers that are computed at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--queue", flags.serving.queue, "Requests that may wait")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command.add_option("--prefill-chunk", flags.serving.prefill_chunk, "Prompt tokens of a step")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--kv-bits", flags.serving.kv_bits, "8: keys and values in 8 bits")
      ->check(CLI::IsMember({8}));
  command
      .add_option(
          "--memory",
          flags.memory_mib,
          "MiB for caches and pictures (three quarters of what is left)"
      )
      ->check(CLI::Range(1, 1 << 30));
  command.add_option("--max-pixels", flags.max_pixels, "Pixels of a picture at most")
      ->check(positive);
  command.add_option("--threads", flags.threads, "Threads for matrix products on a CPU")
      ->check(positive);
  command.add_option("--drain", flags.drain_seconds, "Seconds that answers have when it stops")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
}

int context_of(const ServeFlags& flags, const ModelShape& shape) {
  const int most = shape.max_position_embeddings;
  if (flags.context && *flags.context > most) {
    throw Error(
        Fault::usage, "--ctx", "got {}, expected at most the model's {}", *flags.context, most
    );
  }
  return flags.context.value_or(std::min(most, kDefaultContext));
}

/// One line of JSON.
std::string log_line(const http::AccessLogEntry& entry) {
  Json line = {
      {"request_id", entry.request_id},
      {"client", entry.client},
      {"method", entry.method},
      {"path", entry.path},
      {"status", entry.status},
      {"outcome", std::string(name_of(entry.outcome))},
      {"ms", entry.milliseconds},
      {"body_bytes", entry.body_bytes},
      {"sent_bytes", entry.sent_bytes},
  };
  if (!entry.tenant.empty()) {
    line["key"] = entry.tenant;
  }
  if (!entry.failure.empty()) {
    line["failure"] = entry.failure;
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// A quarter of the memory each for prompts and for pictures that may come again.
ServingOptions serving_options(const ServeFlags& flags, const ModelShape& shape) {
  ServingOptions options = flags.serving;
  options.context = context_of(flags, shape);
  options.memory =
      flags.memory_mib ? *flags.memory_mib << 20 : memory_for_requests().value_or(kDefaultMemory);
  options.prefix_memory = options.memory / 4;
  options.feature_memory = options.memory / 4;
  return options;
}

std::unique_ptr<ModelService> load_service(const ServeFlags& flags) {
  const std::filesystem::path folder = find_model_folder(flags.model);
  Frontend frontend = load_frontend(folder);
  Engine engine = load_model(
      frontend,
      Prompt{},
      {.prefill_chunk = flags.serving.prefill_chunk},
      {.force = flags.force, .progress = !flags.no_progress, .ops = flags.ops}
  );
  ModelServiceOptions options{.name = flags.alias, .serving = {}, .media = {}};
  if (options.name.empty()) {
    const bool is_path = flags.model.empty() || std::filesystem::exists(flags.model);
    options.name = is_path ? folder.filename().string() : flags.model;
  }
  MediaFlags media;
  media.options.max_pixels = flags.max_pixels;
  options.media = options_for_device(media);
  options.serving = serving_options(flags, frontend.shape);
  return std::make_unique<ModelService>(std::move(frontend), std::move(engine), options);
}

void run_serve(const ServeFlags& flags) {
  leave_on_interrupt();
  if (flags.threads) {
    ops::set_threads(*flags.threads);
  }
  const std::unique_ptr<ModelService> service = load_service(flags);
  const http::HttpServer* running = nullptr;
  const auto counters = [&running] { return running->counters(); };
  http::HttpServerOptions options = flags.http;
  options.on_request = [all = flags.log_requests](const http::AccessLogEntry& entry) {
    if (all || !entry.failure.empty()) {
      write_stderr(log_line(entry));
    }
  };
  http::HttpServer server(std::move(options), http::model_routes(*service, counters));
  running = &server;
  catch_interrupts();
  server.start();
  write_stderr(fmt::format("listening on {}\n", server.url()));
  while (!interrupted()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  leave_on_interrupt();
  server.drain(std::chrono::seconds(flags.drain_seconds));
}

}  // namespace

void add_serve_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("serve", "Answer OpenAI clients over HTTP");
  const auto flags = std::make_shared<ServeFlags>();
  command->add_option("-m,--model", flags->model, kModelHelp);
  command->add_option("--alias", flags->alias, "What clients call the model");
  add_http_options(*command, flags->http);
  add_serving_options(*command, *flags);
  add_prefill_int8(*command, flags->ops);
  command->add_flag(
      "--log-requests",
      flags->log_requests,
      "A line of JSON on stderr for each request, not only for failures"
  );
  command->add_flag("--force", flags->force, "Go on though memory looks too small");
  command->add_flag("--no-progress", flags->no_progress, "No progress bars");
  command->footer(
      "Stops at Ctrl-C or SIGTERM once open answers have ended.\n"
      "Examples:\n"
      "  whimbrel serve\n"
      "  whimbrel serve -m DIR --port 9000 --api-key SECRET --host 0.0.0.0"
  );
  command->callback([flags] { run_serve(*flags); });
}

}  // namespace whimbrel
