#include "base/executable.h"

#include "base/error.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>

#include <string>
#endif

namespace whimbrel {

namespace fs = std::filesystem;

#if defined(__APPLE__)
fs::path executable_path() {
  uint32_t size = 0;
  _NSGetExecutablePath(nullptr, &size);
  std::string path(size, '\0');
  if (_NSGetExecutablePath(path.data(), &size) != 0) {
    throw Error(Fault::io, "executable", "the system doesn't say where this program lies");
  }
  return fs::canonical(path.c_str());
}
#else
fs::path executable_path() {
  std::error_code code;
  const fs::path path = fs::read_symlink("/proc/self/exe", code);
  if (code) {
    throw Error(Fault::io, "/proc/self/exe", "reading failed: {}", code.message());
  }
  return path;
}
#endif

}  // namespace whimbrel
