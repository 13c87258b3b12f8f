#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "base/build_info.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace whimbrel {

namespace {

int report(int code, std::string_view sentence) {
  const Style style = stderr_style();
  fmt::print(stderr, "{}error:{} {}\n", style.red, style.reset, sentence);
  return code;
}

int parse_and_run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return report(
        static_cast<int>(Fault::usage), fmt::format("{}; see whimbrel --help", error.what())
    );
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
  add_inspect_command(app);
  add_version_command(app);
  try {
    return parse_and_run(app, argc, argv);
  } catch (const Error& error) {
    return report(static_cast<int>(error.fault()), error.what());
  } catch (const std::bad_alloc&) {
    return report(
        static_cast<int>(Fault::memory),
        "[memory] the system gave no more memory; use a smaller model, picture or context"
    );
  } catch (const std::exception& error) {
    return report(
        static_cast<int>(Fault::model),
        fmt::format("[whimbrel] got an unexpected failure: {}; please report it", error.what())
    );
  }
}

}  // namespace whimbrel
