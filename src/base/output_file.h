#pragma once

#include <filesystem>
#include <fstream>
#include <string_view>

namespace whimbrel {

/// A file that appears under its name only when it is whole: what is written goes to
/// `<path>.partial`, which `finish` renames. A device or pipe is written straight to.
/// All methods throw Error(Fault::io) that names the path.
class OutputFile {
 public:
  explicit OutputFile(const std::filesystem::path& path);

  /// Without `finish` the partial file is removed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view bytes);

  /// The file is whole: gives it its name.
  void finish();

 private:
  void require_good();

  std::filesystem::path path_;     // links resolved
  std::filesystem::path partial_;  // equal to path_ where that is no regular file
  std::ofstream out_;
  bool finished_ = false;
};

}  // namespace whimbrel
