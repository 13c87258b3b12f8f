#include "weights/hub_http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <exception>
#include <new>
#include <utility>

#include "base/error.h"

namespace whimbrel {

namespace {

constexpr size_t kMaxHeaderBytes = size_t{64} << 10;

/// What the library's callbacks work on. No exception may pass through C: it is kept here.
struct Transfer {
  CURL* handle = nullptr;
  const HttpSink* sink = nullptr;
  const Cancelled* cancelled = nullptr;
  HttpHead head = {};
  size_t header_bytes = 0;
  bool head_given = false;
  std::exception_ptr failure = nullptr;
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

void note_header(Transfer& transfer, std::string_view line) {
  if (line.starts_with("HTTP/")) {  // a new head, after one of 100 or of a proxy
    transfer.head = {};
    return;
  }
  const size_t colon = line.find(':');
  if (colon != std::string_view::npos) {
    transfer.head.headers[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
  }
}

/// Runs what may throw; the number of bytes taken, or another one, at which the library stops.
template <typename Action>
size_t guarded(Transfer& transfer, size_t bytes, Action action) {
  try {
    action();
    return bytes;
  } catch (...) {
    transfer.failure = std::current_exception();
    return bytes == 0 ? 1 : 0;
  }
}

size_t on_header(char* data, size_t, size_t bytes, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  return guarded(transfer, bytes, [&] {
    transfer.header_bytes += bytes;
    if (transfer.header_bytes > kMaxHeaderBytes) {
      throw Error(
          Fault::network,
          "hub",
          "got an answer's head of over {} bytes; the address is no hub, check HF_ENDPOINT",
          kMaxHeaderBytes
      );
    }
    note_header(transfer, {data, bytes});
  });
}

/// Fills in what the library knows of the head, and passes it on.
void give_head(Transfer& transfer) {
  if (transfer.head_given) {
    return;
  }
  transfer.head_given = true;
  long status = 0;
  curl_off_t wait = 0;
  curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(transfer.handle, CURLINFO_RETRY_AFTER, &wait);
  transfer.head.status = static_cast<int>(status);
  transfer.head.retry_after = static_cast<uint64_t>(std::max<curl_off_t>(wait, 0));
  if (transfer.sink->on_head) {
    transfer.sink->on_head(transfer.head);
  }
}

size_t on_body(char* data, size_t, size_t bytes, void* context) {
  Transfer& transfer = *static_cast<Transfer*>(context);
  return guarded(transfer, bytes, [&] {
    give_head(transfer);
    if (transfer.sink->on_body) {
      transfer.sink->on_body({data, bytes});
    }
  });
}

int on_progress(void* context, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const Cancelled& cancelled = *static_cast<Transfer*>(context)->cancelled;
  return cancelled && cancelled() ? 1 : 0;
}

/// Sets an option that the library can't refuse but for want of memory.
template <typename Value>
void set(CURL* handle, CURLoption option, Value value) {
  if (curl_easy_setopt(handle, option, value) != CURLE_OK) {
    throw std::bad_alloc();
  }
}

struct HeaderList {
  curl_slist* list = nullptr;

  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  ~HeaderList() { curl_slist_free_all(list); }

  void add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list, line.c_str());
    if (longer == nullptr) {
      throw std::bad_alloc();
    }
    list = longer;
  }
};

void set_request(CURL* handle, const HttpRequest& request, HeaderList& headers) {
  headers.add("Accept-Encoding: identity");  // sizes and hashes are those of the bare file
  if (!request.token.empty()) {
    headers.add("Authorization: Bearer " + request.token);
  }
  if (request.first_byte > 0) {
    headers.add(fmt::format("Range: bytes={}-", request.first_byte));
  }
  set(handle, CURLOPT_HTTPHEADER, headers.list);
  set(handle, CURLOPT_URL, request.url.c_str());
  set(handle, CURLOPT_NOBODY, request.head ? 1L : 0L);
  set(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.connect_seconds));
  set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_seconds));
  set(handle, CURLOPT_TIMEOUT, static_cast<long>(request.total_seconds));
}

void set_rules(CURL* handle, const std::string& ca_file) {
  set(handle, CURLOPT_USERAGENT, "whimbrel");
  set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  set(handle, CURLOPT_FOLLOWLOCATION, 0L);
  if (!ca_file.empty()) {
    set(handle, CURLOPT_CAINFO, ca_file.c_str());
  }
}

void set_callbacks(CURL* handle, Transfer& transfer) {
  set(handle, CURLOPT_HEADERFUNCTION, on_header);
  set(handle, CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(handle, CURLOPT_WRITEFUNCTION, on_body);
  set(handle, CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(handle, CURLOPT_NOPROGRESS, 0L);
  set(handle, CURLOPT_XFERINFOFUNCTION, on_progress);
  set(handle, CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
}

/// Failures of the connection that may be over the next time.
bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
      return true;
    default:
      return false;
  }
}

std::string host_of(CURL* handle) {
  char* url = nullptr;
  curl_easy_getinfo(handle, CURLINFO_EFFECTIVE_URL, &url);
  // The part before the query: signed addresses keep secrets behind it.
  const std::string_view text = url == nullptr ? "hub" : url;
  return std::string(text.substr(0, text.find('?')));
}

/// The library wants to be told once that it will be used.
void initialise_library() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) {
    throw Error(Fault::network, "hub", "got no network library: {}", curl_easy_strerror(code));
  }
}

}  // namespace

std::string HttpHead::header(const std::string& name) const {
  const std::map<std::string, std::string>::const_iterator found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::optional<uint64_t> HttpHead::size(const std::string& name) const {
  const std::string text = header(name);
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != end) {
    return std::nullopt;
  }
  return value;
}

bool HttpHead::is_redirect() const {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

void throw_interrupted() {
  throw Error(Fault::interrupted, "pull", "interrupted; what came is kept, the next pull goes on");
}

void HttpClient::FreeHandle::operator()(void* handle) const {
  curl_easy_cleanup(handle);
}

HttpClient::HttpClient(std::string ca_file, Cancelled cancelled)
    : ca_file_(std::move(ca_file)), cancelled_(std::move(cancelled)) {
  initialise_library();
  handle_.reset(curl_easy_init());
  if (!handle_) {
    throw std::bad_alloc();
  }
}

HttpResult HttpClient::transfer(const HttpRequest& request, const HttpSink& sink) {
  if (cancelled_ && cancelled_()) {
    throw_interrupted();
  }
  CURL* handle = handle_.get();
  Transfer transfer{.handle = handle, .sink = &sink, .cancelled = &cancelled_};
  HeaderList headers;
  curl_easy_reset(handle);  // keeps the connections
  set_rules(handle, ca_file_);
  set_request(handle, request, headers);
  set_callbacks(handle, transfer);
  const CURLcode code = curl_easy_perform(handle);
  if (transfer.failure) {
    std::rethrow_exception(transfer.failure);
  }
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    throw_interrupted();
  }
  if (code != CURLE_OK && !may_pass(code)) {
    throw Error(
        Fault::network,
        host_of(handle),
        "the request failed: {}; check the address and the network",
        curl_easy_strerror(code)
    );
  }
  if (code == CURLE_OK) {
    give_head(transfer);
  }
  return {transfer.head, code == CURLE_OK ? std::string() : curl_easy_strerror(code)};
}

}  // namespace whimbrel
