#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/http_message.h"

namespace whimbrel::http {

struct AccessOptions {
  std::vector<std::string> api_keys = {};
  bool insecure_no_auth = false;  // serve others than this machine without a key
  /// Names, without port, that a request's Host may have. Where the server listens to its own
  /// machine only, none means localhost and the loopback addresses; elsewhere none means any.
  std::vector<std::string> allowed_hosts = {};
  /// Web pages of other servers, such as `https://example.org`, whose scripts may call.
  std::vector<std::string> allowed_origins = {};
};

/// Who may call. Constant after construction; keys are kept as SHA-256 only.
class Access {
 public:
  /// Throws Error(Fault::usage) for an empty key, and where the server listens to other machines
  /// with neither a key nor `insecure_no_auth`.
  Access(const AccessOptions& options, bool is_loopback);

  /// Refuses (forbidden) a foreign Host and a page of another origin: a browser on this machine
  /// reaches the server on behalf of any page that it shows.
  std::optional<ApiError> check_browser(const Request& request) const;

  /// Whose key the request has: its hash; empty where the server has no keys, nullopt where the
  /// request has none or a wrong one. A bearer token and x-api-key have to be the same key.
  std::optional<std::string> tenant_of(const Request& request) const;

  /// The request's origin where it is one of `allowed_origins`, else empty.
  std::string allowed_origin(const Request& request) const;

 private:
  bool is_allowed_host(std::string_view host) const;

  std::vector<std::string> key_hashes_;
  std::vector<std::string> hosts_;
  std::vector<std::string> origins_;
};

/// The answer to a request that tenant_of knows no key of.
ApiError unauthorized();

}  // namespace whimbrel::http
