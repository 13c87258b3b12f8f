#include "server/public_address.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>

namespace whimbrel::http {

namespace {

using Bytes4 = std::array<uint8_t, 4>;
using Bytes16 = std::array<uint8_t, 16>;

/// Addresses that begin with these bits.
template <typename Bytes>
struct Block {
  Bytes bytes;
  int bits;
};

// RFC 6890 and what was registered since.
constexpr std::array kSpecial4 = {
    Block<Bytes4>{{0}, 8},                  // this network
    Block<Bytes4>{{10}, 8},                 // private
    Block<Bytes4>{{100, 64}, 10},           // shared with a carrier
    Block<Bytes4>{{127}, 8},                // loopback
    Block<Bytes4>{{168, 63, 129, 16}, 32},  // a cloud's service on the machine's own host
    Block<Bytes4>{{169, 254}, 16},          // link-local, metadata services of clouds
    Block<Bytes4>{{172, 16}, 12},           // private
    Block<Bytes4>{{192, 0, 0}, 24},         // protocols
    Block<Bytes4>{{192, 0, 2}, 24},         // documentation
    Block<Bytes4>{{192, 88, 99}, 24},       // 6to4 relays
    Block<Bytes4>{{192, 168}, 16},          // private
    Block<Bytes4>{{198, 18}, 15},           // benchmarks
    Block<Bytes4>{{198, 51, 100}, 24},      // documentation
    Block<Bytes4>{{203, 0, 113}, 24},       // documentation
    Block<Bytes4>{{224}, 4},                // multicast
    Block<Bytes4>{{240}, 4},                // reserved, broadcast
};

constexpr Block<Bytes16> kGlobal6{{0x20}, 3};
constexpr Block<Bytes16> kNat64{{0x00, 0x64, 0xff, 0x9b}, 96};
constexpr std::array kSpecial6 = {
    Block<Bytes16>{{0x20, 0x01, 0x00}, 23},        // protocols, Teredo
    Block<Bytes16>{{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
    Block<Bytes16>{{0x20, 0x02}, 16},              // 6to4
    Block<Bytes16>{{0x3f, 0xff}, 20},              // documentation
};

template <typename Bytes>
bool is_in(const Bytes& address, const Block<Bytes>& block) {
  for (int bit = 0; bit < block.bits; ++bit) {
    const size_t byte = static_cast<size_t>(bit / 8);
    if (((address[byte] ^ block.bytes[byte]) & (0x80 >> bit % 8)) != 0) {
      return false;
    }
  }
  return true;
}

template <typename Bytes>
bool is_in_any(const Bytes& address, std::span<const Block<Bytes>> blocks) {
  return std::ranges::any_of(blocks, [&](const Block<Bytes>& block) {
    return is_in(address, block);
  });
}

bool is_public(const Bytes4& address) {
  return !is_in_any<Bytes4>(address, kSpecial4);
}

bool is_public(const Bytes16& address) {
  if (is_in(address, kNat64)) {
    return is_public(Bytes4{address[12], address[13], address[14], address[15]});
  }
  return is_in(address, kGlobal6) && !is_in_any<Bytes16>(address, kSpecial6);
}

}  // namespace

bool is_public_address(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    Bytes4 bytes{};
    const auto& full = reinterpret_cast<const sockaddr_in&>(address);
    std::memcpy(bytes.data(), &full.sin_addr, bytes.size());
    return is_public(bytes);
  }
  if (address.sa_family == AF_INET6) {
    Bytes16 bytes{};
    const auto& full = reinterpret_cast<const sockaddr_in6&>(address);
    std::memcpy(bytes.data(), &full.sin6_addr, bytes.size());
    return is_public(bytes);
  }
  return false;
}

}  // namespace whimbrel::http
