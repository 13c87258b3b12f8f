#include "base/output_file.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

/// Whether the name stands for something that a rename would destroy: a device, a pipe, a folder.
bool is_special(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  return fs::exists(status) && !fs::is_regular_file(status);
}

fs::path resolved(const fs::path& path) {
  std::error_code code;
  const fs::path target = fs::weakly_canonical(path, code);
  return code ? path : target;
}

fs::path partial_of(const fs::path& path) {
  if (is_special(path)) {
    return path;
  }
  fs::path partial = path;
  partial += ".partial";
  return partial;
}

}  // namespace

OutputFile::OutputFile(const fs::path& path)
    : path_(resolved(path)), partial_(partial_of(path_)), out_(partial_, std::ios::binary) {
  require_good();
}

OutputFile::~OutputFile() {
  if (!finished_ && partial_ != path_) {
    std::error_code ignored;
    fs::remove(partial_, ignored);
  }
}

void OutputFile::write(std::string_view bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  require_good();
}

void OutputFile::finish() {
  out_.close();
  require_good();
  if (partial_ != path_) {
    std::error_code code;
    fs::rename(partial_, path_, code);
    if (code) {
      throw Error(
          Fault::io, path_.string(), "renaming {} failed: {}", partial_.string(), code.message()
      );
    }
  }
  finished_ = true;
}

void OutputFile::require_good() {
  if (!out_) {
    throw Error(
        Fault::io,
        path_.string(),
        "writing failed: {}; check the folder, permissions and the disk",
        std::strerror(errno)
    );
  }
}

}  // namespace whimbrel
