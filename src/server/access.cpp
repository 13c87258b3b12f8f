#include "server/access.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"

namespace whimbrel::http {

namespace {

std::string sha256(std::string_view text) {
  return Digest().update(text).hex();
}

/// `name:port` and `[address]:port` without the port.
std::string_view without_port(std::string_view host) {
  const size_t behind_address = host.starts_with('[') ? host.find(']') : 0;
  if (behind_address == std::string_view::npos) {
    return host;
  }
  return host.substr(0, host.find(':', behind_address));
}

std::optional<std::string_view> bearer_token(const std::string& authorization) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view text = authorization;
  if (!equal_ignoring_case(text.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  const size_t begin = text.find_first_not_of(' ', kScheme.size());
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

ApiError forbidden(const char* message) {
  return {.kind = ErrorKind::forbidden, .message = message, .code = "forbidden"};
}

}  // namespace

Access::Access(const AccessOptions& options, bool is_loopback)
    : hosts_(options.allowed_hosts), origins_(options.allowed_origins) {
  for (const std::string& key : options.api_keys) {
    if (key.empty()) {
      throw Error(Fault::usage, "--api-key", "got an empty key, expected a secret text");
    }
    key_hashes_.push_back(sha256(key));
  }
  if (!is_loopback && key_hashes_.empty() && !options.insecure_no_auth) {
    throw Error(
        Fault::usage,
        "--host",
        "got an address that other machines reach and no key; give --api-key, or "
        "--insecure-no-auth where everybody there may use the model"
    );
  }
  if (is_loopback && hosts_.empty()) {
    hosts_ = {"localhost", "127.0.0.1", "[::1]"};
  }
}

bool Access::is_allowed_host(std::string_view host) const {
  return hosts_.empty() ||
         std::any_of(hosts_.begin(), hosts_.end(), [host](const std::string& allowed) {
           return equal_ignoring_case(allowed, without_port(host));
         });
}

std::optional<ApiError> Access::check_browser(const Request& request) const {
  const std::string* host = request.find("host");
  if (host != nullptr && !is_allowed_host(*host)) {
    return forbidden(
        "got a Host that isn't this server's; name it by --allowed-host if it should be"
    );
  }
  const std::string* origin = request.find("origin");
  if (origin == nullptr || !allowed_origin(request).empty()) {
    return std::nullopt;
  }
  // The server's own page. What stands before the host is http or https, where a proxy speaks TLS.
  const bool is_own = host != nullptr && (equal_ignoring_case(*origin, "http://" + *host) ||
                                          equal_ignoring_case(*origin, "https://" + *host));
  if (is_own) {
    return std::nullopt;
  }
  return forbidden(
      "got a call from a web page of another origin; allow it by --allowed-origin if it may call"
  );
}

std::optional<std::string> Access::tenant_of(const Request& request) const {
  if (key_hashes_.empty()) {
    return "";
  }
  const std::string* authorization = request.find("authorization");
  const std::string* x_api_key = request.find("x-api-key");
  std::vector<std::string> given;
  if (authorization != nullptr) {
    const std::optional<std::string_view> token = bearer_token(*authorization);
    if (!token) {
      return std::nullopt;
    }
    given.push_back(sha256(*token));
  }
  if (x_api_key != nullptr) {
    given.push_back(sha256(*x_api_key));
  }
  if (given.empty() || given.front() != given.back()) {
    return std::nullopt;
  }
  // Over all keys, and over all bytes of each, so that time tells nothing.
  bool is_known = false;
  for (const std::string& hash : key_hashes_) {
    is_known |= CRYPTO_memcmp(hash.data(), given.front().data(), hash.size()) == 0;
  }
  return is_known ? std::optional(given.front()) : std::nullopt;
}

std::string Access::allowed_origin(const Request& request) const {
  const std::string* origin = request.find("origin");
  const bool is_allowed =
      origin != nullptr && std::find(origins_.begin(), origins_.end(), *origin) != origins_.end();
  return is_allowed ? *origin : std::string();
}

ApiError unauthorized() {
  return {
      .kind = ErrorKind::unauthorized,
      .message = "got no valid API key, expected one as a bearer token or in x-api-key",
      .code = "invalid_api_key",
      .fields = {{"WWW-Authenticate", "Bearer"}}
  };
}

}  // namespace whimbrel::http
