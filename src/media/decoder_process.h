#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

namespace whimbrel {

/// A helper process that takes part in one request, and the socket to it. It gets that socket as
/// stdin and stdout, no environment and nothing else; it is killed and gone with this object.
class DecoderProcess {
 public:
  /// Starts `program`. All that follows has to be done in `seconds`. `where` names the request in
  /// error texts. Throws Error(Fault::io) where the program can't be started.
  DecoderProcess(const std::filesystem::path& program, double seconds, std::string where);
  ~DecoderProcess();
  DecoderProcess(const DecoderProcess&) = delete;
  DecoderProcess& operator=(const DecoderProcess&) = delete;

  /// Both throw Error(Fault::input) where the process ends early, breaks a rule of its sandbox, or
  /// takes too long, and Error(Fault::io) where it can't be loaded or locked in.
  void send(const void* data, size_t size);
  void receive(void* data, size_t size);

 private:
  using Clock = std::chrono::steady_clock;

  void start(int socket);
  void wait_for(short events);
  [[noreturn]] void report_end();

  std::filesystem::path program_;
  std::string where_;
  Clock::time_point deadline_;
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace whimbrel
