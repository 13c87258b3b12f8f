#include "server/remote_url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <optional>

#include "base/error.h"

namespace whimbrel::http {

namespace {

[[noreturn]] void refuse(std::string_view where) {
  throw Error(
      Fault::input,
      where,
      "got an address that isn't plain, expected http or https, a host as it is commonly written, "
      "and visible ASCII without a user's name or a backslash"
  );
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

std::optional<std::string> part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) {
    return std::nullopt;
  }
  const std::unique_ptr<char, decltype(&curl_free)> owner(text, curl_free);
  return std::string(text);
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f && c != '\\'; });
}

/// The host and port as they stand in a text; nothing where it is relative.
std::optional<std::string> written_authority(std::string_view text, std::string_view where) {
  size_t begin = 2;
  if (!text.starts_with("//")) {
    const size_t end = text.find_first_of(":/?#");
    if (end == std::string_view::npos || text[end] != ':') {
      return std::nullopt;
    }
    if (text.substr(end, 3) != "://") {
      refuse(where);
    }
    begin = end + 3;
  }
  const size_t end = std::min(text.find_first_of("/?#", begin), text.size());
  return lower(std::string(text.substr(begin, end - begin)));
}

/// Whether a name would be taken for a number, by whatever reader.
bool looks_numeric(std::string_view host) {
  const std::string_view last = host.substr(host.rfind('.') + 1);
  return !last.empty() && std::isdigit(static_cast<unsigned char>(last.front())) != 0;
}

/// An IPv6 address in brackets, as the system prints it.
bool is_common_number(const std::string& host) {
  in6_addr number{};
  std::array<char, INET6_ADDRSTRLEN> printed{};
  const std::string inside = host.substr(1, host.size() - 2);
  return inet_pton(AF_INET6, inside.c_str(), &number) == 1 &&
         inet_ntop(AF_INET6, &number, printed.data(), printed.size()) != nullptr &&
         inside == printed.data();
}

/// Lower case: letters, digits and dots as in a name or number, or an IPv6 address.
bool is_common_host(const std::string& host) {
  if (host.starts_with('[')) {
    return is_common_number(host);
  }
  const bool plain = std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
  in_addr number{};
  return plain && !host.empty() && !host.ends_with('.') &&
         (!looks_numeric(host) || inet_pton(AF_INET, host.c_str(), &number) == 1);
}

RemoteUrl checked(RemoteUrl url, const std::string& text, std::string_view where) {
  CURLU* parsed = url.parsed.get();
  url.scheme = part(parsed, CURLUPART_SCHEME).value_or("");
  url.host = lower(part(parsed, CURLUPART_HOST).value_or(""));
  url.port = part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT).value_or("");
  const bool is_http = url.scheme == "http" || url.scheme == "https";
  const bool has_user = part(parsed, CURLUPART_USER) || part(parsed, CURLUPART_PASSWORD);
  if (!is_http || has_user || !is_common_host(url.host)) {
    refuse(where);
  }
  if (const std::optional<std::string> written = written_authority(text, where)) {
    const std::optional<std::string> port = part(parsed, CURLUPART_PORT);
    if (*written != url.host + (port ? ":" + *port : "")) {
      refuse(where);
    }
  }
  return url;
}

RemoteUrl set_url(CURLU* parsed, const std::string& text, std::string_view where) {
  if (parsed == nullptr) {
    throw std::bad_alloc();
  }
  RemoteUrl url;
  url.parsed.reset(parsed);
  const bool is_set =
      !text.empty() && is_plain(text) &&
      curl_url_set(parsed, CURLUPART_URL, text.c_str(), CURLU_DISALLOW_USER) == CURLUE_OK;
  if (!is_set) {
    refuse(where);
  }
  return checked(std::move(url), text, where);
}

bool has_default_port(const RemoteUrl& url) {
  return url.port == (url.scheme == "https" ? "443" : "80");
}

}  // namespace

RemoteUrl parse_remote_url(const std::string& text, std::string_view where) {
  return set_url(curl_url(), text, where);
}

RemoteUrl follow_redirect(
    const RemoteUrl& from, const std::string& location, std::string_view where
) {
  RemoteUrl to = set_url(curl_url_dup(from.parsed.get()), location, where);
  if (from.scheme == "https" && to.scheme != "https") {
    refuse(where);
  }
  return to;
}

void require_allowed(
    const RemoteUrl& url, const std::vector<std::string>& hosts, std::string_view where
) {
  const std::string with_port = url.host + ":" + url.port;
  const bool allowed = std::ranges::any_of(hosts, [&](const std::string& host) {
    return host == with_port || (has_default_port(url) && (host == url.host || host == kAnyPublic));
  });
  if (!allowed) {
    throw Error(
        Fault::input,
        where,
        "got an address of a host that this server doesn't fetch from, expected one that it was "
        "started with, or the bytes themselves as a data: URL"
    );
  }
}

namespace {

/// As an address has it; nothing where the text is more than a host, or none.
std::optional<std::string> host_of(const std::string& text, std::string_view where) {
  try {
    const RemoteUrl url = parse_remote_url("http://" + text, where);
    const bool has_port = part(url.parsed.get(), CURLUPART_PORT).has_value();
    const std::string host = url.host + (has_port ? ":" + url.port : "");
    return host == lower(text) ? std::optional(host) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string remote_host(const std::string& text, std::string_view where) {
  if (text == kAnyPublic) {
    return text;
  }
  if (const std::optional<std::string> host = host_of(text, where)) {
    return *host;
  }
  throw Error(
      Fault::usage,
      where,
      "got '{}', expected a host such as images.example.org, host:port, or {}",
      text,
      kAnyPublic
  );
}

}  // namespace whimbrel::http
