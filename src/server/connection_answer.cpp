#include <algorithm>
#include <utility>

#include "server/connection.h"
#include "server/sse.h"

namespace whimbrel::http {

namespace {

constexpr size_t kPiece = size_t{64} << 10;
/// A stream this many times beyond its buffer's bound isn't given time any more.
constexpr size_t kFarBeyond = 64;

}  // namespace

void Connection::refuse(const ApiError& error) {
  begin_record();
  Current& current = *current_;
  current.body.reset();
  current.lease.release();
  current.entry.outcome = Outcome::refused;
  keep_alive_ = false;
  stage_ = Stage::answering;
  input_deadline_.cancel();
  send_whole(error_response(error, current.match.shape));
  read_more();
}

void Connection::send_whole(const Response& response) {
  Current& current = *current_;
  current.frame.framing = response.status == 204 ? Framing::no_body : Framing::length;
  current.frame.keep_alive = keep_alive_;
  current.entry.status = response.status;
  current.complete = true;
  std::string bytes = response_head(response, current.frame);
  if (!current.is_head && current.frame.framing == Framing::length) {
    bytes += response.body;
  }
  send(bytes);
}

void Connection::begin_stream(const StreamHead& head) {
  Current& current = *current_;
  if (current.is_http_1_0) {
    keep_alive_ = false;
  }
  current.frame.framing = current.is_http_1_0 ? Framing::until_close : Framing::chunked;
  current.frame.keep_alive = keep_alive_;
  current.entry.status = 200;
  current.is_event_stream = head.content_type.starts_with("text/event-stream");
  Response response;
  response.content_type = head.content_type;
  response.fields = head.fields;
  if (current.is_event_stream) {
    response.fields.push_back({"Cache-Control", "no-cache"});
    response.fields.push_back({"X-Accel-Buffering", "no"});
  }
  send(response_head(response, current.frame));
  current.complete = current.is_head;
}

void Connection::flush() {
  if (stage_ != Stage::answering || !current_->channel) {
    return;
  }
  watch_reader();
  if (stage_ == Stage::closed || writing_ || current_->complete) {
    return;
  }
  const AnswerChannel::Output output = current_->channel->take(kPiece);
  try {
    send_output(output);
  } catch (const std::logic_error& error) {
    current_->entry.failure = escape_for_log(error.what());
    send_whole(error_response(error_of(error), current_->match.shape));
  }
  if (!writing_ && current_->broken) {
    close(stopping_ ? Outcome::stopped : Outcome::failed);
  }
}

void Connection::send_output(const AnswerChannel::Output& output) {
  if (output.response) {
    send_whole(*output.response);
    return;
  }
  if (output.stream) {
    begin_stream(*output.stream);
  }
  Current& current = *current_;
  if (current.complete) {
    return;
  }
  const bool is_chunked = current.frame.framing == Framing::chunked;
  if (!output.bytes.empty()) {
    send(is_chunked ? as_chunk(output.bytes) : output.bytes);
  }
  current.broken = output.broken;
  if (output.finished) {
    current.complete = true;
    send(is_chunked ? kLastChunk : "");
  }
  expect_ping();
}

void Connection::watch_reader() {
  const size_t limit = core_->options.limits.stream_buffer_bytes;
  const size_t waiting = current_->channel->waiting();
  if (waiting <= limit) {
    full_deadline_.cancel();
  } else if (waiting / kFarBeyond > limit) {
    close(Outcome::slow_reader);
  } else if (!full_deadline_.is_set()) {
    full_deadline_.set(core_->options.limits.slow_reader_time, [self = shared_from_this()] {
      self->close(Outcome::slow_reader);
    });
  }
}

void Connection::expect_ping() {
  const std::chrono::milliseconds time = core_->options.limits.ping_time;
  if (time.count() == 0 || !current_->is_event_stream || current_->complete) {
    ping_deadline_.cancel();
    return;
  }
  ping_deadline_.set(time, [self = shared_from_this()] {
    if (!self->writing_) {
      const std::string ping = sse_comment("ping");
      const bool is_chunked = self->current_->frame.framing == Framing::chunked;
      self->send(is_chunked ? as_chunk(ping) : ping);
    }
    self->expect_ping();
  });
}

void Connection::send(std::string_view bytes) {
  outgoing_ += bytes;
  if (!writing_ && (!outgoing_.empty() || (current_ && current_->complete))) {
    writing_ = true;
    send_next();
  }
}

void Connection::send_next() {
  const std::string_view piece = std::string_view(outgoing_).substr(sent_, kPiece);
  write_deadline_.set(core_->options.limits.slow_reader_time, [self = shared_from_this()] {
    self->close(Outcome::slow_reader);
  });
  transport_->write(
      boost::asio::buffer(piece.data(), piece.size()),
      [self = shared_from_this()](const Transport::ErrorCode& error, size_t bytes) {
        if (self->stage_ == Stage::closed) {
          return;
        }
        if (error) {
          self->close(Outcome::client_left);
          return;
        }
        self->sent_ += bytes;
        if (self->current_) {
          self->current_->entry.sent_bytes += bytes;
        }
        if (self->sent_ < self->outgoing_.size()) {
          self->send_next();
        } else {
          self->on_sent();
        }
      }
  );
}

void Connection::on_sent() {
  writing_ = false;
  sent_ = 0;
  outgoing_.clear();
  write_deadline_.cancel();
  if (stage_ != Stage::answering) {
    return;
  }
  if (current_->complete) {
    finish_answer();
  } else {
    flush();
  }
}

void Connection::finish_answer() {
  const std::shared_ptr<AnswerChannel> channel = current_->channel;
  full_deadline_.cancel();
  ping_deadline_.cancel();
  note_answer();
  if (channel) {
    channel->detach();
  }
  const AccessLogEntry& entry = current_->entry;
  log(entry.failure.empty() ? entry.outcome : Outcome::failed);
  if (keep_alive_) {
    await_request(core_->options.limits.keep_alive_time);
  } else {
    linger();
  }
}

}  // namespace whimbrel::http
