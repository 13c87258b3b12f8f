#include "server/worker_supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace whimbrel::http {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr int kAtOnce = 3;
constexpr int kMostDoublings = 6;
constexpr seconds kMemory{60};
/// Between two looks at how a worker is.
constexpr milliseconds kLook{250};
/// A look that comes so much too late was held up with everything else.
constexpr milliseconds kOverslept{2000};
/// A worker whose socket has ended ends itself within this time, or is killed.
constexpr milliseconds kLastBreath{2000};

ApiError died() {
  return {
      .kind = ErrorKind::bad_gateway,
      .message =
          "the process that answers ended while it worked on this request; another is being "
          "started",
      .code = "worker_died"
  };
}

}  // namespace

/// What is seen of a worker. The threads of its link share it, so it may not own the link.
struct WorkerSupervisor::Life {
  bool ready = false;
  bool ended = false;
  Clock::time_point last_sign = Clock::now();
  Clock::time_point last_step = Clock::now();

  void note(const WorkerReport& before, const WorkerReport& now);
  void renew();
  bool is_stuck(milliseconds longest) const;
};

/// What the supervisor's thread, those of links and those of clients share.
struct WorkerSupervisor::Shared {
  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool stopping = false;
  LinkPtr link = {};  // to the worker that takes requests
  WorkerStatus status = {};
  std::optional<ProcessEnd> failed_start = {};
};

void WorkerSupervisor::Life::note(const WorkerReport& before, const WorkerReport& now) {
  last_sign = Clock::now();
  if (now.running == 0 || now.steps != before.steps) {
    last_step = last_sign;
  }
}

void WorkerSupervisor::Life::renew() {
  last_sign = Clock::now();
  last_step = last_sign;
}

bool WorkerSupervisor::Life::is_stuck(milliseconds longest) const {
  return ready && longest.count() > 0 && Clock::now() - std::min(last_sign, last_step) > longest;
}

ApiError model_is_loading() {
  return {
      .kind = ErrorKind::unavailable,
      .message = "the model is being loaded; try again in a moment",
      .code = "model_loading",
      .retry_after = 2
  };
}

milliseconds restart_delay(int deaths) {
  if (deaths <= kAtOnce) {
    return milliseconds(0);
  }
  return std::min<milliseconds>(
      seconds(1 << std::min(deaths - kAtOnce - 1, kMostDoublings)), kMemory
  );
}

WorkerSupervisor::WorkerSupervisor(WorkerOptions options)
    : options_(std::move(options)), shared_(std::make_shared<Shared>()) {}

WorkerSupervisor::~WorkerSupervisor() {
  stop();
}

void WorkerSupervisor::start() {
  thread_ = std::thread([this] { serve(); });
}

void WorkerSupervisor::stop() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopping = true;
  }
  shared_->changed.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void WorkerSupervisor::forward(const std::shared_ptr<Exchange>& exchange) {
  LinkPtr link;
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->status.ready) {
      throw ApiException(model_is_loading());
    }
    link = shared_->link;
  }
  link->forward(exchange);
}

WorkerStatus WorkerSupervisor::status() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->status;
}

std::optional<ProcessEnd> WorkerSupervisor::failed_start() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->failed_start;
}

void WorkerSupervisor::tell(std::string sentence) const {
  if (options_.tell) {
    options_.tell(std::move(sentence));
  }
}

void WorkerSupervisor::serve() {
  const auto goes_on = [this] {
    const std::lock_guard lock(shared_->mutex);
    return !shared_->stopping && !shared_->failed_start;
  };
  while (goes_on()) {
    try {
      WorkerProcess process(options_.program, options_.arguments);
      const auto life = std::make_shared<Life>();
      const LinkPtr link = link_to(process, life);
      const bool is_stuck = outlive(*life);
      bury(life, *link, process, is_stuck);
    } catch (const std::exception& error) {  // such as no descriptor left for it
      tell(error.what());
      deaths_.push_back(Clock::now());
    }
    std::erase_if(deaths_, [](Clock::time_point at) { return Clock::now() - at > kMemory; });
    pause(restart_delay(static_cast<int>(deaths_.size())));
  }
}

WorkerSupervisor::LinkPtr WorkerSupervisor::link_to(WorkerProcess& process, const LifePtr& life) {
  const auto change = [life, shared = shared_](const auto& what) {
    const std::lock_guard lock(shared->mutex);
    what(*life, *shared);
    shared->changed.notify_all();
  };
  WorkerLink::Listener listener;
  listener.ready = [change] {
    change([](Life& held, Shared& shared) {
      held.ready = true;
      held.renew();
      shared.status.ready = !shared.stopping && shared.link != nullptr;
    });
  };
  listener.report = [change](const WorkerReport& report) {
    change([&report](Life& held, Shared& shared) {
      held.note(shared.status.report, report);
      shared.status.report = report;
    });
  };
  listener.ended = [change] {
    change([](Life& held, Shared& shared) {
      held.ended = true;
      shared.status.ready = false;
    });
  };
  const auto link = std::make_shared<WorkerLink>(process.take_socket(), std::move(listener));
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->link = link;
  }
  link->start();
  return link;
}

/// Returns when the worker has to go or has gone; true where it did nothing for too long.
bool WorkerSupervisor::outlive(Life& life) {
  std::unique_lock lock(shared_->mutex);
  while (!shared_->stopping && !life.ended) {
    const Clock::time_point before = Clock::now();
    shared_->changed.wait_for(lock, kLook);
    // Where this process itself was stopped for a while, the worker may have been, too.
    if (Clock::now() - before > kLook + kOverslept) {
      life.renew();
    }
    if (life.is_stuck(options_.stuck_time)) {
      return true;
    }
  }
  return false;
}

void WorkerSupervisor::bury(
    const LifePtr& life, WorkerLink& link, WorkerProcess& process, bool is_stuck
) {
  Life gone;
  bool was_asked = false;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->status.ready = false;
    shared_->link.reset();
    was_asked = shared_->stopping;
    gone = *life;
  }
  const size_t failed = link.fail_all(died());
  const ProcessEnd end = process.wait(gone.ended ? kLastBreath : milliseconds(0));
  if (was_asked) {
    return;
  }
  if (!gone.ready && deaths_.empty()) {
    const std::lock_guard lock(shared_->mutex);
    shared_->failed_start = end;
    return;
  }
  deaths_.push_back(Clock::now());
  tell(
      fmt::format(
          "the worker {} ({}); {} open requests failed; starting another",
          is_stuck ? "did nothing for too long and was ended" : "ended",
          end.text(),
          failed
      )
  );
  const std::lock_guard lock(shared_->mutex);
  ++shared_->status.restarts;
}

void WorkerSupervisor::pause(milliseconds time) {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait_for(lock, time, [this] { return shared_->stopping; });
}

}  // namespace whimbrel::http
