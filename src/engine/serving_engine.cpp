#include "engine/serving_engine.h"

#include <algorithm>

#include "base/error.h"
#include "engine/memory_estimate.h"

namespace whimbrel {

ServingEngine::ServingEngine(
    const Model& model,
    const ModelShape& shape,
    const Tokenizer& tokenizer,
    const ServingOptions& options
)
    : options_(options),
      core_(model, shape, tokenizer, options),
      status_(core_.status()),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

ServingEngine::~ServingEngine() {
  thread_.request_stop();
  wake_.notify_all();
}

std::optional<uint64_t> ServingEngine::submit(Request request, EventSink sink) {
  require_answerable(request);
  auto running = std::make_shared<RunningRequest>();
  running->key = prefix_key(request.prompt);
  running->request = std::move(request);
  running->sink = std::move(sink);
  {
    const std::lock_guard lock(mutex_);
    ServingCore::Queue queue = queue_;
    queue.add(running->request.prompt);
    if (!fits(queue, running->request.prompt)) {
      return std::nullopt;
    }
    running->id = next_id_++;
    queue_ = queue;
    added_.push_back(running);
  }
  wake_.notify_one();
  return running->id;
}

/// One request may wait however large it is: it fits into memory. Texts may wait behind it.
bool ServingEngine::fits(const ServingCore::Queue& queue, const Prompt& added) const {
  const bool is_small = queue.tokens <= options_.queue_tokens &&
                        (queue.bytes <= options_.queue_memory || added.media.empty());
  return queue.requests <= options_.queue && (queue.requests == 1 || is_small);
}

bool ServingEngine::is_full() const {
  const std::lock_guard lock(mutex_);
  return queue_.requests >= options_.queue;
}

void ServingEngine::cancel(uint64_t id) {
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(id);
  }
  wake_.notify_one();
}

ServingStatus ServingEngine::status() const {
  const std::lock_guard lock(mutex_);
  ServingStatus status = status_;
  status.queued = queue_.requests;
  return status;
}

void ServingEngine::require_answerable(const Request& request) const {
  const int tokens = request.prompt.tokens();
  if (request.max_tokens < 1 || tokens < 1 || request.max_tokens > options_.context - tokens) {
    throw Error(
        Fault::input,
        "context",
        "got a prompt of {} tokens and {} for the answer, expected at most {} together",
        tokens,
        request.max_tokens,
        options_.context
    );
  }
  require_valid(request.sampling);
  const bool biased = std::ranges::any_of(request.sampling.logit_bias, [](const auto& bias) {
    return bias.first < 0;
  });
  if (request.choices < 1 || request.top_logprobs.value_or(0) < 0 || biased) {
    throw Error(Fault::usage, "request", "got a negative number, expected choices and ids from 0");
  }
  if (std::ranges::any_of(request.stops, &std::string::empty)) {
    throw Error(Fault::usage, "stop", "got an empty stop text, expected at least one character");
  }
  const uint64_t bytes = core_.bytes_of(request);
  if (bytes > options_.memory) {
    throw Error(
        Fault::input,
        "memory",
        "got a request that needs {}, expected at most {}; ask for a shorter answer, fewer answers "
        "or smaller pictures",
        size_text(bytes),
        size_text(options_.memory)
    );
  }
}

void ServingEngine::serve(const std::stop_token& stop) {
  const RequestFailed stopped{
      .fault = Fault::interrupted, .message = "[request] cancelled: the engine stops"
  };
  const auto breathe = [&] {
    take_inbox();
    if (stop.stop_requested()) {
      core_.end_all(stopped);
    }
    publish();
  };
  while (wait_for_work(stop)) {
    take_inbox();
    core_.admit();
    publish();
    core_.step(breathe);
    publish();
  }
  take_inbox();
  core_.end_all(stopped);
  publish();
}

/// Waits until there is something to do; false where it is time to stop.
bool ServingEngine::wait_for_work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, stop, [this] { return core_.busy() || !added_.empty() || !cancelled_.empty(); });
  return !stop.stop_requested();
}

/// What came and went since the last time.
void ServingEngine::take_inbox() {
  std::vector<std::shared_ptr<RunningRequest>> added;
  std::vector<uint64_t> cancelled;
  {
    const std::lock_guard lock(mutex_);
    std::swap(added, added_);
    std::swap(cancelled, cancelled_);
  }
  for (std::shared_ptr<RunningRequest>& request : added) {
    core_.add(std::move(request));
  }
  for (const uint64_t id : cancelled) {
    core_.cancel(id);
  }
}

void ServingEngine::publish() {
  const std::lock_guard lock(mutex_);
  status_ = core_.status();
  queue_ = core_.queue();
  for (const std::shared_ptr<RunningRequest>& request : added_) {
    queue_.add(request->request.prompt);
  }
}

}  // namespace whimbrel
