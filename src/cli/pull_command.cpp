#include <csignal>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/pull_progress.h"
#include "cli/terminal.h"
#include "weights/hub_pull.h"
#include "weights/quote.h"

namespace whimbrel {

namespace {

struct PullFlags {
  std::string model;
  std::string revision;
  bool no_progress = false;
};

HubModel wanted_model(const PullFlags& flags) {
  HubModel model = require_hub_model(flags.model);
  if (flags.revision.empty()) {
    return model;
  }
  if (flags.model.find('@') != std::string::npos) {
    throw Error(
        Fault::usage, "--revision", "got a second revision beside {}; give one", quote(flags.model)
    );
  }
  if (!is_revision(flags.revision)) {
    throw Error(
        Fault::usage,
        "--revision",
        "got {}, expected a branch, tag or commit",
        quote(flags.revision)
    );
  }
  model.revision = flags.revision;
  return model;
}

void run_pull(const PullFlags& flags) {
  const HubModel model = wanted_model(flags);
  const HubSettings settings = hub_settings();
  catch_interrupts();
  // A limit on file sizes shall be an error of writing, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  PullProgress progress(settings.progress && !flags.no_progress);
  const std::filesystem::path folder = pull_model(settings, model, progress.events(), interrupted);
  write_stdout(folder.string() + "\n");
}

}  // namespace

void add_pull_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("pull", "Download a model from the Hugging Face hub");
  const auto flags = std::make_shared<PullFlags>();
  command->add_option("NAME", flags->model, "owner/name[@revision]; without owner: mlx-community")
      ->required();
  command->add_option("--revision", flags->revision, "Branch, tag or commit (default: main)");
  command->add_flag("--no-progress", flags->no_progress, "Don't say how far it is");
  command->footer(
      "Files go to the cache that Hugging Face's own tools share (HF_HOME, HF_HUB_CACHE). A pull\n"
      "that broke off goes on where it stopped. HF_TOKEN opens private and gated models,\n"
      "HF_ENDPOINT names a mirror.\n"
      "Example:\n"
      "  whimbrel pull mlx-community/Qwen2.5-VL-3B-Instruct-4bit"
  );
  command->callback([flags] { run_pull(*flags); });
}

}  // namespace whimbrel
