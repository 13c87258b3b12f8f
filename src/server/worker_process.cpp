#include "server/worker_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/socket_pair.h"

#if defined(__linux__)
#include <sys/prctl.h>
#endif

extern char** environ;

namespace whimbrel::http {

namespace {

constexpr std::chrono::milliseconds kLook{5};

/// What a process inherits in spite of FD_CLOEXEC was opened a moment ago, such as by a library.
void close_others(posix_spawn_file_actions_t& files) {
#if defined(__GLIBC__)
  posix_spawn_file_actions_addclosefrom_np(&files, WorkerProcess::kSocket + 1);
#endif
}

ProcessEnd end_of(int status) {
  if (WIFEXITED(status)) {
    return {.code = WEXITSTATUS(status)};
  }
  return {.signal = WTERMSIG(status)};
}

}  // namespace

std::string ProcessEnd::text() const {
  if (!code && !signal) {
    return "killed, but not gone";
  }
  return code ? fmt::format("exit code {}", *code) : fmt::format("signal {}", *signal);
}

WorkerProcess::WorkerProcess(
    const std::filesystem::path& program, const std::vector<std::string>& arguments
) {
  const auto [ours, theirs] = open_socket_pair("worker");
  socket_ = ours;
  try {
    start(program, arguments, theirs);
  } catch (...) {
    close(ours);
    close(theirs);
    throw;
  }
  close(theirs);
}

WorkerProcess::~WorkerProcess() {
  if (socket_ >= 0) {
    close(socket_);
  }
  if (id_ > 0) {
    wait(std::chrono::milliseconds(0));
  }
}

int WorkerProcess::take_socket() {
  return std::exchange(socket_, -1);
}

void WorkerProcess::start(
    const std::filesystem::path& program, const std::vector<std::string>& arguments, int socket
) {
  std::vector<std::string> texts = {program.filename().string()};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, socket, kSocket);
  close_others(files);
  const int code = posix_spawn(&id_, program.c_str(), &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (code != 0) {
    id_ = -1;
    throw Error(Fault::io, program.string(), "starting the worker failed: {}", std::strerror(code));
  }
}

void WorkerProcess::kill() {
  if (id_ > 0) {
    ::kill(id_, SIGKILL);
  }
}

ProcessEnd WorkerProcess::wait(
    std::chrono::milliseconds longest, std::chrono::milliseconds killed
) {
  std::optional<ProcessEnd> end = end_within(longest);
  if (!end) {
    kill();
    end = end_within(killed);
  }
  if (!end) {
    std::thread([id = id_] { waitpid(id, nullptr, 0); }).detach();  // whenever it goes
  }
  id_ = -1;
  return end.value_or(ProcessEnd{});
}

/// Nothing where it goes on.
std::optional<ProcessEnd> WorkerProcess::end_within(std::chrono::milliseconds longest) const {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  int status = 0;
  while (waitpid(id_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    }
    std::this_thread::sleep_for(kLook);
  }
  return end_of(status);
}

void follow_starter() {
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
#if defined(__linux__)
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  fcntl(WorkerProcess::kSocket, F_SETFD, FD_CLOEXEC);  // not for the decoders that it starts
  pollfd starter{WorkerProcess::kSocket, 0, 0};
  if (poll(&starter, 1, 0) > 0 && (starter.revents & (POLLHUP | POLLNVAL)) != 0) {
    throw Error(Fault::interrupted, "worker", "whoever started it has gone");
  }
}

}  // namespace whimbrel::http
