#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weights/hub_http.h"
#include "weights/hub_names.h"
#include "weights/hub_settings.h"
#include "weights/hub_url.h"

namespace whimbrel {

/// What a hub says a revision of a model holds. All names are safe (is_safe_file_name).
struct HubListing {
  std::string commit = {};  // 40 hex digits
  std::vector<std::string> files = {};
};

/// Reads the answer of /api/models/REPO/revision/REV. Throws Error(Fault::network) that names
/// `repo` where it has another form or holds a name that isn't safe.
HubListing parse_hub_listing(std::string_view bytes, const std::string& repo);

/// What a hub says of one file.
struct HubFile {
  std::string name = {};
  uint64_t size = 0;      // bytes
  std::string blob = {};  // its hash, which is the blob's name in the cache
};

/// Speaks a hub's HTTP interface. The token is sent to the endpoint's own scheme, host and port and
/// nowhere else, and not to it again behind a redirect that left it. Requests that may work later
/// (429, 5xx, a lost connection) are tried again a few times. Everything that fails for good throws
/// Error(Fault::network) with what to do, and Error(Fault::interrupted) where `cancelled` says so.
class HubClient {
 public:
  HubClient(const HubSettings& settings, Cancelled cancelled);

  HubListing list_files(const HubModel& model);

  /// Asks for size and hash of a file, by HEAD.
  HubFile describe(const std::string& repo, const std::string& commit, const std::string& name);

  /// One try at a file's bytes from `first_byte` on; redirects are followed. `sink` sees the head
  /// of a 200 or 206 only, and its bytes.
  HttpResult fetch(
      const std::string& repo,
      const std::string& commit,
      const std::string& name,
      uint64_t first_byte,
      const HttpSink& sink
  );

  /// Waits before the next try: half a second, doubled with each one, or as long as `result` asks.
  /// Throws Error(Fault::network) where the tries are used up, the wait is too long, or trying
  /// again can't help.
  void wait_for_retry(const HttpResult& result, const HubModel& model, int tries);

 private:
  enum class Follow { same_origin, anywhere };

  HttpResult follow(HttpRequest request, const HttpSink& sink, Follow which);
  HttpResult request_with_retries(
      const HttpRequest& request, const HttpSink& sink, const HubModel& model
  );
  std::string file_url(
      const std::string& repo, const std::string& commit, const std::string& name
  ) const;

  HubSettings settings_;
  HttpUrl endpoint_;
  Cancelled cancelled_;
  HttpClient http_;
};

}  // namespace whimbrel
