#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "server/worker_link.h"
#include "server/worker_process.h"

namespace whimbrel::http {

struct WorkerOptions {
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  /// A worker that finishes no step of its work, or gives no sign, for this long is killed; 0: none
  /// is.
  std::chrono::milliseconds stuck_time = std::chrono::seconds(600);
  /// Sentences for whoever runs the server; from any thread.
  std::function<void(std::string)> tell = {};
};

struct WorkerStatus {
  bool ready = false;
  uint64_t restarts = 0;
  WorkerReport report = {};  // the last one, perhaps of a worker that is gone
};

/// The answer while no worker is ready.
ApiError model_is_loading();

/// How long to wait before a worker is started again, by how many died within the last minute: the
/// first three are replaced at once.
std::chrono::milliseconds restart_delay(int deaths);

/// Keeps one worker process running: starts it, hands requests on, and starts it again when it has
/// died. What it was answering then fails; nothing else does.
class WorkerSupervisor {
 public:
  explicit WorkerSupervisor(WorkerOptions options);
  /// As stop().
  ~WorkerSupervisor();
  WorkerSupervisor(const WorkerSupervisor&) = delete;
  WorkerSupervisor& operator=(const WorkerSupervisor&) = delete;

  void start();

  /// Hands a request on. Throws ApiException (unavailable) while there is no worker that is ready.
  void forward(const std::shared_ptr<Exchange>& exchange);

  WorkerStatus status() const;

  /// How the first worker ended, where it was never ready: a second wouldn't be, either.
  std::optional<ProcessEnd> failed_start() const;

  /// Ends the worker. Idempotent.
  void stop();

 private:
  struct Shared;
  struct Life;
  using LifePtr = std::shared_ptr<Life>;
  using LinkPtr = std::shared_ptr<WorkerLink>;

  void serve();
  LinkPtr link_to(WorkerProcess& process, const LifePtr& life);
  bool outlive(Life& life);
  void bury(const LifePtr& life, WorkerLink& link, WorkerProcess& process, bool is_stuck);
  void pause(std::chrono::milliseconds time);
  void tell(std::string sentence) const;

  WorkerOptions options_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::chrono::steady_clock::time_point> deaths_;  // of the thread
  std::thread thread_;
};

}  // namespace whimbrel::http
