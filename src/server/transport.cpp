#include "server/transport.h"

#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace whimbrel::http {

namespace asio = boost::asio;

namespace {

class PlainTransport : public Transport {
 public:
  explicit PlainTransport(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {}

  void handshake(Done done) override {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
  }

  void read_some(asio::mutable_buffer buffer, Transferred done) override {
    socket_.async_read_some(buffer, std::move(done));
  }

  void write(asio::const_buffer buffer, Transferred done) override {
    asio::async_write(socket_, buffer, std::move(done));
  }

  void end_sending(Done done) override {
    ErrorCode error;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, error);
    asio::post(socket_.get_executor(), [done = std::move(done), error] { done(error); });
  }

  void close() override {
    ErrorCode ignored;
    socket_.close(ignored);
  }

 private:
  asio::ip::tcp::socket socket_;
};

class TlsTransport : public Transport {
 public:
  TlsTransport(asio::ip::tcp::socket socket, asio::ssl::context& context)
      : stream_(std::move(socket), context) {}

  void handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
  }

  void read_some(asio::mutable_buffer buffer, Transferred done) override {
    stream_.async_read_some(buffer, std::move(done));
  }

  void write(asio::const_buffer buffer, Transferred done) override {
    asio::async_write(stream_, buffer, std::move(done));
  }

  void end_sending(Done done) override { stream_.async_shutdown(std::move(done)); }

  void close() override {
    ErrorCode ignored;
    stream_.next_layer().close(ignored);
  }

 private:
  asio::ssl::stream<asio::ip::tcp::socket> stream_;
};

}  // namespace

std::unique_ptr<Transport> make_plain_transport(asio::ip::tcp::socket socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> make_tls_transport(
    asio::ip::tcp::socket socket, asio::ssl::context& context
) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

}  // namespace whimbrel::http
