#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace whimbrel::test {

/// An answer as it stood on the wire.
struct RawAnswer {
  int status = 0;
  std::string head = {};
  std::map<std::string, std::string> fields = {};  // names in lower case
  std::string body = {};                           // chunks joined
};

/// A client of HTTP on the loopback that sends any bytes, and leaves as rudely as it likes. No call
/// waits longer than half a minute.
class RawClient {
 public:
  /// `receive_buffer`: bytes that the kernel keeps unread for us; 0: its choice. Throws
  /// std::runtime_error where nobody listens.
  explicit RawClient(uint16_t port, int receive_buffer = 0);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  RawClient(RawClient&& other) noexcept;

  /// False where the server closed before all was sent.
  bool send(std::string_view bytes);

  /// The next answer, or nullopt where the connection ends before it is whole. `is_head`: it has no
  /// body whatever its length says.
  std::optional<RawAnswer> receive(bool is_head = false);

  /// Of an answer in chunks: its head, and what of its body came with it.
  std::optional<RawAnswer> receive_head();

  /// Bytes until they contain `text`; nullopt where the connection ends before.
  std::optional<std::string> receive_until(std::string_view text);

  /// Drops what comes, at most `most` bytes. False at the connection's end.
  bool drop_some(size_t most);

  /// Everything until the connection ends; nullopt where it doesn't.
  std::optional<std::string> receive_all();

  /// Whether the server closes, what it still sends included.
  bool is_closed_by_server() { return receive_all().has_value(); }

  void end_sending();  // FIN, and goes on reading
  void close();        // FIN
  void reset();        // RST

 private:
  bool receive_more();

  int socket_ = -1;
  std::string input_;
};

/// Sends a request on a connection of its own, and gives the answer.
std::optional<RawAnswer> request_once(uint16_t port, std::string_view bytes);

/// Whether `condition` comes true within half a minute.
template <typename Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return condition();
}

}  // namespace whimbrel::test
