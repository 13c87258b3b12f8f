#pragma once

#include <sys/socket.h>

namespace whimbrel::http {

/// Whether an address is one of the public internet, by IANA's registries of special addresses:
/// no loopback, private, link-local, shared, benchmark, documentation, multicast or reserved one,
/// and no IPv6 address that stands for an IPv4 one, but NAT64's of a public one.
bool is_public_address(const sockaddr& address);

}  // namespace whimbrel::http
