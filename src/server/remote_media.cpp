#include "server/remote_media.h"

#include <curl/curl.h>
#include <fcntl.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "base/error.h"
#include "server/remote_url.h"

namespace whimbrel::http {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxHeaderBytes = size_t{64} << 10;
constexpr long kFound = 200;

/// Why a transfer was stopped from here.
enum class Stopped { no, too_large, encoded, no_file, no_memory };

/// One answer, and what the library's callbacks work on.
struct Transfer {
  CURL* handle = nullptr;
  AddressCheck may_connect = nullptr;
  uint64_t max_bytes = 0;
  size_t header_bytes = 0;
  std::string location = {};
  std::string body = {};
  Stopped stopped = Stopped::no;

  long status() const {
    long value = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &value);
    return value;
  }
};

// The address is the one that the kernel will be given, after all names are resolved.
curl_socket_t open_socket(void* context, curlsocktype, curl_sockaddr* address) {
  if (!static_cast<const Transfer*>(context)->may_connect(address->addr)) {
    return CURL_SOCKET_BAD;
  }
  const int opened = socket(address->family, address->socktype, address->protocol);
  if (opened >= 0) {
    fcntl(opened, F_SETFD, FD_CLOEXEC);
  }
  return opened;
}

/// The value of a header line of this name.
std::optional<std::string_view> header_value(std::string_view line, std::string_view name) {
  const auto equal = [](unsigned char a, unsigned char b) { return std::tolower(a) == b; };
  if (line.size() <= name.size() || line[name.size()] != ':' ||
      !std::ranges::equal(line.substr(0, name.size()), name, equal)) {
    return std::nullopt;
  }
  constexpr std::string_view kSpace = " \t\r\n";
  line.remove_prefix(name.size() + 1);
  const size_t begin = line.find_first_not_of(kSpace);
  return begin == std::string_view::npos
             ? std::string_view()
             : line.substr(begin, line.find_last_not_of(kSpace) + 1 - begin);
}

void note_header(Transfer& transfer, std::string_view line) {
  transfer.header_bytes += line.size();
  const std::optional<std::string_view> coding = header_value(line, "content-encoding");
  if (coding && !coding->empty() && *coding != "identity") {
    transfer.stopped = Stopped::encoded;
  }
  if (transfer.header_bytes > kMaxHeaderBytes) {
    transfer.stopped = Stopped::too_large;
  }
  if (const std::optional<std::string_view> location = header_value(line, "location")) {
    transfer.location = *location;
  }
}

void note_body(Transfer& transfer, std::string_view bytes) {
  if (transfer.status() != kFound) {
    transfer.stopped = Stopped::no_file;
  } else if (transfer.body.size() + bytes.size() > transfer.max_bytes) {
    transfer.stopped = Stopped::too_large;
  } else {
    transfer.body += bytes;
  }
}

/// The library's callback around one of the above: no exception may pass through C.
template <void (*note)(Transfer&, std::string_view)>
size_t on_bytes(char* data, size_t, size_t bytes, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  try {
    note(transfer, {data, bytes});
  } catch (const std::bad_alloc&) {
    transfer.stopped = Stopped::no_memory;
  }
  return transfer.stopped == Stopped::no ? bytes : 0;
}

/// Sets an option that the library can't refuse but for want of memory.
template <typename Value>
void set(CURL* handle, CURLoption option, Value value) {
  if (curl_easy_setopt(handle, option, value) != CURLE_OK) {
    throw std::bad_alloc();
  }
}

void set_rules(CURL* handle) {
  set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  set(handle, CURLOPT_FOLLOWLOCATION, 0L);
  set(handle, CURLOPT_PROXY, "");  // nor what the environment says
  set(handle, CURLOPT_NOSIGNAL, 1L);
  set(handle, CURLOPT_USERAGENT, "whimbrel");
#if LIBCURL_VERSION_NUM >= 0x075700
  set(handle, CURLOPT_QUICK_EXIT, 1L);  // a resolver that hangs is left behind
#endif
}

void set_callbacks(CURL* handle, Transfer& transfer) {
  set(handle, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(handle, CURLOPT_OPENSOCKETDATA, static_cast<void*>(&transfer));
  set(handle, CURLOPT_HEADERFUNCTION, on_bytes<note_header>);
  set(handle, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(handle, CURLOPT_WRITEFUNCTION, on_bytes<note_body>);
  set(handle, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
}

[[noreturn]] void refuse_late(std::string_view where) {
  throw Error(
      Fault::input,
      where,
      "got no whole file in the time that a request has for fetching, expected a faster host, or "
      "the bytes as a data: URL"
  );
}

long milliseconds_left(const FetchLimits& limits, std::string_view where) {
  using std::chrono::milliseconds;
  const auto left = std::chrono::duration_cast<milliseconds>(limits.deadline - Clock::now());
  if (left.count() < 1) {
    refuse_late(where);
  }
  return static_cast<long>(left.count());
}

[[noreturn]] void refuse_failed(CURLcode code, std::string_view where) {
  if (code == CURLE_OPERATION_TIMEDOUT) {
    refuse_late(where);
  }
  throw Error(
      Fault::input,
      where,
      "got an address that can't be fetched: its host isn't there, isn't on the public internet, "
      "has no valid certificate, or broke off; expected one that answers, or a data: URL"
  );
}

void require_kept(const Transfer& transfer, std::string_view where) {
  if (transfer.stopped == Stopped::no_memory) {
    throw std::bad_alloc();
  }
  if (transfer.stopped == Stopped::too_large) {
    throw Error(
        Fault::input,
        where,
        "got an answer that is too large, expected a file of at most {} bytes",
        transfer.max_bytes
    );
  }
  if (transfer.stopped == Stopped::encoded) {
    throw Error(Fault::input, where, "got a compressed answer, expected the bare bytes of a file");
  }
}

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;

Handle new_handle() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  Handle handle(code == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (!handle) {
    throw std::bad_alloc();
  }
  return handle;
}

using Multi = std::unique_ptr<CURLM, decltype(&curl_multi_cleanup)>;

/// A transfer that is looked after while it goes on.
class Attended {
 public:
  explicit Attended(CURL* handle) : handle_(handle), multi_(curl_multi_init(), curl_multi_cleanup) {
    if (!multi_ || curl_multi_add_handle(multi_.get(), handle) != CURLM_OK) {
      throw std::bad_alloc();
    }
  }
  ~Attended() { curl_multi_remove_handle(multi_.get(), handle_); }
  Attended(const Attended&) = delete;
  Attended& operator=(const Attended&) = delete;

  /// As the blocking call of libcurl, which would ask once a second only.
  CURLcode perform(const Cancelled& cancelled, std::string_view where) {
    int running = 1;
    while (true) {
      require_wanted(cancelled, where);
      require_memory(curl_multi_perform(multi_.get(), &running));
      if (running == 0) {
        return result();
      }
      require_memory(curl_multi_poll(multi_.get(), nullptr, 0, kLookMs, nullptr));
    }
  }

 private:
  static constexpr int kLookMs = kCancelledLook.count();

  static void require_memory(CURLMcode code) {
    if (code != CURLM_OK) {
      throw std::bad_alloc();
    }
  }

  CURLcode result() {
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
    return message == nullptr ? CURLE_FAILED_INIT : message->data.result;
  }

  CURL* handle_;
  Multi multi_;
};

/// A file, or where it is said to be.
struct Found {
  std::string body = {};
  std::string location = {};
};

/// Asks once.
Found ask(
    const RemoteUrl& url,
    const FetchLimits& limits,
    std::string_view where,
    AddressCheck may_connect
) {
  const Handle handle = new_handle();
  Transfer transfer{
      .handle = handle.get(), .may_connect = may_connect, .max_bytes = limits.max_bytes
  };
  set_rules(handle.get());
  set_callbacks(handle.get(), transfer);
  set(handle.get(), CURLOPT_CURLU, url.parsed.get());
  set(handle.get(), CURLOPT_TIMEOUT_MS, milliseconds_left(limits, where));
  const CURLcode code = Attended(handle.get()).perform(limits.cancelled, where);
  require_kept(transfer, where);
  const long status = transfer.status();
  if (is_redirect(status) && !transfer.location.empty()) {
    return {.location = std::move(transfer.location)};
  }
  if (code != CURLE_OK && transfer.stopped == Stopped::no) {
    refuse_failed(code, where);
  }
  if (status != kFound) {
    throw Error(Fault::input, where, "got status {} for an address, expected a file", status);
  }
  return {.body = std::move(transfer.body)};
}

}  // namespace

std::string fetch_remote(
    const std::string& address,
    const std::vector<std::string>& hosts,
    const FetchLimits& limits,
    std::string_view where,
    AddressCheck may_connect
) {
  RemoteUrl url = parse_remote_url(address, where);
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    require_allowed(url, hosts, where);
    Found found = ask(url, limits, where, may_connect);
    if (found.location.empty()) {
      return std::move(found.body);
    }
    url = follow_redirect(url, found.location, where);
  }
  throw Error(
      Fault::input, where, "got over {} redirects, expected the file's own address", kMostRedirects
  );
}

}  // namespace whimbrel::http
