#pragma once

#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace whimbrel {

/// Texts cut in pieces: whole, byte by byte, in two at each place, and at random.
inline void for_each_cut(
    std::string_view text, const std::function<void(const std::vector<std::string>&)>& check
) {
  check({std::string(text)});
  std::vector<std::string> bytes;
  for (const char c : text) {
    bytes.emplace_back(1, c);
  }
  check(bytes);
  for (size_t cut = 1; cut < text.size(); ++cut) {
    check({std::string(text.substr(0, cut)), std::string(text.substr(cut))});
  }
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> pieces;
    for (size_t begin = 0; begin < text.size();) {
      const size_t size = 1 + random() % 9;
      pieces.emplace_back(text.substr(begin, size));
      begin += size;
    }
    check(pieces);
  }
}

}  // namespace whimbrel
