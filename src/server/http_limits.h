#pragma once

#include <chrono>
#include <cstddef>

namespace whimbrel::http {

/// What one client may take. Every number is an option of the program.
struct HttpLimits {
  // Of a request. A request beyond one is answered 431, 431, 414 and 413.
  size_t header_bytes = size_t{16} << 10;
  int header_fields = 100;
  size_t target_bytes = size_t{8} << 10;
  size_t body_bytes = size_t{64} << 20;

  // Of the whole server; beyond it 503.
  size_t bodies_bytes = size_t{512} << 20;  // bodies of all requests that aren't answered yet
  int connections = 1024;
  int waiting_handlers = 256;

  // A client that needs longer is answered 408, or its connection is closed where none is due.
  std::chrono::milliseconds header_time = std::chrono::seconds(10);
  std::chrono::milliseconds body_idle_time = std::chrono::seconds(30);
  std::chrono::milliseconds body_time = std::chrono::seconds(300);
  std::chrono::milliseconds keep_alive_time = std::chrono::seconds(75);

  /// A stream whose client leaves more than this many bytes waiting for `slow_reader_time` is
  /// closed, and at once where it leaves 64 times as many. Any other answer is, where 64 KiB of it
  /// take as long.
  size_t stream_buffer_bytes = size_t{256} << 10;
  std::chrono::milliseconds slow_reader_time = std::chrono::seconds(30);

  /// An event stream without an event for this long gets a comment; 0: never.
  std::chrono::milliseconds ping_time = std::chrono::seconds(15);
};

}  // namespace whimbrel::http
