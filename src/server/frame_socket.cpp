#include "server/frame_socket.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace whimbrel::http {

namespace asio = boost::asio;
using boost::system::error_code;

FrameSocket::FrameSocket(int descriptor, Listener listener)
    : listener_(std::move(listener)),
      io_(1),
      socket_(io_, asio::local::stream_protocol(), descriptor) {}

FrameSocket::~FrameSocket() {
  if (thread_.joinable()) {
    asio::post(io_, [this] {
      ended_ = true;  // nobody listens any more
      error_code ignored;
      socket_.close(ignored);
    });
    thread_.join();
  }
}

void FrameSocket::start() {
  thread_ = std::thread([this] {
    const auto work = asio::make_work_guard(io_);
    while (!ended_) {
      io_.run_one();
    }
    io_.poll();
  });
  asio::post(io_, [this] { read_head(); });
}

void FrameSocket::read_head() {
  asio::async_read(socket_, asio::buffer(head_), [this](const error_code& error, size_t /*bytes*/) {
    if (error) {
      end();
      return;
    }
    try {
      read_payload(decode_head({head_.data(), head_.size()}));
    } catch (const std::exception&) {
      end();
    }
  });
}

void FrameSocket::read_payload(const FrameHead& head) {
  incoming_ = {head.kind, head.id, std::string(head.payload_bytes, '\0')};
  asio::async_read(
      socket_, asio::buffer(incoming_.payload), [this](const error_code& error, size_t /*bytes*/) {
        if (error) {
          end();
          return;
        }
        take(std::exchange(incoming_, {}));
      }
  );
}

void FrameSocket::take(Frame frame) {
  try {
    listener_.receive(std::move(frame));
  } catch (const std::exception&) {
    end();
    return;
  }
  if (!ended_) {
    read_head();
  }
}

void FrameSocket::send(Frame frame) {
  if (ended_) {
    return;
  }
  std::string head = encode_head(frame);
  waiting_ += head.size() + frame.payload.size();
  asio::post(io_, [this, head = std::move(head), payload = std::move(frame.payload)]() mutable {
    if (ended_) {
      return;
    }
    outgoing_.emplace_back(std::move(head), std::move(payload));
    if (outgoing_.size() == 1) {
      write_next();
    }
  });
}

void FrameSocket::write_next() {
  const auto& [head, payload] = outgoing_.front();
  const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head), asio::buffer(payload)};
  asio::async_write(socket_, buffers, [this](const error_code& error, size_t bytes) {
    waiting_ -= bytes;
    if (error) {
      end();
      return;
    }
    outgoing_.pop_front();
    if (!outgoing_.empty()) {
      write_next();
    }
  });
}

/// Once, whatever noticed it first.
void FrameSocket::end() {
  if (ended_) {
    return;
  }
  ended_ = true;
  error_code ignored;
  socket_.close(ignored);
  listener_.ended();
}

}  // namespace whimbrel::http
