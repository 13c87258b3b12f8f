#include "weights/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/digest.h"
#include "weights/weight_files.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 4> kConfigFiles = {
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
};

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const std::string_view name : kConfigFiles) {
    if (fs::exists(folder / name)) {
      files.push_back(folder / name);
    }
  }
  for (const WeightFile& file : find_weight_files(folder)) {
    files.push_back(file.path);
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::string checkpoint_sha256(const fs::path& folder) {
  Digest sum;
  for (const fs::path& file : files_of(folder)) {
    sum.update(fmt::format("{} {}\n", file.filename().string(), fs::file_size(file)));
    update_with_file(sum, file);
  }
  return sum.hex();
}

}  // namespace whimbrel
