#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "engine/memory_estimate.h"
#include "weights/hub_cache.h"
#include "weights/hub_names.h"
#include "weights/hub_settings.h"
#include "weights/quote.h"

namespace whimbrel {

namespace {

struct RemoveFlags {
  std::string model;
  bool yes = false;
};

HubModelFolder wanted_folder(const std::string& name) {
  const HubModel model = require_hub_model(name);
  if (name.find('@') != std::string::npos) {
    throw Error(
        Fault::usage,
        "rm",
        "got the revision in {}, expected a name alone: all revisions of a model go together",
        quote(name)
    );
  }
  const HubModelFolder folder{hub_cache_folder(), model.repo};
  if (!std::filesystem::exists(std::filesystem::symlink_status(folder.path()))) {
    throw Error(
        Fault::model,
        model.repo,
        "got no such model in {}; whimbrel list says what is there",
        folder.cache.string()
    );
  }
  return folder;
}

/// Asks on stderr; anything but yes is a no.
bool confirmed(const HubModelFolder& folder, uint64_t bytes) {
  if (!stdin_is_terminal()) {
    throw Error(
        Fault::usage, "rm", "got nobody to ask, expected a terminal; -y removes without asking"
    );
  }
  write_stderr(
      fmt::format(
          "Remove {} ({}) from {}? [y/N] ", folder.repo, size_text(bytes), folder.path().string()
      )
  );
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

void run_remove(const RemoveFlags& flags) {
  const HubModelFolder folder = wanted_folder(flags.model);
  const uint64_t bytes = cached_bytes(folder);
  if (!flags.yes && !confirmed(folder, bytes)) {
    write_stderr("nothing was removed\n");
    return;
  }
  remove_cached(folder);
  write_stderr(fmt::format("removed {} ({})\n", folder.repo, size_text(bytes)));
}

}  // namespace

void add_remove_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("rm", "Remove a model from the Hugging Face cache");
  const auto flags = std::make_shared<RemoveFlags>();
  command->add_option("NAME", flags->model, "owner/name as whimbrel list says it")->required();
  command->add_flag("-y,--yes", flags->yes, "Don't ask");
  command->footer("Example:\n  whimbrel rm mlx-community/Qwen2.5-VL-3B-Instruct-4bit");
  command->callback([flags] { run_remove(*flags); });
}

}  // namespace whimbrel
