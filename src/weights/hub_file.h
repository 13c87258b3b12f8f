#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace whimbrel {

/// Throws Error(Fault::io): what was done to `path` failed for `error`, an errno, and what to do.
[[noreturn]] void throw_io(const std::filesystem::path& path, std::string_view what, int error);

/// Makes a folder and those above it. Throws Error(Fault::io).
void make_folders(const std::filesystem::path& path);

/// An open file descriptor, closed at the end.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  int get() const { return fd_; }

 private:
  int fd_;
};

/// A file that is being downloaded; what it already holds is kept. Never written through a link.
/// Everything throws Error(Fault::io) where the system refuses.
class PartialFile {
 public:
  explicit PartialFile(std::filesystem::path path);

  uint64_t size() const { return size_; }
  void append(std::string_view bytes);
  void restart();                                     // from its first byte
  void move_to(const std::filesystem::path& target);  // once it is on the disk
  void remove();

 private:
  std::filesystem::path path_;
  FileDescriptor file_;
  uint64_t size_ = 0;
};

/// A lock that a dying process leaves free, on the same files and in the same way (flock) as the
/// Python tools.
class FileLock {
 public:
  /// Waits for whoever has it. `on_wait` is called once if it has to; `cancelled` ends the waiting
  /// by Error(Fault::interrupted). A file system without such locks gives none: what is written
  /// under it is checked by its hash anyway.
  FileLock(
      const std::filesystem::path& path,
      const std::function<void()>& on_wait,
      const std::function<bool()>& cancelled
  );

 private:
  FileDescriptor file_;
};

/// The hash of a file of the kind that a blob's name is: SHA-256 for 64 hex digits, git's SHA-1 of
/// a blob for 40. `cancelled` ends it by Error(Fault::interrupted).
std::string hash_for_blob(
    const std::filesystem::path& path,
    const std::string& blob,
    const std::function<bool()>& cancelled
);

}  // namespace whimbrel
