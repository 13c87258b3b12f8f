#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "weights/hub_http.h"
#include "weights/hub_names.h"
#include "weights/hub_settings.h"

namespace whimbrel {

/// What a pull tells while it works. Any of them may be empty.
struct PullEvents {
  /// Before the first byte: bytes of all files to fetch, and how many of them are there already.
  std::function<void(uint64_t total, uint64_t present)> on_plan = {};
  /// A file begins, of which `present` bytes are there from an earlier pull.
  std::function<void(const std::string& file, uint64_t size, uint64_t present)> on_file = {};
  /// Bytes of the current file that are there now.
  std::function<void(uint64_t present)> on_bytes = {};
  /// Another process is fetching the file; this one waits.
  std::function<void(const std::string& file)> on_wait = {};
  /// A transfer broke for `reason` and is tried again.
  std::function<void(const std::string& file, const std::string& reason)> on_retry = {};
};

/// Brings what running a model takes into the cache, and returns the snapshot's folder. Files that
/// are there are not fetched again, and one that broke off goes on where it stopped. A file comes
/// under snapshots/ only when its size and hash are right, and the ref is written last. Throws
/// Error(Fault::network), Error(Fault::io) (a full disk is seen before the first byte where it can
/// be), Error(Fault::model) where the repository holds no model that could be run, and
/// Error(Fault::interrupted).
std::filesystem::path pull_model(
    const HubSettings& settings,
    const HubModel& model,
    const PullEvents& events,
    const Cancelled& cancelled
);

}  // namespace whimbrel
