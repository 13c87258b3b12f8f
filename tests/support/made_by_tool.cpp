#include "tests/support/made_by_tool.h"

#include <cstdlib>
#include <stdexcept>

#include "tests/support/source_dir.h"

namespace whimbrel::test {

namespace fs = std::filesystem;

namespace {

std::string quoted(const std::string& argument) {
  return "'" + argument + "'";
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "whimbrel-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("[TemporaryFolder] can't make " + name);
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void run_tool(std::string_view script, const std::vector<std::string>& arguments) {
  const fs::path path = source_dir() / "tools" / script;
  std::string command = quoted(python().string()) + " " + quoted(path.string());
  for (const std::string& argument : arguments) {
    command += " " + quoted(argument);
  }
  if (std::system(command.c_str()) != 0) {
    throw std::runtime_error("[run_tool] failed: " + command);
  }
}

}  // namespace whimbrel::test
