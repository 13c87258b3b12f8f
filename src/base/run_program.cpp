#include "base/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

#if defined(__APPLE__)
#include <crt_externs.h>
#define environ (*_NSGetEnviron())
#else
extern char** environ;
#endif

namespace whimbrel {

namespace {

/// A pipe that doesn't survive an exec; both ends are closed with it.
class Pipe {
 public:
  explicit Pipe(const std::string& where) {
    if (pipe(ends_.data()) != 0) {
      throw Error(Fault::io, where, "opening a pipe failed: {}", std::strerror(errno));
    }
    for (const int end : ends_) {
      fcntl(end, F_SETFD, FD_CLOEXEC);
    }
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  void close_write_end() { close_end(1); }

  /// Appends what is there; false at its end.
  bool read_into(std::string& text) {
    std::array<char, 65536> bytes;
    const ssize_t count = read(ends_[0], bytes.data(), bytes.size());
    if (count < 0) {
      return errno == EINTR || errno == EAGAIN;
    }
    text.append(bytes.data(), static_cast<size_t>(count));
    return count > 0;
  }

 private:
  void close_end(size_t which) {
    if (ends_[which] >= 0) {
      close(ends_[which]);
      ends_[which] = -1;
    }
  }

  std::array<int, 2> ends_{};
};

pid_t start(
    const std::string& program,
    const std::vector<std::string>& arguments,
    const Pipe& out,
    const Pipe& err
) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err.write_end(), STDERR_FILENO);
  pid_t child = -1;
  const int code = posix_spawn(&child, program.c_str(), &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (code != 0) {
    throw Error(Fault::io, program, "starting it failed: {}; check the path", std::strerror(code));
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

ProgramResult run_program(
    const std::filesystem::path& program, const std::vector<std::string>& arguments
) {
  Pipe out(program.string());
  Pipe err(program.string());
  const pid_t child = start(program.string(), arguments, out, err);
  out.close_write_end();
  err.close_write_end();
  ProgramResult result;
  std::array<pollfd, 2> open = {{{out.read_end(), POLLIN, 0}, {err.read_end(), POLLIN, 0}}};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (poll(open.data(), open.size(), -1) < 0) {
      continue;  // a signal
    }
    if (open[0].revents != 0 && !out.read_into(result.out)) {
      open[0].fd = -1;
    }
    if (open[1].revents != 0 && !err.read_into(result.err)) {
      open[1].fd = -1;
    }
  }
  result.exit_code = wait_for(child);
  return result;
}

}  // namespace whimbrel
