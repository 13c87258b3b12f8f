#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/cancelled.h"
#include "engine/messages.h"

namespace whimbrel::http {

/// Where pictures and videos may come from, beside the request itself.
struct MediaSources {
  std::filesystem::path folder = {};           // of file:// addresses; empty: no file is opened
  std::vector<std::string> remote_hosts = {};  // as remote_host gives them; empty: none is asked
};

/// What a request may take to fetch all of its pictures and videos.
constexpr std::chrono::seconds kFetchTime{10};

/// Nor are frames of a video fetched one by one.
constexpr int kMostFetches = 16;

/// Reads what one request names: the bytes in a `data:` URL; a file by `file://PATH`, where PATH is
/// relative to the folder, or absolute and below it; or what an http(s) address gives, in
/// kFetchTime for all of them together. Throws Error(Fault::input) where that isn't allowed, isn't
/// there, or is over a bound; Error(Fault::interrupted) where a fetch was cancelled.
MediaReader media_reader(const MediaSources& sources, Cancelled cancelled = {});

}  // namespace whimbrel::http
