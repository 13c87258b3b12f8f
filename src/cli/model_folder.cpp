#include "cli/model_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/executable.h"
#include "cli/terminal.h"
#include "weights/hub_cache.h"
#include "weights/hub_names.h"
#include "weights/hub_settings.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBundledModel = "tiny-qwen2-5-vl-4bit";

/// Where models lie, first one first.
std::vector<fs::path> model_folders() {
  const char* chosen = std::getenv("WHIMBREL_MODELS");
  if (chosen != nullptr && *chosen != '\0') {
    return {chosen};
  }
  const fs::path bin = executable_path().parent_path();
  return {bin / "../share/whimbrel/models", bin / "../models"};
}

[[noreturn]] void throw_no_folder(const std::string& wanted) {
  throw Error(
      Fault::model,
      wanted,
      "got no such folder, expected one with config.json and weights, or owner/name of a pulled "
      "model; check -m"
  );
}

/// The snapshot in the Hugging Face cache of what isn't a folder.
fs::path find_pulled_model(const std::string& wanted) {
  const std::optional<HubModel> model = parse_hub_model(wanted);
  if (!model) {
    throw_no_folder(wanted);
  }
  const fs::path cache = hub_cache_folder();
  const std::optional<fs::path> snapshot = find_snapshot(cache, *model);
  if (!snapshot) {
    throw Error(
        Fault::model,
        wanted,
        "got no such folder, and no {} in {}; to download it: whimbrel pull {}",
        model->repo,
        cache.string(),
        wanted
    );
  }
  const std::string missing = missing_file(*snapshot);
  if (!missing.empty()) {
    throw Error(
        Fault::model,
        wanted,
        "got a copy without {} in {}; to download the rest: whimbrel pull {}",
        missing,
        snapshot->string(),
        wanted
    );
  }
  return *snapshot;
}

}  // namespace

fs::path find_model_folder(const std::string& name) {
  const std::string wanted = name.empty() ? std::string(kBundledModel) : name;
  std::error_code unreadable;
  if (!name.empty() && fs::exists(name, unreadable)) {
    return name;
  }
  for (const fs::path& folder : model_folders()) {
    if (fs::is_directory(folder / wanted, unreadable)) {
      if (name.empty()) {
        write_stderr(
            fmt::format("no model given (-m): using the bundled tiny model, {}\n", wanted)
        );
      }
      return fs::weakly_canonical(folder / wanted);
    }
  }
  if (name.empty()) {
    throw_no_folder(wanted);
  }
  return find_pulled_model(wanted);
}

}  // namespace whimbrel
