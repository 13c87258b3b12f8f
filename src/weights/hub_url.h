#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace whimbrel {

/// An http or https address, taken apart by the library that will fetch it, so that what is checked
/// is what is fetched.
struct HttpUrl {
  std::string text;    // all of it
  std::string scheme;  // "http" or "https"
  std::string host;    // lower case
  std::string port;    // the scheme's own where none was given
};

/// Nothing where the text is no absolute http(s) address, or carries a user's name.
std::optional<HttpUrl> parse_http_url(std::string_view text);

/// Where a redirect from `base` leads; nothing where that is no http(s) address.
std::optional<HttpUrl> resolve_location(const HttpUrl& base, std::string_view location);

/// Whether a secret for one address may be shown to the other: same scheme, host and port.
bool same_origin(const HttpUrl& left, const HttpUrl& right);

/// Whether a redirect would leave https.
bool is_downgrade(const HttpUrl& from, const HttpUrl& to);

/// Percent-encodes all but letters, digits and "-._~", so that the text is one part of a path.
std::string percent_encode(std::string_view text);

}  // namespace whimbrel
