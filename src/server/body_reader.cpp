#include "server/body_reader.h"

#include <fmt/format.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "server/api_error.h"

namespace whimbrel::http {

namespace beast = boost::beast;

namespace {

/// A line of a chunk's size, or trailer fields, longer than this are no honest client's.
constexpr size_t kLongestFraming = size_t{64} << 10;

[[noreturn]] void refuse_body(const boost::system::error_code& error, size_t limit) {
  if (error == beast::http::error::body_limit) {
    throw ApiException(
        {.kind = ErrorKind::too_large,
         .message = fmt::format("got a body of more than {} bytes", limit),
         .code = "body_too_large"}
    );
  }
  throw ApiException(
      {.kind = ErrorKind::bad_request,
       .message = "got a body that isn't framed as HTTP says",
       .code = "bad_http_request"}
  );
}

}  // namespace

struct BodyReader::Parser {
  beast::http::request_parser<beast::http::string_body> request = {};
  size_t limit = 0;

  size_t put(std::string_view bytes) {
    boost::system::error_code error;
    const size_t taken = request.put({bytes.data(), bytes.size()}, error);
    const bool needs_more = error == beast::http::error::need_more;
    if (error && !needs_more) {
      refuse_body(error, limit);
    }
    if (needs_more && bytes.size() - taken > kLongestFraming) {
      refuse_body(beast::http::error::bad_chunk, limit);
    }
    return taken;
  }
};

BodyReader::BodyReader(std::string_view head, const HttpLimits& limits)
    : parser_(std::make_unique<Parser>()) {
  parser_->limit = limits.body_bytes;
  parser_->request.header_limit(static_cast<uint32_t>(limits.header_bytes + kLongestFraming));
  parser_->request.body_limit(limits.body_bytes);
  parser_->request.eager(true);
  if (parser_->put(head) != head.size() || !parser_->request.is_header_done()) {
    refuse_body(beast::http::error::bad_field, limits.body_bytes);
  }
}

BodyReader::~BodyReader() = default;
BodyReader::BodyReader(BodyReader&&) noexcept = default;
BodyReader& BodyReader::operator=(BodyReader&&) noexcept = default;

size_t BodyReader::put(std::string_view bytes) {
  return done() || bytes.empty() ? 0 : parser_->put(bytes);
}

bool BodyReader::done() const {
  return parser_->request.is_done();
}

size_t BodyReader::size() const {
  return parser_->request.get().body().size();
}

std::string BodyReader::take() {
  return std::move(parser_->request.get().body());
}

}  // namespace whimbrel::http
