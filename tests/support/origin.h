#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace whimbrel::test {

/// An HTTP server on the loopback that says for each request's head what it is told to, as bytes,
/// and closes. One connection at a time.
class Origin {
 public:
  /// Writes to a connection; false where the other end is gone.
  using Send = std::function<bool(std::string_view bytes)>;
  using Answer = std::function<void(const std::string& head, const Send& send)>;

  explicit Origin(Answer answer);
  ~Origin();
  Origin(const Origin&) = delete;
  Origin& operator=(const Origin&) = delete;

  /// `http://127.0.0.1:PORT` and a path.
  std::string url(const std::string& path, const std::string& host = "127.0.0.1") const;
  /// `127.0.0.1:PORT`.
  std::string host(const std::string& name = "127.0.0.1") const;
  /// Connections that it has got.
  int connections() const { return connections_; }

 private:
  void serve();

  Answer answer_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

/// An answer with this status line, these header lines and this body.
std::string http_answer(
    const std::string& status, const std::string& headers, const std::string& body
);

}  // namespace whimbrel::test
