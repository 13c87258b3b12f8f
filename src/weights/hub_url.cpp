#include "weights/hub_url.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

namespace whimbrel {

namespace {

using CurlUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::optional<std::string> part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) {
    return std::nullopt;
  }
  const std::unique_ptr<char, decltype(&curl_free)> owner(text, curl_free);
  return std::string(text);
}

bool has_control_or_space(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

/// `location` relative to `base`, which may be empty.
std::optional<HttpUrl> parse(std::string_view base, std::string_view location) {
  // A NUL would end the text for the library and not for us.
  if (has_control_or_space(location)) {
    return std::nullopt;
  }
  const CurlUrl url(curl_url(), curl_url_cleanup);
  const unsigned flags = CURLU_DISALLOW_USER;
  for (const std::string& text : {std::string(base), std::string(location)}) {
    if (!text.empty() && curl_url_set(url.get(), CURLUPART_URL, text.c_str(), flags) != CURLUE_OK) {
      return std::nullopt;
    }
  }
  HttpUrl parsed;
  parsed.text = part(url.get(), CURLUPART_URL).value_or("");
  parsed.scheme = part(url.get(), CURLUPART_SCHEME).value_or("");
  parsed.host = part(url.get(), CURLUPART_HOST).value_or("");
  parsed.port = part(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT).value_or("");
  std::ranges::transform(parsed.host, parsed.host.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  const bool is_http = parsed.scheme == "http" || parsed.scheme == "https";
  if (!is_http || parsed.host.empty() || part(url.get(), CURLUPART_USER)) {
    return std::nullopt;
  }
  return parsed;
}

}  // namespace

std::optional<HttpUrl> parse_http_url(std::string_view text) {
  return parse("", text);
}

std::optional<HttpUrl> resolve_location(const HttpUrl& base, std::string_view location) {
  return location.empty() ? std::nullopt : parse(base.text, location);
}

bool same_origin(const HttpUrl& left, const HttpUrl& right) {
  return left.scheme == right.scheme && left.host == right.host && left.port == right.port;
}

bool is_downgrade(const HttpUrl& from, const HttpUrl& to) {
  return from.scheme == "https" && to.scheme != "https";
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const unsigned char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded.push_back(static_cast<char>(c));
    } else {
      encoded += fmt::format("%{:02X}", c);
    }
  }
  return encoded;
}

}  // namespace whimbrel
