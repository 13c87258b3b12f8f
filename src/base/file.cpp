#include "base/file.h"

#include <fstream>

namespace whimbrel {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path, Fault fault, uint64_t max_bytes) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (!fs::exists(status)) {
    throw Error(fault, path.string(), "got no such file; check the path");
  }
  if (!fs::is_regular_file(status)) {
    throw Error(fault, path.string(), "got something that is no regular file, expected a file");
  }
  const uint64_t size = fs::file_size(path, code);
  if (code) {
    throw Error(Fault::io, path.string(), "reading its size failed: {}", code.message());
  }
  if (size > max_bytes) {
    throw Error(fault, path.string(), "got {} bytes, expected at most {}", size, max_bytes);
  }
  std::ifstream in(path, std::ios::binary);
  std::string bytes(size, '\0');
  if (!in || !in.read(bytes.data(), static_cast<std::streamsize>(size))) {
    throw Error(Fault::io, path.string(), "reading failed; check permissions and the disk");
  }
  return bytes;
}

std::optional<std::string> read_file_if_present(
    const fs::path& path, Fault fault, uint64_t max_bytes
) {
  std::error_code code;
  if (!fs::exists(path, code)) {
    return std::nullopt;
  }
  return read_file(path, fault, max_bytes);
}

}  // namespace whimbrel
