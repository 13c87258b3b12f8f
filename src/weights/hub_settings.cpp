#include "weights/hub_settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "weights/hub_url.h"
#include "weights/quote.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kMaxTokenBytes = 4096;
constexpr int kLongestTimeout = 24 * 60 * 60;

std::optional<std::string> first_of(
    const Environment& environment, std::initializer_list<const char*> names
) {
  for (const char* name : names) {
    if (std::optional<std::string> value = environment(name)) {
      return value;
    }
  }
  return std::nullopt;
}

/// True for 1, on, yes and true in any case, as in the Python tools.
bool is_on(const Environment& environment, const char* name) {
  std::string value = environment(name).value_or("");
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

[[noreturn]] void throw_no_home() {
  throw Error(
      Fault::usage, "HOME", "got no home folder; set HF_HOME to where models shall be kept"
  );
}

fs::path home(const Environment& environment) {
  const std::optional<std::string> folder = environment("HOME");
  if (!folder) {
    throw_no_home();
  }
  return *folder;
}

/// A path in which a leading ~ stands for the home folder.
fs::path path_of(const std::string& value, const Environment& environment) {
  if (value == "~" || value.starts_with("~/")) {
    return home(environment) / value.substr(std::min<size_t>(2, value.size()));
  }
  return value;
}

/// Nothing where no variable says where it is.
std::optional<fs::path> hf_home(const Environment& environment) {
  if (const std::optional<std::string> folder = environment("HF_HOME")) {
    return path_of(*folder, environment);
  }
  if (const std::optional<std::string> caches = environment("XDG_CACHE_HOME")) {
    return path_of(*caches, environment) / "huggingface";
  }
  const std::optional<std::string> folder = environment("HOME");
  return folder ? std::optional(fs::path(*folder) / ".cache" / "huggingface") : std::nullopt;
}

std::optional<fs::path> token_file(const Environment& environment) {
  if (const std::optional<std::string> chosen = environment("HF_TOKEN_PATH")) {
    return path_of(*chosen, environment);
  }
  const std::optional<fs::path> folder = hf_home(environment);
  return folder ? std::optional(*folder / "token") : std::nullopt;
}

int seconds(const Environment& environment, const char* name, int fallback) {
  const std::string text = environment(name).value_or(std::to_string(fallback));
  int value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || value < 1 || value > kLongestTimeout) {
    throw Error(
        Fault::usage, name, "got {}, expected seconds from 1 to {}", quote(text), kLongestTimeout
    );
  }
  return value;
}

/// Without the white space that a file or a paste brings along.
std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) {
    return {};
  }
  return std::string(text.substr(begin, text.find_last_not_of(kSpace) - begin + 1));
}

std::string endpoint(const Environment& environment) {
  std::string text = environment("HF_ENDPOINT").value_or(HubSettings{}.endpoint);
  while (text.ends_with('/')) {
    text.pop_back();
  }
  if (!parse_http_url(text)) {
    throw Error(
        Fault::usage,
        "HF_ENDPOINT",
        "got {}, expected the address of a hub, such as https://huggingface.co",
        quote(text)
    );
  }
  return text;
}

}  // namespace

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') {
    return std::nullopt;
  }
  return value;
}

std::string hub_token(const Environment& environment) {
  if (is_on(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
    return {};
  }
  std::string where = "HF_TOKEN";
  std::optional<std::string> text = first_of(environment, {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  const std::optional<fs::path> file = text ? std::nullopt : token_file(environment);
  if (file) {
    where = file->string();
    text = read_file_if_present(*file, Fault::usage, kMaxTokenBytes);
  }
  const std::string value = trimmed(text.value_or(""));
  // It goes into a header; its text is a secret and isn't shown.
  if (!std::ranges::all_of(value, [](char c) { return c > ' ' && c < 0x7f; })) {
    throw Error(Fault::usage, where, "got a token with spaces or odd characters; log in again");
  }
  return value;
}

HubSettings hub_settings(const Environment& environment) {
  HubSettings settings;
  settings.cache = hub_cache_folder(environment);
  settings.endpoint = endpoint(environment);
  settings.token = hub_token(environment);
  settings.ca_file =
      first_of(environment, {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}).value_or("");
  settings.offline =
      is_on(environment, "HF_HUB_OFFLINE") || is_on(environment, "TRANSFORMERS_OFFLINE");
  settings.symlinks = !is_on(environment, "HF_HUB_DISABLE_SYMLINKS");
  settings.progress = !is_on(environment, "HF_HUB_DISABLE_PROGRESS_BARS");
  settings.etag_timeout = seconds(environment, "HF_HUB_ETAG_TIMEOUT", settings.etag_timeout);
  settings.download_timeout =
      seconds(environment, "HF_HUB_DOWNLOAD_TIMEOUT", settings.download_timeout);
  return settings;
}

std::optional<fs::path> find_hub_cache_folder(const Environment& environment) {
  const std::optional<std::string> chosen =
      first_of(environment, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  if (chosen) {
    return path_of(*chosen, environment);
  }
  const std::optional<fs::path> folder = hf_home(environment);
  return folder ? std::optional(*folder / "hub") : std::nullopt;
}

fs::path hub_cache_folder(const Environment& environment) {
  const std::optional<fs::path> folder = find_hub_cache_folder(environment);
  if (!folder) {
    throw_no_home();
  }
  return *folder;
}

}  // namespace whimbrel
