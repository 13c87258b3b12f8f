#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace whimbrel {

/// Bytes of base64 text (RFC 4648, standard alphabet, padded, no line breaks); nothing where the
/// text is anything else.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace whimbrel
