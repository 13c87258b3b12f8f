#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace whimbrel::http {

/// How a process ended; neither: it didn't, though it was killed.
struct ProcessEnd {
  std::optional<int> code = {};    // of exit
  std::optional<int> signal = {};  // that ended it

  /// `exit code 3`, `signal 9`, `killed, but not gone`.
  std::string text() const;
};

/// A program that we started, with one end of a socket.
class WorkerProcess {
 public:
  /// The descriptor of the socket in the started program; it has stdin, stdout and stderr of ours
  /// and nothing else.
  static constexpr int kSocket = 3;

  /// Throws Error(Fault::io) where it can't be started.
  WorkerProcess(const std::filesystem::path& program, const std::vector<std::string>& arguments);
  /// Kills it.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Gives our end of the socket away, once.
  int take_socket();

  void kill();

  /// Waits for its end, and kills it where that takes longer. One that is not gone within `killed`
  /// of that either, for the system waits for something (such as a driver), is left behind.
  ProcessEnd wait(
      std::chrono::milliseconds longest, std::chrono::milliseconds killed = std::chrono::seconds(10)
  );

 private:
  std::optional<ProcessEnd> end_within(std::chrono::milliseconds longest) const;
  void start(
      const std::filesystem::path& program, const std::vector<std::string>& arguments, int socket
  );

  pid_t id_ = -1;
  int socket_ = -1;
};

/// In the started program: leaves with whoever started it, whose signals it ignores, for it is told
/// through the socket when to stop. Throws Error(Fault::interrupted) where that has gone already.
void follow_starter();

}  // namespace whimbrel::http
