#include "server/connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace whimbrel::http {

namespace asio = boost::asio;

namespace {

/// How much a client may send ahead of an answer: more, and we could no longer see it leave.
constexpr size_t kMostAhead = size_t{64} << 10;
constexpr std::chrono::seconds kLingerTime{2};
/// For last words when the server stops.
constexpr std::chrono::seconds kStopTime{1};

CloseReason reason_of(Outcome outcome) {
  if (outcome == Outcome::slow_reader) {
    return CloseReason::slow_reader;
  }
  return outcome == Outcome::stopped ? CloseReason::server_stops : CloseReason::client_left;
}

ApiError too_slow(const char* what) {
  return {
      .kind = ErrorKind::timeout,
      .message = std::string("got no whole ") + what + " in time",
      .code = "request_timeout"
  };
}

}  // namespace

Connection::Connection(
    std::shared_ptr<ServerCore> core,
    std::unique_ptr<Transport> transport,
    const asio::any_io_executor& strand,
    std::string client
)
    : core_(std::move(core)),
      transport_(std::move(transport)),
      strand_(strand),
      client_(std::move(client)),
      scanner_(core_->options.limits),
      input_deadline_(strand),
      write_deadline_(strand),
      full_deadline_(strand),
      ping_deadline_(strand) {}

Connection::~Connection() {
  core_->remove(this);
}

template <typename Step>
void Connection::on_strand(Step step) {
  asio::post(strand_, [self = shared_from_this(), step] { step(*self); });
}

void Connection::start() {
  core_->add(shared_from_this());
  on_strand([](Connection& connection) {
    const std::shared_ptr<Connection> self = connection.shared_from_this();
    self->input_deadline_.set(self->core_->options.limits.header_time, [self] {
      self->on_deadline();
    });
    self->transport_->handshake([self](const Transport::ErrorCode& error) {
      if (error) {
        self->close(Outcome::client_left);
      } else {
        self->await_request(self->core_->options.limits.header_time);
      }
    });
  });
}

void Connection::start_refused() {
  core_->add(shared_from_this());
  on_strand([](Connection& connection) {
    connection.refuse(
        {.kind = ErrorKind::unavailable,
         .message = "got more connections than the server takes; try again later",
         .code = "too_many_connections",
         .retry_after = 1}
    );
  });
}

void Connection::drain() {
  on_strand([](Connection& connection) {
    connection.keep_alive_ = false;
    if (connection.stage_ == Stage::idle || connection.stage_ == Stage::handshake) {
      connection.close(Outcome::stopped);
    }
  });
}

void Connection::stop() {
  on_strand([](Connection& connection) {
    connection.stopping_ = true;
    connection.keep_alive_ = false;
    const bool has_last_words = connection.stage_ == Stage::answering;
    if (!has_last_words) {
      connection.close(Outcome::stopped);
      return;
    }
    const std::shared_ptr<Connection> self = connection.shared_from_this();
    self->input_deadline_.set(kStopTime, [self] { self->close(Outcome::stopped); });
    if (self->current_->channel) {
      self->current_->channel->close(CloseReason::server_stops);
      self->flush();
    }
  });
}

void Connection::await_request(std::chrono::milliseconds time) {
  if (stage_ == Stage::closed) {
    return;
  }
  if (core_->draining) {
    close(Outcome::stopped);
    return;
  }
  stage_ = Stage::idle;
  scanner_ = HeadScanner(core_->options.limits);
  input_deadline_.set(time, [self = shared_from_this()] { self->on_deadline(); });
  if (input_.empty()) {
    read_more();
  } else {
    on_input();
  }
}

void Connection::read_more() {
  if (reading_ || stage_ == Stage::closed) {
    return;
  }
  if (input_ended_) {
    on_input_end();
    return;
  }
  reading_ = true;
  transport_->read_some(
      asio::buffer(piece_),
      [self = shared_from_this()](const Transport::ErrorCode& error, size_t bytes) {
        self->reading_ = false;
        if (self->stage_ == Stage::closed) {
          return;
        }
        if (error) {
          self->input_ended_ = true;
          self->on_input_end();
          return;
        }
        self->input_.append(self->piece_.data(), bytes);
        self->on_input();
      }
  );
}

void Connection::on_input() {
  switch (stage_) {
    case Stage::idle:
      stage_ = Stage::head;
      input_deadline_.set(core_->options.limits.header_time, [self = shared_from_this()] {
        self->on_deadline();
      });
      read_head();
      break;
    case Stage::head:
      read_head();
      break;
    case Stage::body:
      read_body();
      break;
    case Stage::answering:
      if (current_->channel && input_.size() > kMostAhead) {
        close(Outcome::client_left);
        return;
      }
      if (!current_->channel) {
        input_.clear();
      }
      read_more();
      break;
    case Stage::lingering:
      input_.clear();
      read_more();
      break;
    case Stage::handshake:
    case Stage::closed:
      break;
  }
}

void Connection::on_input_end() {
  // One that only stopped sending may still read the rest of its answer, or why it was refused.
  const bool may_read = stage_ == Stage::answering && (current_->complete || !current_->channel);
  if (!may_read) {
    close(Outcome::client_left);
  }
}

void Connection::on_deadline() {
  if (stage_ == Stage::head) {
    refuse(too_slow("header"));
  } else if (stage_ == Stage::body) {
    refuse(too_slow("body"));
  } else {
    close(Outcome::client_left);
  }
}

void Connection::read_head() {
  try {
    const std::optional<size_t> size = scanner_.scan(input_);
    if (!size) {
      read_more();
      return;
    }
    const std::string head = input_.substr(0, *size);
    input_.erase(0, *size);
    begin_request(parse_request_head(head, core_->options.limits), head);
  } catch (const std::exception& exception) {
    refuse(error_of(exception));
  }
}

void Connection::read_body() {
  try {
    BodyReader& body = *current_->body;
    input_.erase(0, body.put(input_));
    if (!current_->lease.grow_to(body.size())) {
      throw ApiException(no_room_for_body());
    }
    if (!body.done()) {
      wait_for_body();
      return;
    }
    current_->entry.body_bytes = body.size();
    current_->request.body = body.take();
    dispatch();
  } catch (const std::exception& exception) {
    refuse(error_of(exception));
  }
}

void Connection::wait_for_body() {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      body_end_ - std::chrono::steady_clock::now()
  );
  input_deadline_.set(
      std::clamp(left, std::chrono::milliseconds(0), core_->options.limits.body_idle_time),
      [self = shared_from_this()] { self->on_deadline(); }
  );
  read_more();
}

void Connection::linger() {
  if (input_ended_) {
    close(Outcome::answered);
    return;
  }
  stage_ = Stage::lingering;
  input_.clear();
  input_deadline_.set(kLingerTime, [self = shared_from_this()] { self->on_deadline(); });
  transport_->end_sending([self = shared_from_this()](const Transport::ErrorCode&) {});
  read_more();
}

/// The outcome of the open request where the connection ends with `outcome`.
Outcome Connection::ended_by(Outcome outcome) const {
  if (current_->entry.outcome == Outcome::refused) {
    return Outcome::refused;
  }
  const bool is_begun = current_->channel && current_->channel->begun();
  const bool is_early = outcome == Outcome::client_left && !is_begun;
  return is_early ? Outcome::client_left_waiting : outcome;
}

void Connection::close(Outcome outcome) {
  if (stage_ == Stage::closed) {
    return;
  }
  stage_ = Stage::closed;
  for (Deadline* deadline :
       {&input_deadline_, &write_deadline_, &full_deadline_, &ping_deadline_}) {
    deadline->cancel();
  }
  transport_->close();
  if (current_) {
    const std::shared_ptr<AnswerChannel> channel = current_->channel;
    note_answer();
    log(ended_by(outcome));
    if (channel) {
      channel->close(reason_of(outcome));
    }
  }
  core_->remove(this);
}

/// What those who answered say for the log.
void Connection::note_answer() {
  if (!current_->channel) {
    return;
  }
  const std::string failure = current_->channel->failure();
  if (!failure.empty()) {
    current_->entry.failure = escape_for_log(failure);
  }
  std::vector<std::string> ignored = current_->channel->ignored();
  for (std::string& name : ignored) {
    name = escape_for_log(name);
  }
  current_->entry.ignored = std::move(ignored);
}

void Connection::log(Outcome outcome) {
  Current& current = *current_;
  current.entry.outcome = outcome;
  current.entry.request_id = current.frame.request_id;
  current.entry.milliseconds = current.watch.milliseconds();
  const std::string route = current.match.allow.empty() ? "other" : current.request.path;
  const AccessLogEntry entry = current.entry;
  current_.reset();
  core_->log(entry, route);
}

}  // namespace whimbrel::http
