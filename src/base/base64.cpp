#include "base/base64.h"

#include <openssl/evp.h>

namespace whimbrel {

std::optional<std::string> decode_base64(std::string_view text) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string_view digits = text.substr(0, text.find('='));
  const size_t padding = text.size() - digits.size();
  // OpenSSL would skip white space and stop at a dash, and it counts padding as zero bytes.
  if (text.size() % 4 != 0 || padding > 2 ||
      text.substr(digits.size()) != std::string(padding, '=') ||
      digits.find_first_not_of(kAlphabet) != std::string_view::npos) {
    return std::nullopt;
  }
  std::string bytes(text.size() / 4 * 3, '\0');
  const int written = EVP_DecodeBlock(
      reinterpret_cast<unsigned char*>(bytes.data()),
      reinterpret_cast<const unsigned char*>(text.data()),
      static_cast<int>(text.size())
  );
  if (written < 0) {
    return std::nullopt;
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace whimbrel
