#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/executable.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"
#include "cli/load_model.h"
#include "cli/media_flags.h"
#include "cli/model_folder.h"
#include "cli/ops_choice.h"
#include "cli/terminal.h"
#include "media/picture_decoder.h"
#include "media/video_decoder.h"
#include "ops/device.h"
#include "server/front_routes.h"
#include "server/http_server.h"
#include "server/info_answers.h"
#include "server/limits.h"
#include "server/model_routes.h"
#include "server/model_service.h"
#include "server/page_routes.h"
#include "server/remote_url.h"
#include "server/worker_process.h"
#include "server/worker_server.h"
#include "server/worker_supervisor.h"

namespace whimbrel {

namespace {

/// Of a prompt and one answer, where neither the flag nor the model asks for less.
constexpr int kDefaultContext = 16384;

constexpr const char* kApiKeyVariable = "WHIMBREL_API_KEY";

/// Tokens, where requests may give way: what caches grow by.
constexpr int kAnswerPiece = 256;

/// Between two looks at whether to stop.
constexpr std::chrono::milliseconds kLook{20};

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
  std::string media_path;
  std::vector<std::string> remote_hosts;
  int drain_seconds = 30;
  bool preempt = false;
  bool log_requests = false;
  ops::OpsOptions ops;
  std::vector<std::string> limits;
  bool no_ui = false;
  std::vector<std::string> arguments;
  int watchdog_seconds = 600;
  bool force = false;
  bool no_progress = false;
  std::string worker_model;  // in a worker: the folder of its model
};

void add_http_options(CLI::App& command, http::HttpServerOptions& http) {
  command.add_option("--host", http.host, "Address to listen to")->capture_default_str();
  command.add_option("--port", http.port, "Port, 0 for a free one")->capture_default_str();
  command.add_option("--api-key", http.access.api_keys, "Key that requests must have; repeatable")
      ->envname(kApiKeyVariable);
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

void add_queue_options(CLI::App& command, ServingOptions& serving) {
  command.add_option("--parallel", serving.parallel, "Answers that are computed at a time")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command.add_option("--queue", serving.queue, "Requests that may wait")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  const auto seconds = CLI::Range(0, 1 << 30);
  command.add_option("--queue-time", serving.queue_seconds, "Seconds that a request waits, 0: any")
      ->check(seconds)
      ->capture_default_str();
  command
      .add_option("--request-time", serving.request_seconds, "Seconds that a request takes, 0: any")
      ->check(seconds)
      ->capture_default_str();
}

void add_media_source_options(CLI::App& command, ServeFlags& flags) {
  const auto positive = CLI::Range(1, std::numeric_limits<int>::max(), "POSITIVE");
  command.add_option("--max-pixels", flags.max_pixels, "Pixels of a picture at most")
      ->check(positive);
  command.add_option(
      "--media-path", flags.media_path, "Folder of files that requests may name by file://"
  );
  command.add_option(
      "--allow-remote-media",
      flags.remote_hosts,
      "Host that pictures and videos may be fetched from, or any-public; repeatable"
  );
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
  command.add_option("--prefill-chunk", flags.serving.prefill_chunk, "Prompt tokens of a step")
      ->check(positive)
      ->capture_default_str();
  command.add_option("--kv-bits", flags.serving.kv_bits, "8: keys and values in 8 bits")
      ->check(CLI::IsMember({8}));
  command
      .add_option(
          "--prompt-lookup",
          flags.serving.prompt_lookup,
          "Tokens of an answer to guess at a time from what stood before, 0: none"
      )
      ->check(CLI::Range(0, kMostGuesses))
      ->capture_default_str();
  command.add_flag(
      "--preempt",
      flags.preempt,
      "Begin what fits with a piece of its answer; the last request waits where memory ends"
  );
  command
      .add_option(
          "--memory",
          flags.memory_mib,
          "MiB for caches and pictures (three quarters of what is left)"
      )
      ->check(CLI::Range(1, 1 << 30));
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
  if (!entry.ignored.empty()) {
    line["ignored"] = entry.ignored;
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// A quarter of the memory each for prompts and for pictures that may come again; beside it as much
/// for pictures that wait.
ServingOptions serving_options(const ServeFlags& flags, const ModelShape& shape) {
  ServingOptions options = flags.serving;
  options.context = context_of(flags, shape);
  options.answer_piece = flags.preempt ? kAnswerPiece : 0;
  options.memory =
      flags.memory_mib ? *flags.memory_mib << 20 : memory_for_requests().value_or(kDefaultMemory);
  options.queue_memory = options.memory / 4;
  options.prefix_memory = options.memory / 4;
  options.feature_memory = options.memory / 4;
  return options;
}

http::ServerLimits limits_of(const ServeFlags& flags) {
  http::ServerLimits limits;
  for (const std::string& setting : flags.limits) {
    limits = http::with_limit(limits, setting);
  }
  return limits;
}

/// What clients call the model.
std::string model_name(const ServeFlags& flags, const std::filesystem::path& folder) {
  if (!flags.alias.empty()) {
    return flags.alias;
  }
  const bool is_path = flags.model.empty() || std::filesystem::exists(flags.model);
  return is_path ? folder.filename().string() : flags.model;
}

http::MediaSources media_sources(const ServeFlags& flags) {
  http::MediaSources sources{.folder = flags.media_path, .remote_hosts = {}};
  if (!sources.folder.empty() && !std::filesystem::is_directory(sources.folder)) {
    throw Error(
        Fault::usage,
        "--media-path",
        "got {}, expected a folder; create it first",
        sources.folder.string()
    );
  }
  for (const std::string& host : flags.remote_hosts) {
    sources.remote_hosts.push_back(http::remote_host(host, "--allow-remote-media"));
  }
  return sources;
}

std::unique_ptr<ModelService> load_service(const ServeFlags& flags) {
  http::MediaSources sources = media_sources(flags);
  const std::filesystem::path picture_decoder = find_picture_decoder();
  find_video_decoder();  // a client would be the first to learn that it isn't there
  const std::filesystem::path folder = flags.worker_model;
  Frontend frontend = load_frontend(folder);
  Engine engine = load_model(
      frontend,
      Prompt{},
      {.prefill_chunk = flags.serving.prefill_chunk},
      {.force = flags.force, .progress = !flags.no_progress, .ops = flags.ops}
  );
  ModelServiceOptions options{
      .name = model_name(flags, folder), .serving = {}, .media = {}, .sources = std::move(sources)
  };
  MediaFlags media;
  media.options.max_pixels = flags.max_pixels;
  options.media = options_for_device(media);
  options.media.picture_decoder = picture_decoder;
  options.serving = serving_options(flags, frontend.shape);
  options.limits = limits_of(flags);
  options.media.context = options.serving.context;
  options.media.seconds = options.limits.request.media_ms / 1000.0;
  return std::make_unique<ModelService>(std::move(frontend), std::move(engine), options);
}

/// The process that holds the model: answers what the front hands on, until that is gone.
void run_worker(const ServeFlags& flags) {
  http::follow_starter();
  if (flags.threads) {
    ops::set_threads(*flags.threads);
  }
  const std::unique_ptr<ModelService> service = load_service(flags);
  const http::HttpLimits limits = limits_of(flags).http;
  http::WorkerServer server(
      http::WorkerProcess::kSocket,
      http::worker_routes(*service),
      [&service] { return http::report_of(*service); },
      {.waiting_handlers = limits.waiting_handlers, .bodies_bytes = limits.bodies_bytes}
  );
  server.run();
  // A step of the model may take seconds more, and nobody reads what comes of it.
  std::_Exit(0);
}

/// The worker, which reads what clients send, needs neither keys nor the private key's place.
std::vector<std::string> without_secrets(const std::vector<std::string>& arguments) {
  constexpr std::array<std::string_view, 3> kSecret = {"--api-key", "--tls-cert", "--tls-key"};
  std::vector<std::string> kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    if (std::ranges::count(kSecret, name) == 0) {
      kept.push_back(arguments[i]);
    } else if (name == arguments[i]) {
      ++i;  // its value
    }
  }
  return kept;
}

http::WorkerOptions worker_options(const ServeFlags& flags, const std::filesystem::path& model) {
  http::WorkerOptions options{.program = executable_path()};
  options.arguments = without_secrets(flags.arguments);
  options.arguments.insert(options.arguments.end(), {"--worker", model.string()});
  options.stuck_time = std::chrono::seconds(flags.watchdog_seconds);
  options.tell = [](const std::string& sentence) { write_stderr(sentence + "\n"); };
  return options;
}

http::HttpServerOptions http_options(const ServeFlags& flags) {
  http::HttpServerOptions options = flags.http;
  options.limits = limits_of(flags).http;
  options.on_request = [all = flags.log_requests](const http::AccessLogEntry& entry) {
    if (all || !entry.failure.empty()) {
      write_stderr(log_line(entry));
    }
  };
  return options;
}

/// Until the first worker is ready. Throws where it ended before, with what it said last.
void wait_for_model(const http::WorkerSupervisor& worker) {
  while (!interrupted() && !worker.status().ready) {
    if (const std::optional<http::ProcessEnd> end = worker.failed_start()) {
      if (end->code.value_or(0) != 0) {
        throw ExitCode(*end->code);  // it has said why
      }
      throw Error(Fault::model, "serve", "loading the model ended with {}", end->text());
    }
    std::this_thread::sleep_for(kLook);
  }
}

std::vector<http::Route> all_routes(
    const ServeFlags& flags,
    const std::string& model,
    http::WorkerSupervisor& worker,
    const std::function<http::HttpCounters()>& counters
) {
  std::vector<http::Route> routes = http::front_routes(model, worker, counters);
  for (http::Route& route :
       http::page_routes({.model = model, .limits = limits_of(flags), .has_page = !flags.no_ui})) {
    routes.push_back(std::move(route));
  }
  return routes;
}

/// The process that holds the connections.
void run_front(const ServeFlags& flags) {
  catch_interrupts();
  signal(SIGCHLD, SIG_DFL);   // ignored, it would take from us how a worker ended
  unsetenv(kApiKeyVariable);  // see without_secrets
  const std::filesystem::path model = find_model_folder(flags.model);
  http::WorkerSupervisor worker(worker_options(flags, model));
  const http::HttpServer* running = nullptr;
  const auto counters = [&running] { return running->counters(); };
  http::HttpServer server(
      http_options(flags), all_routes(flags, model_name(flags, model), worker, counters)
  );
  running = &server;
  server.start();
  worker.start();
  wait_for_model(worker);
  if (!interrupted()) {
    write_stderr(fmt::format("listening on {}\n", server.url()));
  }
  while (!interrupted()) {
    std::this_thread::sleep_for(kLook);
  }
  leave_on_interrupt();
  server.drain(std::chrono::seconds(flags.drain_seconds));
}

void run_serve(const ServeFlags& flags) {
  if (flags.worker_model.empty()) {
    run_front(flags);
  } else {
    run_worker(flags);
  }
}

}  // namespace

void add_serve_command(CLI::App& app, std::vector<std::string> arguments) {
  CLI::App* command = app.add_subcommand("serve", "Answer OpenAI clients over HTTP");
  const auto flags = std::make_shared<ServeFlags>();
  flags->arguments = std::move(arguments);
  command->add_option("-m,--model", flags->model, kModelHelp);
  command->add_option("--alias", flags->alias, "What clients call the model");
  add_http_options(*command, flags->http);
  add_serving_options(*command, *flags);
  add_queue_options(*command, flags->serving);
  add_media_source_options(*command, *flags);
  add_prefill_int8(*command, flags->ops);
  command->add_flag(
      "--log-requests",
      flags->log_requests,
      "A line of JSON on stderr for each request, not only for failures"
  );
  command->add_flag("--no-ui", flags->no_ui, "No page to chat on at /");
  command->add_option("--limit", flags->limits, "NAME=VALUE: another bound on clients; repeatable")
      ->type_name("NAME=VALUE");
  command
      ->add_option(
          "--watchdog",
          flags->watchdog_seconds,
          "Seconds without a step after which the model's process is started anew, 0: never"
      )
      ->check(CLI::Range(0, 86400))
      ->capture_default_str();
  command->add_option("--worker", flags->worker_model)->group("");
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
