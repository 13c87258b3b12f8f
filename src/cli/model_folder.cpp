#include "cli/model_folder.h"

#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/executable.h"
#include "cli/terminal.h"

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
  throw Error(
      Fault::model,
      wanted,
      "got no such folder, expected one with config.json and weights; check -m"
  );
}

}  // namespace whimbrel
