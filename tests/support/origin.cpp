#include "tests/support/origin.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string_view>

namespace whimbrel::test {

namespace {

#if defined(MSG_NOSIGNAL)
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;
#endif

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::string read_head(int connection) {
  std::string head;
  char byte = 0;
  while (head.find("\r\n\r\n") == std::string::npos && recv(connection, &byte, 1, 0) == 1) {
    head += byte;
  }
  return head;
}

}  // namespace

Origin::Origin(Answer answer)
    : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, any, size) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, any, &size) != 0) {
    throw std::runtime_error("no listener on the loopback");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

Origin::~Origin() {
  stopping_ = true;
  const int last = socket(AF_INET, SOCK_STREAM, 0);  // ends accept()
  const sockaddr_in address = loopback(port_);
  connect(last, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  thread_.join();
  close(last);
  close(listener_);
}

std::string Origin::host(const std::string& name) const {
  return fmt::format("{}:{}", name, port_);
}

std::string Origin::url(const std::string& path, const std::string& name) const {
  return fmt::format("http://{}{}", host(name), path);
}

void Origin::serve() {
  for (;;) {
    const int connection = accept(listener_, nullptr, nullptr);
    if (connection < 0 || stopping_) {
      close(connection);
      return;
    }
    ++connections_;
    answer_(read_head(connection), [&](std::string_view bytes) {
      while (!bytes.empty() && !stopping_) {
        const ssize_t put = send(connection, bytes.data(), bytes.size(), kSendFlags);
        if (put <= 0) {
          return false;
        }
        bytes.remove_prefix(static_cast<size_t>(put));
      }
      return !stopping_;
    });
    close(connection);
  }
}

std::string http_answer(
    const std::string& status, const std::string& headers, const std::string& body
) {
  return fmt::format("HTTP/1.1 {}\r\n{}\r\n{}", status, headers, body);
}

}  // namespace whimbrel::test
