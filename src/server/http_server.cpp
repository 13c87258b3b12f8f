#include "server/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "base/error.h"
#include "server/connection.h"
#include "server/server_core.h"

namespace whimbrel::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using boost::system::system_error;

namespace {

/// Connections beyond the bound that still get an answer; more are closed at once.
constexpr size_t kAnsweredBeyond = 64;
/// After a failed accept, such as for want of descriptors.
constexpr std::chrono::milliseconds kAcceptPause{50};
/// For the last words of connections when the server stops, and then for their end.
constexpr std::chrono::milliseconds kLastWords{1500};

tcp::endpoint resolve(const std::string& host, uint16_t port) {
  asio::io_context io;
  tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) {
    throw Error(
        Fault::usage,
        "--host",
        "got {}, which is no address of a machine ({}); give one of this machine's",
        host,
        error.message()
    );
  }
  return found.begin()->endpoint();
}

std::optional<asio::ssl::context> make_tls(const HttpServerOptions& options) {
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    throw Error(Fault::usage, "--tls-cert", "got one of --tls-cert and --tls-key, expected both");
  }
  if (options.tls_cert.empty()) {
    return std::nullopt;
  }
  asio::ssl::context context(asio::ssl::context::tls_server);
  context.set_options(
      asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
      asio::ssl::context::no_tlsv1_1
  );
  try {
    context.use_certificate_chain_file(options.tls_cert);
    context.use_private_key_file(options.tls_key, asio::ssl::context::pem);
  } catch (const system_error& error) {
    throw Error(
        Fault::usage,
        "--tls-cert",
        "got files that can't be used ({}), expected a certificate and its key as PEM",
        error.code().message()
    );
  }
  return context;
}

/// An address of IPv6 has colons of its own.
std::string in_url(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

std::string text_of(const tcp::endpoint& endpoint) {
  return fmt::format("{}:{}", in_url(endpoint.address().to_string()), endpoint.port());
}

/// A program that we start must not hold our clients' connections open.
void close_on_exec(int descriptor) {
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, std::vector<Route> routes)
      : endpoint_(resolve(options.host, options.port)),
        tls_(make_tls(options)),
        core_(
            std::make_shared<ServerCore>(
                options, std::move(routes), endpoint_.address().is_loopback()
            )
        ),
        work_(asio::make_work_guard(core_->io)),
        acceptor_(asio::make_strand(core_->io)),
        pause_(acceptor_.get_executor()) {}

  void start();
  bool drain(std::chrono::milliseconds deadline);

  uint16_t port() const { return port_; }
  ServerCore& core() const { return *core_; }
  bool has_tls() const { return tls_.has_value(); }

 private:
  void listen();
  void accept();
  void take(tcp::socket socket);
  void serve();
  void stop_listening();

  tcp::endpoint endpoint_;
  std::optional<asio::ssl::context> tls_;
  std::shared_ptr<ServerCore> core_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  uint16_t port_ = 0;
  std::vector<std::thread> threads_;
  std::optional<bool> drained_;
};

void HttpServer::Impl::listen() {
  try {
    acceptor_.open(endpoint_.protocol());
    close_on_exec(acceptor_.native_handle());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint_);
    acceptor_.listen();
    port_ = acceptor_.local_endpoint().port();
  } catch (const system_error& error) {
    throw Error(
        Fault::network,
        "--port",
        "listening to {} failed: {}; give another port or address",
        text_of(endpoint_),
        error.code().message()
    );
  }
}

void HttpServer::Impl::start() {
  listen();
  for (int i = 0; i < core_->options.io_threads; ++i) {
    threads_.emplace_back([this] { serve(); });
  }
  asio::post(acceptor_.get_executor(), [this] { accept(); });
}

/// One connection that fails, even in a way that nobody thought of, fails alone.
void HttpServer::Impl::serve() {
  while (true) {
    try {
      core_->io.run();
      return;
    } catch (const std::exception&) {
      core_->count([](HttpCounters& counters) { ++counters.internal_failures; });
    }
  }
}

void HttpServer::Impl::accept() {
  acceptor_.async_accept(
      asio::make_strand(core_->io), [this](const error_code& error, tcp::socket socket) {
        if (!acceptor_.is_open()) {
          return;
        }
        if (!error) {
          take(std::move(socket));
          accept();
          return;
        }
        core_->count([](HttpCounters& counters) { ++counters.accept_failures; });
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](const error_code& cancelled) {
          if (!cancelled && acceptor_.is_open()) {
            accept();
          }
        });
      }
  );
}

void HttpServer::Impl::take(tcp::socket socket) {
  error_code error;
  const tcp::endpoint client = socket.remote_endpoint(error);
  const size_t bound = static_cast<size_t>(core_->options.limits.connections);
  const size_t open = core_->connection_count();
  if (open >= bound) {
    core_->count([](HttpCounters& counters) { ++counters.connections_refused; });
  }
  if (error || open >= bound + kAnsweredBeyond) {
    return;
  }
  close_on_exec(socket.native_handle());
  socket.set_option(tcp::no_delay(true), error);
  // What a slow reader may hold in the kernel: unset, it grows to megabytes.
  const auto send_buffer = static_cast<int>(core_->options.limits.stream_buffer_bytes);
  socket.set_option(tcp::socket::send_buffer_size(send_buffer), error);
  const asio::any_io_executor strand = socket.get_executor();
  auto transport =
      tls_ ? make_tls_transport(std::move(socket), *tls_) : make_plain_transport(std::move(socket));
  const auto connection =
      std::make_shared<Connection>(core_, std::move(transport), strand, text_of(client));
  if (open >= bound) {
    connection->start_refused();
  } else {
    connection->start();
  }
}

void HttpServer::Impl::stop_listening() {
  std::promise<void> closed;
  asio::post(acceptor_.get_executor(), [this, &closed] {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    closed.set_value();
  });
  closed.get_future().wait();
}

bool HttpServer::Impl::drain(std::chrono::milliseconds deadline) {
  if (drained_ || threads_.empty()) {
    return drained_.value_or(true);
  }
  core_->draining = true;
  stop_listening();
  for (const auto& connection : core_->connections()) {
    connection->drain();
  }
  drained_ = core_->wait_until_none(deadline);
  for (int round = 0; round < 2 && !core_->wait_until_none(std::chrono::milliseconds(0)); ++round) {
    for (const auto& connection : core_->connections()) {
      connection->stop();
    }
    core_->wait_until_none(kLastWords);
  }
  core_->pool.stop();
  work_.reset();
  core_->io.stop();
  for (std::thread& thread : threads_) {
    thread.join();
  }
  // What was posted too late to run holds its connection.
  core_->io.restart();
  core_->io.poll();
  return *drained_;
}

HttpServer::HttpServer(const HttpServerOptions& options, std::vector<Route> routes)
    : impl_(std::make_unique<Impl>(options, std::move(routes))) {}

HttpServer::~HttpServer() {
  drain(std::chrono::milliseconds(0));
}

void HttpServer::start() {
  impl_->start();
}

uint16_t HttpServer::port() const {
  return impl_->port();
}

std::string HttpServer::url() const {
  return fmt::format(
      "{}://{}:{}", impl_->has_tls() ? "https" : "http", in_url(impl_->core().options.host), port()
  );
}

const std::vector<Route>& HttpServer::routes() const {
  return impl_->core().router.routes();
}

HttpCounters HttpServer::counters() const {
  return impl_->core().counters();
}

bool HttpServer::drain(std::chrono::milliseconds deadline) {
  return impl_->drain(deadline);
}

}  // namespace whimbrel::http
