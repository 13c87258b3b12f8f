#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/cancelled.h"

namespace whimbrel {

/// The program `name` that decodes something: beside this one, or in ../libexec/whimbrel of an
/// installation. Throws Error(Fault::io) where it is at neither place.
std::filesystem::path find_decoder(std::string_view name);

/// How long a decoder is waited for.
struct Patience {
  double seconds = 0;        // of wall time, in which all has to be done
  Cancelled cancelled = {};  // or until nobody waits for the result
};

/// What a decoder is started for.
struct DecoderJob {
  std::string_view medium;  // "video": what error texts call it
  std::string where;        // names the request in error texts
  Patience patience = {};
};

/// A helper process that takes part in one request, and the socket to it. It gets that socket as
/// stdin and stdout, no environment and nothing else; it is killed and gone with this object.
class DecoderProcess {
 public:
  /// Starts `program`. Throws Error(Fault::io) where it can't be started.
  DecoderProcess(const std::filesystem::path& program, DecoderJob job);
  ~DecoderProcess();
  DecoderProcess(const DecoderProcess&) = delete;
  DecoderProcess& operator=(const DecoderProcess&) = delete;

  /// Both throw Error(Fault::input) where the process ends early, breaks a rule of its sandbox, or
  /// takes too long, Error(Fault::interrupted) where it was cancelled, and Error(Fault::io) where
  /// it can't be loaded or locked in.
  void send(const void* data, size_t size);
  void receive(void* data, size_t size);

 private:
  using Clock = std::chrono::steady_clock;

  void start(int socket);
  void require_innocent(int status) const;
  void wait_for(short events);
  [[noreturn]] void report_end();
  [[noreturn]] void throw_too_long() const;

  std::filesystem::path program_;
  DecoderJob job_;
  Clock::time_point deadline_;
  pid_t child_ = -1;
  int socket_ = -1;
};

}  // namespace whimbrel
