#include "cli/pull_progress.h"

#include <fmt/format.h>

#include "cli/terminal.h"
#include "engine/memory_estimate.h"

namespace whimbrel {

namespace {

constexpr int kStep = 10;  // percent between lines where nothing is redrawn
constexpr std::string_view kWipe = "\r\x1b[K";

int percent_of(uint64_t done, uint64_t total) {
  return total == 0 ? 100 : static_cast<int>(done * 100 / total);
}

}  // namespace

PullProgress::PullProgress(bool enabled)
    : enabled_(enabled), in_place_(enabled && stderr_is_terminal()) {}

PullProgress::~PullProgress() {
  if (drawn_) {
    write_stderr(kWipe);
  }
}

PullEvents PullProgress::events() {
  PullEvents events;
  // What holds a pull up is told in any case.
  events.on_wait = [this](const std::string& file) {
    say(fmt::format("{}: another process is fetching it; waiting", file));
  };
  events.on_retry = [this](const std::string& file, const std::string& reason) {
    say(fmt::format("{}: {}; trying again from {}", file, reason, size_text(present_)));
  };
  if (enabled_) {
    events.on_plan = [this](uint64_t total, uint64_t) { begin(total); };
    events.on_file = [this](const std::string& file, uint64_t size, uint64_t present) {
      begin_file(file, size, present);
    };
  }
  events.on_bytes = [this](uint64_t present) { update(present); };
  return events;
}

void PullProgress::begin(uint64_t total) {
  total_ = total;
}

void PullProgress::begin_file(const std::string& file, uint64_t size, uint64_t present) {
  finished_ += size_;
  file_ = file;
  size_ = size;
  if (present == 0) {
    say(fmt::format("{}: {}", file, size_text(size)));
  } else if (present < size) {
    say(fmt::format("{}: going on at {} of {}", file, size_text(present), size_text(size)));
  } else {
    say(fmt::format("{}: {}, there already", file, size_text(size)));
  }
  update(present);
}

void PullProgress::update(uint64_t present) {
  present_ = present;
  if (!enabled_) {
    return;
  }
  const uint64_t done = finished_ + present;
  const int percent = percent_of(done, total_);
  if (in_place_ && (percent != shown_ || !drawn_)) {
    redraw(done, percent);
  } else if (!in_place_ && percent / kStep > shown_ / kStep) {
    say(fmt::format("{}% of {}", percent / kStep * kStep, size_text(total_)));
  } else {
    return;
  }
  shown_ = percent;
}

void PullProgress::redraw(uint64_t done, int percent) {
  const Style style = stderr_style();
  write_stderr(
      fmt::format(
          "{}{}{} {}%, all {}% ({} of {}){}",
          kWipe,
          style.dim,
          file_,
          percent_of(present_, size_),
          percent,
          size_text(done),
          size_text(total_),
          style.reset
      )
  );
  drawn_ = true;
}

void PullProgress::say(const std::string& line) {
  write_stderr(fmt::format("{}{}\n", drawn_ ? kWipe : "", line));
  drawn_ = false;
}

}  // namespace whimbrel
