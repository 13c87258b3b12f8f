#include "server/local_media.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <utility>
#include <vector>

#include "base/error.h"

namespace whimbrel::http {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(std::string_view where) {
  throw Error(
      Fault::input,
      where,
      "got a file that is missing or not for requests, expected a regular file in the folder that "
      "this server was given"
  );
}

[[noreturn]] void refuse_size(std::string_view where, uint64_t max_bytes) {
  throw Error(
      Fault::input, where, "got a file that is too large, expected at most {} bytes", max_bytes
  );
}

class Descriptor {
 public:
  Descriptor(int number, std::string_view where) : number_(number) {
    if (number < 0) {
      refuse(where);
    }
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) {
      close(number_);
    }
  }

  int number() const { return number_; }

 private:
  int number_;
};

std::vector<std::string> components_of(std::string_view path, std::string_view where) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    if (name == "." || name == ".." || name.find('\0') != std::string_view::npos) {
      refuse(where);
    }
    if (!name.empty()) {
      names.emplace_back(name);
    }
    begin = end + 1;
  }
  return names;
}

std::vector<std::string> names_below(
    const fs::path& folder, std::string_view path, std::string_view where
) {
  std::vector<std::string> names = components_of(path, where);
  if (path.starts_with('/')) {
    const std::string whole = fs::absolute(folder).lexically_normal().string();
    const std::vector<std::string> above = components_of(whole, where);
    if (!std::ranges::equal(above, names | std::views::take(above.size()))) {
      refuse(where);
    }
    names.erase(names.begin(), names.begin() + std::ssize(above));
  }
  if (names.empty() || path.ends_with('/')) {
    refuse(where);
  }
  return names;
}

Descriptor open_below(
    const fs::path& folder, const std::vector<std::string>& names, std::string_view where
) {
  Descriptor at(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), where);
  for (const std::string& name : names | std::views::take(names.size() - 1)) {
    constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    at = Descriptor(openat(at.number(), name.c_str(), kFolder), where);
  }
  // O_NONBLOCK: a FIFO or a device must not make this thread wait for its other end.
  constexpr int kFile = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  return {openat(at.number(), names.back().c_str(), kFile), where};
}

std::string read_all(int descriptor, std::string_view where, uint64_t max_bytes) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    refuse(where);
  }
  if (std::cmp_greater(status.st_size, max_bytes)) {
    refuse_size(where, max_bytes);
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  for (size_t read_bytes = 0; read_bytes < bytes.size();) {
    const ssize_t got = read(descriptor, bytes.data() + read_bytes, bytes.size() - read_bytes);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {  // cut meanwhile, or a broken disk
      refuse(where);
    }
    read_bytes += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace

std::string read_file_below(
    const fs::path& folder, std::string_view path, std::string_view where, uint64_t max_bytes
) {
  const Descriptor file = open_below(folder, names_below(folder, path, where), where);
  return read_all(file.number(), where, max_bytes);
}

}  // namespace whimbrel::http
