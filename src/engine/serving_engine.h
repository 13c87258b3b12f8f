#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "engine/serving_core.h"

namespace whimbrel {

/// Answers requests from many threads on one thread of its own, which alone uses the model.
class ServingEngine {
 public:
  /// The model and tokenizer outlive it.
  ServingEngine(
      const Model& model,
      const ModelShape& shape,
      const Tokenizer& tokenizer,
      const ServingOptions& options
  );

  /// Ends all requests that are left, as if they were cancelled.
  ~ServingEngine();

  ServingEngine(const ServingEngine&) = delete;
  ServingEngine& operator=(const ServingEngine&) = delete;

  /// Takes a request; its events come from another thread, perhaps before this returns. Returns its
  /// number, nothing where too many requests wait. Throws Error(Fault::input) where prompt and
  /// answer are longer than the context or never fit into memory, Error(Fault::usage) on options
  /// and stop texts out of range.
  std::optional<uint64_t> submit(Request request, EventSink sink);

  /// Whether so many requests wait that another would not be taken.
  bool is_full() const;

  /// Bytes that a request needs while it is computed.
  uint64_t bytes_of(const Request& request) const { return core_.bytes_of(request); }

  /// Ends a request behind the step, or the part of a tower, that runs. Does nothing where it has
  /// ended.
  void cancel(uint64_t id);

  /// As it was behind the last step, or part of a tower.
  ServingStatus status() const;

 private:
  void require_answerable(const Request& request) const;
  void serve(const std::stop_token& stop);
  bool fits(const ServingCore::Queue& queue, const Prompt& added) const;
  bool wait_for_work(const std::stop_token& stop);
  void take_inbox();
  void publish();

  ServingOptions options_;
  ServingCore core_;  // of the serving thread
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  // Guarded by the mutex:
  std::vector<std::shared_ptr<RunningRequest>> added_;
  std::vector<uint64_t> cancelled_;
  ServingStatus status_;
  ServingCore::Queue queue_ = {};  // those that were just added included
  uint64_t next_id_ = 1;
  std::jthread thread_;
};

}  // namespace whimbrel
