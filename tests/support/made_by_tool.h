#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel::test {

/// A folder of this process under the system's temporary one, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Runs the Python script tools/`script` with these arguments. Throws std::runtime_error when it
/// fails.
void run_tool(std::string_view script, const std::vector<std::string>& arguments);

}  // namespace whimbrel::test
