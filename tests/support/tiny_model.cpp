#include "tests/support/tiny_model.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/support/source_dir.h"

namespace whimbrel::test {

namespace fs = std::filesystem;

namespace {

/// A folder of this process, removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (fs::temp_directory_path() / "whimbrel-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("[tiny_model] can't make " + name);
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string quoted(const fs::path& path) {
  return "'" + path.string() + "'";
}

void make(
    const fs::path& out, std::string_view family, const std::vector<std::string_view>& variants
) {
  std::string command = quoted(python()) + " " + quoted(source_dir() / "tools/make_tiny_models.py");
  command += " --out " + quoted(out) + " --family " + std::string(family);
  for (const std::string_view variant : variants) {
    command += " --variant " + std::string(variant);
  }
  if (std::system(command.c_str()) != 0) {
    throw std::runtime_error("[tiny_model] failed: " + command);
  }
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
