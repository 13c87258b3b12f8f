#include "server/media_sources.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "media/decode.h"
#include "server/local_media.h"
#include "server/remote_media.h"

namespace whimbrel::http {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kFile = "file://";

/// What error texts and answers call it: an address may hold secrets.
std::string name_of(MediaKind kind) {
  return kind == MediaKind::image ? "image_url" : "video_url";
}

uint64_t most_bytes(MediaKind kind) {
  return kind == MediaKind::image ? ImageLimits{}.max_bytes : kMaxVideoBytes;
}

bool has_scheme(std::string_view url, std::string_view scheme) {
  return std::ranges::equal(
      url.substr(0, scheme.size()), scheme, [](unsigned char a, unsigned char b) {
        return std::tolower(a) == b;
      }
  );
}

/// `%20` and the like as the bytes that they stand for.
std::string unescaped(std::string_view text) {
  int size = 0;
  const std::unique_ptr<char, decltype(&curl_free)> bytes(
      curl_easy_unescape(nullptr, text.data(), static_cast<int>(text.size()), &size), curl_free
  );
  return bytes ? std::string(bytes.get(), static_cast<size_t>(size)) : std::string();
}

/// Reads the media of one request.
class SourceReader {
 public:
  SourceReader(MediaSources sources, Cancelled cancelled)
      : sources_(std::move(sources)), cancelled_(std::move(cancelled)) {}

  MediaInput read(const std::string& url, MediaKind kind) {
    if (url.starts_with("data:")) {
      return read_data_url(url, kind);
    }
    if (has_scheme(url, kFile)) {
      return {.source = name_of(kind), .bytes = file(url, kind), .kind = kind};
    }
    if (has_scheme(url, "http:") || has_scheme(url, "https:")) {
      return {.source = name_of(kind), .bytes = remote(url, kind), .kind = kind};
    }
    throw Error(
        Fault::input,
        name_of(kind),
        "got another kind of address, expected data:, or file:// or https:// where this server "
        "allows them"
    );
  }

 private:
  std::string file(const std::string& url, MediaKind kind) const {
    if (sources_.folder.empty()) {
      throw Error(
          Fault::input,
          name_of(kind),
          "got a file's address, expected the bytes as a data: URL; this server opens no files "
          "unless started with --media-path"
      );
    }
    const std::string path = unescaped(std::string_view(url).substr(kFile.size()));
    return read_file_below(sources_.folder, path, name_of(kind), most_bytes(kind));
  }

  std::string remote(const std::string& url, MediaKind kind) {
    if (sources_.remote_hosts.empty()) {
      throw Error(
          Fault::input,
          name_of(kind),
          "got an address to fetch, expected the bytes as a data: URL; this server fetches nothing "
          "unless started with --allow-remote-media"
      );
    }
    if (++fetched_ > kMostFetches) {
      throw Error(
          Fault::input,
          name_of(kind),
          "got more than {} addresses to fetch, expected fewer; send the others as data: URLs",
          kMostFetches
      );
    }
    if (!deadline_) {
      deadline_ = Clock::now() + kFetchTime;
    }
    const FetchLimits limits{.deadline = *deadline_, .cancelled = cancelled_};
    return fetch_remote(url, sources_.remote_hosts, limits, name_of(kind));
  }

  MediaSources sources_;
  Cancelled cancelled_;
  int fetched_ = 0;
  std::optional<Clock::time_point> deadline_;  // of all that this request fetches
};

}  // namespace

MediaReader media_reader(const MediaSources& sources, Cancelled cancelled) {
  return [reader = SourceReader(sources, std::move(cancelled))](
             const std::string& url, MediaKind kind
         ) mutable { return reader.read(url, kind); };
}

}  // namespace whimbrel::http
