#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel::http {

/// Allows every host on the public internet, at the scheme's own port.
inline constexpr std::string_view kAnyPublic = "any-public";

/// An http or https address that may be fetched, held by the library that will fetch it: what is
/// checked is what is fetched.
struct RemoteUrl {
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> parsed{nullptr, curl_url_cleanup};
  std::string scheme = {};  // "http" or "https"
  std::string host = {};    // lower case; of IPv6 in brackets
  std::string port = {};    // the scheme's own where none was given
};

/// Reads an address. Refused: anything but visible ASCII, backslashes, other schemes, a user's
/// name, and a host or port that isn't written as it is understood (numbers in other forms than
/// 192.0.2.1, percent signs, a dot at the end), so that no second reader could see another one.
/// Throws Error(Fault::input, where).
RemoteUrl parse_remote_url(const std::string& text, std::string_view where);

/// Where a redirect leads, by the same rules, and never from https to http.
RemoteUrl follow_redirect(
    const RemoteUrl& from, const std::string& location, std::string_view where
);

/// Throws Error(Fault::input, where) unless `hosts` names the address: its host (then at the
/// scheme's own port), its host:port, or kAnyPublic.
void require_allowed(
    const RemoteUrl& url, const std::vector<std::string>& hosts, std::string_view where
);

/// A host or host:port as require_allowed compares it. Throws Error(Fault::usage, where) on what is
/// none.
std::string remote_host(const std::string& text, std::string_view where);

}  // namespace whimbrel::http
