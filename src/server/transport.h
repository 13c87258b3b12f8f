#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>

namespace whimbrel::http {

/// A connected socket, with TLS or without it. One read and one write may run at a time; all calls,
/// and all that is called back, are on the socket's strand. What is called back keeps the
/// transport.
class Transport {
 public:
  using ErrorCode = boost::system::error_code;
  using Done = std::function<void(const ErrorCode&)>;
  using Transferred = std::function<void(const ErrorCode&, size_t bytes)>;

  virtual ~Transport() = default;

  virtual void handshake(Done done) = 0;
  virtual void read_some(boost::asio::mutable_buffer buffer, Transferred done) = 0;
  /// All of the buffer.
  virtual void write(boost::asio::const_buffer buffer, Transferred done) = 0;
  /// Tells the other side that nothing follows.
  virtual void end_sending(Done done) = 0;
  /// Whatever runs is called back with an error.
  virtual void close() = 0;
};

std::unique_ptr<Transport> make_plain_transport(boost::asio::ip::tcp::socket socket);

std::unique_ptr<Transport> make_tls_transport(
    boost::asio::ip::tcp::socket socket, boost::asio::ssl::context& context
);

}  // namespace whimbrel::http
