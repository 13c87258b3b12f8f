#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancelled.h"
#include "server/public_address.h"

namespace whimbrel::http {

/// Redirects of one address that are followed, each checked as the first.
constexpr int kMostRedirects = 3;

/// Of what is fetched from one address.
constexpr uint64_t kMostRemoteBytes = uint64_t{20} << 20;

struct FetchLimits {
  std::chrono::steady_clock::time_point deadline = {};
  uint64_t max_bytes = kMostRemoteBytes;
  Cancelled cancelled = {};
};

/// Whether a connection to this address may be opened.
using AddressCheck = bool (*)(const sockaddr& address);

/// Fetches what a request's address names: the only way in which a server asks others. The host has
/// to be on the list (remote_url.h), and whatever its name resolves to, connections are opened to
/// public addresses alone, looked at when the socket is made. No proxy, no cookie, no credential,
/// no compression. Throws Error(Fault::input, where) with our text: one for all that went wrong on
/// the way to the host; Error(Fault::interrupted) where it was cancelled. `may_connect` is another
/// one in tests of this function only.
std::string fetch_remote(
    const std::string& address,
    const std::vector<std::string>& hosts,
    const FetchLimits& limits,
    std::string_view where,
    AddressCheck may_connect = is_public_address
);

}  // namespace whimbrel::http
