#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "server/answer_channel.h"
#include "server/body_ledger.h"
#include "server/frame_socket.h"
#include "server/handler_pool.h"
#include "server/router.h"

namespace whimbrel::http {

struct WorkerServerOptions {
  int handler_threads = 4;
  int waiting_handlers = 256;
  /// Of an answer; a longer one is 500. Beside it a frame has room for its description.
  size_t longest_answer = kLongestFrame - (size_t{1} << 20);
  size_t bodies_bytes = size_t{512} << 20;  // of requests that no handler has read
  /// Between two reports at least; where nothing changes, ten times as long.
  std::chrono::milliseconds report_time = std::chrono::milliseconds(100);
};

/// Answers requests that come over a socket from the process that holds the connections, and that
/// has checked access and limits.
class WorkerServer {
 public:
  /// Owns the descriptor. `report` is called by run().
  WorkerServer(
      int descriptor,
      std::vector<Route> routes,
      std::function<WorkerReport()> report,
      const WorkerServerOptions& options = {}
  );
  ~WorkerServer();
  WorkerServer(const WorkerServer&) = delete;
  WorkerServer& operator=(const WorkerServer&) = delete;

  /// Says that it is ready, answers, and returns when the other process has gone.
  void run();

 private:
  /// Requests whose answers aren't complete. Who answers one may outlive the server.
  struct Open {
    std::mutex mutex = {};
    std::map<uint64_t, std::shared_ptr<AnswerChannel>> channels = {};
    FrameSocket* socket = nullptr;  // none once the server is gone
    size_t longest_answer = 0;

    void send_output(uint64_t id);
    std::shared_ptr<AnswerChannel> take(uint64_t id);
  };

  void receive(Frame frame);
  void answer(uint64_t id, Request request);
  void send_reports();

  Router router_;
  std::function<WorkerReport()> report_;
  WorkerServerOptions options_;
  HandlerPool pool_;
  std::shared_ptr<BodyLedger> bodies_;
  std::shared_ptr<Open> open_ = std::make_shared<Open>();
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  FrameSocket socket_;  // last: its thread uses the others
};

}  // namespace whimbrel::http
