#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "server/worker_frame.h"

namespace whimbrel::http {

/// Frames over a connected socket between two processes, on a thread of its own.
class FrameSocket {
 public:
  /// What comes, and that nothing comes any more: called on the thread of the socket, which it must
  /// not hold up. What `receive` throws ends the connection.
  struct Listener {
    std::function<void(Frame)> receive = {};
    std::function<void()> ended = {};
  };

  /// Owns the descriptor.
  FrameSocket(int descriptor, Listener listener);
  /// Closes. Not from a listener.
  ~FrameSocket();
  FrameSocket(const FrameSocket&) = delete;
  FrameSocket& operator=(const FrameSocket&) = delete;

  /// Begins to receive.
  void start();

  /// From any thread; never waits for the other side. Behind the end it does nothing.
  void send(Frame frame);

  /// Bytes that were sent and that the other side hasn't taken.
  size_t waiting_bytes() const { return waiting_; }

 private:
  void read_head();
  void read_payload(const FrameHead& head);
  void take(Frame frame);
  void write_next();
  void end();

  Listener listener_;
  boost::asio::io_context io_;
  boost::asio::local::stream_protocol::socket socket_;
  std::atomic<size_t> waiting_ = 0;
  std::atomic<bool> ended_ = false;
  // Of the thread:
  std::array<char, kFrameHeadBytes> head_ = {};
  Frame incoming_ = {};
  std::deque<std::pair<std::string, std::string>> outgoing_;  // heads and payloads
  std::thread thread_;
};

}  // namespace whimbrel::http
