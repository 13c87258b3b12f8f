#include "media/decoder_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "base/executable.h"
#include "base/socket_pair.h"
#include "sandbox_exit.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

#if defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;  // SO_NOSIGPIPE says the same
#endif

constexpr int kNoLibraries = 127;  // of a dynamic linker

}  // namespace

fs::path find_decoder(std::string_view name) {
  const fs::path folder = executable_path().parent_path();
  const std::array places = {folder / name, folder / "../libexec/whimbrel" / name};
  for (const fs::path& place : places) {
    std::error_code code;
    if (fs::is_regular_file(place, code)) {
      return place;
    }
  }
  throw Error(
      Fault::io,
      places.back().lexically_normal().string(),
      "got no decoder there, expected the one that comes with this program; install it as a whole"
  );
}

DecoderProcess::DecoderProcess(const fs::path& program, DecoderJob job)
    : program_(program),
      job_(std::move(job)),
      deadline_(
          Clock::now() +
          std::chrono::milliseconds(static_cast<int64_t>(job_.patience.seconds * 1000))
      ) {
  const auto [ours, theirs] = open_socket_pair(job_.where);
  socket_ = ours;
  try {
    start(theirs);
  } catch (...) {
    close(ours);
    close(theirs);
    throw;
  }
  close(theirs);
}

DecoderProcess::~DecoderProcess() {
  close(socket_);
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
}

void DecoderProcess::start(int socket) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__)
  // What another thread has opened and not marked yet.
  posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
#endif
  std::string name = program_.filename().string();
  char* arguments[] = {name.data(), nullptr};
  char* environment[] = {nullptr};
  const int code = posix_spawn(&child_, program_.c_str(), &files, nullptr, arguments, environment);
  posix_spawn_file_actions_destroy(&files);
  if (code != 0) {
    child_ = -1;
    throw Error(
        Fault::io,
        program_.string(),
        "starting the {} decoder failed: {}; install the program as a whole",
        job_.medium,
        std::strerror(code)
    );
  }
}

void DecoderProcess::send(const void* data, size_t size) {
  const auto* next = static_cast<const char*>(data);
  while (size > 0) {
    wait_for(POLLOUT);
    const ssize_t put = ::send(socket_, next, size, kSendFlags | MSG_DONTWAIT);
    if (put < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (put <= 0) {
      report_end();
    }
    next += put;
    size -= static_cast<size_t>(put);
  }
}

void DecoderProcess::receive(void* data, size_t size) {
  auto* next = static_cast<char*>(data);
  while (size > 0) {
    wait_for(POLLIN);
    const ssize_t got = recv(socket_, next, size, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got <= 0) {
      report_end();
    }
    next += got;
    size -= static_cast<size_t>(got);
  }
}

void DecoderProcess::wait_for(short events) {
  for (;;) {
    require_wanted(job_.patience.cancelled, job_.where);
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    if (left <= 0) {
      throw_too_long();
    }
    pollfd poller{socket_, events, 0};
    if (poll(&poller, 1, static_cast<int>(std::min<int64_t>(left, kCancelledLook.count()))) > 0) {
      return;
    }
  }
}

// Throws where the decoder ended, with `status` of waitpid, for a reason that isn't its input.
void DecoderProcess::require_innocent(int status) const {
  const auto ended = [status](int code) {
    return WIFEXITED(status) && WEXITSTATUS(status) == code;
  };
  if (ended(static_cast<int>(sandbox::Exit::no_sandbox))) {
    throw Error(
        Fault::io,
        program_.string(),
        "this system doesn't let the {} decoder be locked in, expected seccomp and resource limits "
        "to be there; run outside of what forbids them (a container, an emulator)",
        job_.medium
    );
  }
  if (ended(kNoLibraries)) {
    throw Error(
        Fault::io,
        program_.string(),
        "got a {} decoder that can't be loaded, expected it with its libraries and the memory for "
        "them; install the program as a whole, or raise the memory limit (ulimit -v)",
        job_.medium
    );
  }
  if (ended(static_cast<int>(sandbox::Exit::bad_request))) {
    throw std::logic_error("[DecoderProcess] got a request that the decoder doesn't know");
  }
}

void DecoderProcess::report_end() {
  int status = 0;
  kill(child_, SIGKILL);  // it may have closed the socket and live on
  waitpid(child_, &status, 0);
  child_ = -1;
  require_innocent(status);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) {
    throw_too_long();
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
    throw Error(
        Fault::input,
        job_.where,
        "got a {} that made its decoder try what it must not, expected a harmless one; take "
        "another",
        job_.medium
    );
  }
  throw Error(
      Fault::input,
      job_.where,
      "got a {} that its decoder gave up on, expected an intact one; convert it or take another",
      job_.medium
  );
}

void DecoderProcess::throw_too_long() const {
  throw Error(
      Fault::input,
      job_.where,
      "got a {} that takes too long to decode, expected a smaller or shorter one",
      job_.medium
  );
}

}  // namespace whimbrel
