#include "tests/support/raw_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace whimbrel::test {

namespace {

constexpr int kPatience = 30'000;  // milliseconds

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

RawAnswer parse_head(const std::string& head) {
  RawAnswer answer;
  answer.head = head;
  answer.status = head.size() > 12 ? std::atoi(head.c_str() + 9) : 0;
  size_t begin = head.find("\r\n") + 2;
  for (size_t end = head.find("\r\n", begin); end > begin && end != std::string::npos;
       end = head.find("\r\n", begin)) {
    const std::string line = head.substr(begin, end - begin);
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) {
      answer.fields[lower(line.substr(0, colon))] = line.substr(colon + 2);
    }
    begin = end + 2;
  }
  return answer;
}

}  // namespace

RawClient::RawClient(uint16_t port, int receive_buffer)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer > 0) {
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
  }
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close();
    throw std::runtime_error("nobody listens on port " + std::to_string(port));
  }
}

RawClient::~RawClient() {
  close();
}

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), input_(std::move(other.input_)) {}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd ready = {socket_, POLLOUT, 0};
    if (poll(&ready, 1, kPatience) != 1) {
      return false;
    }
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

bool RawClient::receive_more() {
  pollfd ready = {socket_, POLLIN, 0};
  if (poll(&ready, 1, kPatience) != 1) {
    throw std::runtime_error("the server neither answers nor closes");
  }
  std::array<char, 65536> bytes = {};
  const ssize_t count = recv(socket_, bytes.data(), bytes.size(), 0);
  input_.append(bytes.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return count > 0;
}

std::optional<std::string> RawClient::receive_until(std::string_view text) {
  size_t at = input_.find(text);
  while (at == std::string::npos) {
    if (!receive_more()) {
      return std::nullopt;
    }
    at = input_.find(text);
  }
  std::string taken = input_.substr(0, at + text.size());
  input_.erase(0, taken.size());
  return taken;
}

bool RawClient::drop_some(size_t most) {
  std::string dropped(most, '\0');
  return recv(socket_, dropped.data(), most, 0) > 0;
}

std::optional<std::string> RawClient::receive_all() {
  try {
    while (receive_more()) {
    }
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
  return std::exchange(input_, {});
}

std::optional<RawAnswer> RawClient::receive_head() {
  const std::optional<std::string> head = receive_until("\r\n\r\n");
  return head ? std::optional(parse_head(*head)) : std::nullopt;
}

std::optional<RawAnswer> RawClient::receive(bool is_head) {
  std::optional<RawAnswer> answer = receive_head();
  if (!answer || is_head) {
    return answer;
  }
  if (const auto length = answer->fields.find("content-length"); length != answer->fields.end()) {
    const size_t size = std::stoul(length->second);
    while (input_.size() < size) {
      if (!receive_more()) {
        return std::nullopt;
      }
    }
    answer->body = input_.substr(0, size);
    input_.erase(0, size);
    return answer;
  }
  if (!answer->fields.contains("transfer-encoding")) {
    return answer;
  }
  while (true) {
    const std::optional<std::string> line = receive_until("\r\n");
    if (!line) {
      return std::nullopt;
    }
    const size_t size = std::stoul(*line, nullptr, 16);
    while (input_.size() < size + 2) {
      if (!receive_more()) {
        return std::nullopt;
      }
    }
    answer->body += input_.substr(0, size);
    input_.erase(0, size + 2);
    if (size == 0) {
      return answer;
    }
  }
}

void RawClient::end_sending() {
  shutdown(socket_, SHUT_WR);
}

void RawClient::close() {
  if (socket_ >= 0) {
    ::close(std::exchange(socket_, -1));
  }
}

void RawClient::reset() {
  const linger now = {1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

std::optional<RawAnswer> request_once(uint16_t port, std::string_view bytes) {
  RawClient client(port);
  client.send(bytes);
  return client.receive();
}

}  // namespace whimbrel::test
