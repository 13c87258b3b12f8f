#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/http_limits.h"

namespace whimbrel::http {

/// Takes a body out of its framing, by length or in chunks.
class BodyReader {
 public:
  /// `head`: the bytes of a head that parse_request_head accepts. Throws ApiException too_large
  /// where its length is beyond the limit, bad_request where Boost.Beast refuses the head.
  BodyReader(std::string_view head, const HttpLimits& limits);
  ~BodyReader();
  BodyReader(BodyReader&&) noexcept;
  BodyReader& operator=(BodyReader&&) noexcept;

  /// Takes from the front of `bytes`, and returns how many; what is left has to come again with
  /// more behind it. Throws ApiException too_large, or bad_request on wrong framing.
  size_t put(std::string_view bytes);

  bool done() const;

  /// Bytes of the body so far.
  size_t size() const;

  /// The body, once it is done. Trailer fields are dropped.
  std::string take();

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace whimbrel::http
