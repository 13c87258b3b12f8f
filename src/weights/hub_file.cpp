#include "weights/hub_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "weights/hub_http.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kLockPoll{100};
constexpr mode_t kLockMode = 0664;  // people who share a cache wait for each other
constexpr mode_t kFileMode = 0666;  // less the umask
constexpr size_t kHashBlock = size_t{1} << 20;
constexpr size_t kSha256Digits = 64;

std::string_view advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return "free some space, then pull again: what came is kept";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check its permissions, or choose another folder by HF_HUB_CACHE";
    case ELOOP:
      return "it is a link, which a download never writes through; remove it";
    default:
      return "check the folder and the disk";
  }
}

int open_or_throw(const fs::path& path, int flags, mode_t mode) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode);
  if (fd < 0) {
    throw_io(path, "opening it", errno);
  }
  return fd;
}

struct stat status_of(int fd, const fs::path& path) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) {
    throw_io(path, "reading its size", errno);
  }
  return status;
}

/// Whether the file that was locked is still the one at its path.
bool is_at(int fd, const fs::path& path) {
  struct stat there = {};
  const struct stat held = status_of(fd, path);
  return stat(path.c_str(), &there) == 0 && there.st_ino == held.st_ino &&
         there.st_dev == held.st_dev;
}

enum class Locking { locked, busy, unsupported };

Locking try_lock(int fd, const fs::path& path) {
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
    return Locking::locked;
  }
  switch (errno) {
    case EWOULDBLOCK:
    case EINTR:
    case EACCES:
      return Locking::busy;
    case ENOSYS:
    case EOPNOTSUPP:
    case ENOLCK:
      return Locking::unsupported;
    default:
      throw_io(path, "locking it", errno);
  }
}

}  // namespace

void throw_io(const fs::path& path, std::string_view what, int error) {
  throw Error(
      Fault::io, path.string(), "{} failed: {}; {}", what, std::strerror(error), advice(error)
  );
}

void make_folders(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) {
    throw_io(path, "making the folder", code.value());
  }
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

PartialFile::PartialFile(fs::path path)
    : path_(std::move(path)), file_(open_or_throw(path_, O_WRONLY | O_CREAT, kFileMode)) {
  const struct stat status = status_of(file_.get(), path_);
  if (!S_ISREG(status.st_mode) || status.st_nlink != 1) {
    throw Error(
        Fault::io, path_.string(), "got no plain file to write to, expected one; remove it"
    );
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

void PartialFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written < 0) {
      throw_io(path_, "writing", errno);
    }
    size_ += static_cast<uint64_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void PartialFile::restart() {
  if (ftruncate(file_.get(), 0) != 0) {
    throw_io(path_, "emptying it", errno);
  }
  size_ = 0;
}

void PartialFile::move_to(const fs::path& target) {
  if (fsync(file_.get()) != 0) {
    throw_io(path_, "writing it to the disk", errno);
  }
  if (rename(path_.c_str(), target.c_str()) != 0) {
    throw_io(target, "moving the finished file there", errno);
  }
}

void PartialFile::remove() {
  if (unlink(path_.c_str()) != 0) {
    throw_io(path_, "removing it", errno);
  }
}

FileLock::FileLock(
    const fs::path& path,
    const std::function<void()>& on_wait,
    const std::function<bool()>& cancelled
)
    : file_(-1) {
  make_folders(path.parent_path());
  bool told = false;
  while (true) {
    file_ = FileDescriptor(open_or_throw(path, O_RDWR | O_CREAT, kLockMode));
    const Locking locking = try_lock(file_.get(), path);
    if (locking == Locking::unsupported ||
        (locking == Locking::locked && is_at(file_.get(), path))) {
      return;
    }
    if (!told && locking == Locking::busy && on_wait) {
      on_wait();
      told = true;
    }
    if (cancelled && cancelled()) {
      throw_interrupted();
    }
    std::this_thread::sleep_for(kLockPoll);
  }
}

std::string hash_for_blob(
    const fs::path& path, const std::string& blob, const std::function<bool()>& cancelled
) {
  const FileDescriptor file(open_or_throw(path, O_RDONLY, 0));
  const bool is_sha256 = blob.size() == kSha256Digits;
  Digest digest(is_sha256 ? DigestKind::sha256 : DigestKind::sha1);
  if (!is_sha256) {
    // How git names a blob: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    const std::string header = fmt::format("blob {}", status_of(file.get(), path).st_size);
    digest.update({header.c_str(), header.size() + 1});
  }
  std::vector<char> block(kHashBlock);
  while (true) {
    if (cancelled && cancelled()) {
      throw_interrupted();
    }
    const ssize_t bytes = read(file.get(), block.data(), block.size());
    if (bytes == 0) {
      return digest.hex();
    }
    if (bytes < 0 && errno != EINTR) {
      throw_io(path, "reading", errno);
    }
    digest.update({block.data(), static_cast<size_t>(bytes < 0 ? 0 : bytes)});
  }
}

}  // namespace whimbrel
