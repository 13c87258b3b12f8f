#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include "base/build_info.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/terminal.h"

namespace whimbrel {

namespace {

constexpr std::string_view kNoMemory =
    "[memory] the system gave no more memory; use a smaller model, picture or context";

/// MLX's allocator throws a runtime_error that begins so.
bool is_allocation_failure(const std::exception& error) {
  return std::string_view(error.what()).starts_with("[malloc");
}

int report(int code, std::string_view sentence) {
  write_error(sentence);
  return code;
}

/// What was wrong with the arguments, and whose --help explains them.
std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> named = app.get_subcommands();
  if (!named.empty()) {
    return fmt::format(
        "[command line] {}; see whimbrel {} --help", error.what(), named.front()->get_name()
    );
  }
  const std::vector<std::string> unknown = app.remaining();
  if (!unknown.empty()) {
    return fmt::format(
        "[command line] got {}, expected a subcommand; see whimbrel --help", unknown.front()
    );
  }
  return fmt::format("[command line] {}; see whimbrel --help", error.what());
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::Success& asked) {  // for help or the version
    std::ostringstream text;
    app.exit(asked, text, text);
    write_stdout(text.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    return report(static_cast<int>(Fault::usage), usage_sentence(app, error));
  }
}

}  // namespace

int run_app(int argc, char** argv) {
  CLI::App app("whimbrel runs Qwen vision-language models on MLX.", "whimbrel");
  app.set_version_flag("--version", build_info().version);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  whimbrel generate --image photo.jpg\n"
      "  whimbrel generate -m ./Qwen2.5-VL-3B-Instruct-4bit --image a.jpg -p \"What is this?\"\n"
      "  whimbrel inspect -m ./Qwen2.5-VL-3B-Instruct-4bit\n"
      "Exit codes: 0 done, 1 a check failed, 2 wrong usage, 3 model, 4 input, 5 memory,\n"
      "  6 reading or writing, 7 network, 130 interrupted."
  );
  add_generate_command(app);
  add_run_command(app);
  add_serve_command(app, {argv + 1, argv + argc});
  add_inspect_command(app);
  add_pull_command(app);
  add_list_command(app);
  add_remove_command(app);
  add_trace_command(app);
  add_compare_command(app);
  add_bench_command(app);
  add_profile_command(app);
  add_doctor_command(app);
  add_verify_command(app);
  add_version_command(app);
  try {
    return parse_and_run(app, argc, argv);
  } catch (const ExitCode& end) {
    return end.code();
  } catch (const Error& error) {
    return report(static_cast<int>(error.fault()), error.what());
  } catch (const std::bad_alloc&) {
    return report(static_cast<int>(Fault::memory), kNoMemory);
  } catch (const std::exception& error) {
    if (is_allocation_failure(error)) {
      return report(static_cast<int>(Fault::memory), kNoMemory);
    }
    return report(
        static_cast<int>(Fault::model),
        fmt::format("[whimbrel] got an unexpected failure: {}; please report it", error.what())
    );
  }
}

}  // namespace whimbrel
