#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/cancelled.h"

namespace whimbrel {

/// One request. Redirects are not followed, and no body is decompressed.
struct HttpRequest {
  std::string url = {};
  bool head = false;        // HEAD instead of GET
  std::string token = {};   // for Authorization; empty: none
  uint64_t first_byte = 0;  // over 0: asks for the rest from there on
  int connect_seconds = 10;
  int stall_seconds = 10;  // without a byte
  int total_seconds = 0;   // 0: as long as bytes come
};

/// The head of an answer.
struct HttpHead {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // names in lower case
  uint64_t retry_after = 0;                         // seconds that the server asks to wait

  /// The value of a header, empty where it isn't there.
  std::string header(const std::string& name) const;
  /// The value of a header that is a plain number of bytes.
  std::optional<uint64_t> size(const std::string& name) const;
  bool is_redirect() const;
};

/// Takes the body of an answer piece by piece. Either may throw, which ends the transfer.
struct HttpSink {
  std::function<void(const HttpHead&)> on_head = {};  // before the first piece
  std::function<void(std::string_view)> on_body = {};
};

/// How a transfer ended: with a whole answer, or with a `loss`, which says what came in between and
/// may pass if it is tried again.
struct HttpResult {
  HttpHead head = {};
  std::string loss = {};
};

/// Makes requests one after the other over kept-open connections (libcurl). Proxies are those of
/// the environment. Throws Error(Fault::network) where trying again can't help (a certificate),
/// Error(Fault::interrupted) where `cancelled`, asked at least once a second, says so, and what a
/// sink throws.
class HttpClient {
 public:
  explicit HttpClient(std::string ca_file, Cancelled cancelled);

  HttpResult transfer(const HttpRequest& request, const HttpSink& sink = {});

 private:
  struct FreeHandle {
    void operator()(void* handle) const;
  };

  std::unique_ptr<void, FreeHandle> handle_;
  std::string ca_file_;
  Cancelled cancelled_;
};

/// What a pull that the user stopped throws.
[[noreturn]] void throw_interrupted();

}  // namespace whimbrel
