#include "tests/support/tiny_model.h"

#include <string>

#include "tests/support/made_by_tool.h"

namespace whimbrel::test {

namespace fs = std::filesystem;

namespace {

void make(
    const fs::path& out, std::string_view family, const std::vector<std::string_view>& variants
) {
  std::vector<std::string> arguments = {"--out", out.string(), "--family", std::string(family)};
  for (const std::string_view variant : variants) {
    arguments.insert(arguments.end(), {"--variant", std::string(variant)});
  }
  run_tool("make_tiny_models.py", arguments);
}

}  // namespace

fs::path tiny_model(std::string_view family, const std::vector<std::string_view>& variants) {
  static const TemporaryFolder folder;
  std::string form = "hub";
  for (const std::string_view variant : variants) {
    form += "_" + std::string(variant);
  }
  const fs::path out = folder.path() / form;
  if (!fs::exists(out / family)) {
    make(out, family, variants);
  }
  return out / family;
}

}  // namespace whimbrel::test
