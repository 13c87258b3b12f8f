#include "weights/hub_client.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "weights/quote.h"

namespace whimbrel {

namespace {

using std::chrono::milliseconds;

constexpr int kMaxRedirects = 10;
constexpr int kMaxTries = 5;
constexpr milliseconds kFirstWait{500};
constexpr milliseconds kWaitSlice{50};
constexpr uint64_t kLongestWait = 120;  // seconds
constexpr uint64_t kLargestFile = uint64_t{1} << 50;
constexpr size_t kMaxListingBytes = size_t{32} << 20;
constexpr size_t kMaxUnusedBytes = size_t{1} << 20;
constexpr size_t kMaxFiles = 100'000;
constexpr int kListingSeconds = 120;

bool is_success(const HttpHead& head) {
  return head.status == 200 || head.status == 206;
}

bool may_work_later(const HttpResult& result) {
  const int status = result.head.status;
  return !result.loss.empty() || status == 408 || status == 429 || status >= 500;
}

/// What the user reads of a failure that may have passed the next time.
std::string reason(const HttpResult& result) {
  return result.loss.empty() ? fmt::format("status {}", result.head.status) : result.loss;
}

void sleep_unless(const Cancelled& cancelled, milliseconds time) {
  const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (cancelled && cancelled()) {
      throw_interrupted();
    }
    std::this_thread::sleep_for(kWaitSlice);
  }
}

[[noreturn]] void throw_not_found(const HubModel& model, const HttpHead& head) {
  const std::string code = head.header("x-error-code");
  if (code == "RevisionNotFound") {
    throw Error(
        Fault::network,
        model.repo,
        "got no revision {} of this model, expected one of its branches, tags or commits",
        quote(model.revision)
    );
  }
  throw Error(
      Fault::network,
      model.repo,
      "got no such model from the hub (status {}), expected the name of one; check its spelling, "
      "or "
      "set HF_TOKEN if it is private",
      head.status
  );
}

/// For a status that no further try changes.
[[noreturn]] void throw_status(
    const HubModel& model, const HttpHead& head, const std::string& endpoint
) {
  const std::string code = head.header("x-error-code");
  if (code == "GatedRepo") {
    throw Error(
        Fault::network,
        model.repo,
        "got a gated model (status {}), expected leave to read it; ask for it at {}/{}, then set "
        "HF_TOKEN",
        head.status,
        endpoint,
        model.repo
    );
  }
  if (head.status == 401 || head.status == 404) {
    throw_not_found(model, head);
  }
  if (head.status == 403) {
    throw Error(
        Fault::network,
        model.repo,
        "got no leave to read this model (status 403), expected a token that has it; check HF_TOKEN"
    );
  }
  throw Error(
      Fault::network,
      model.repo,
      "got status {} from the hub, expected 200; check HF_ENDPOINT",
      head.status
  );
}

/// A sink that gives on what an answer with success holds; the body of another one is looked past.
HttpSink only_success(const HttpSink& sink, const std::string& where) {
  const auto success = std::make_shared<bool>(false);
  const auto unused = std::make_shared<size_t>(0);
  const auto on_head = [&sink, success](const HttpHead& head) {
    *success = is_success(head);
    if (*success && sink.on_head) {
      sink.on_head(head);
    }
  };
  const auto on_body = [&sink, success, unused, where](std::string_view bytes) {
    if (*success && sink.on_body) {
      sink.on_body(bytes);
      return;
    }
    *unused += bytes.size();
    if (*unused > kMaxUnusedBytes) {
      throw Error(
          Fault::network, where, "got over {} bytes of an error page from the hub", kMaxUnusedBytes
      );
    }
  };
  return {.on_head = on_head, .on_body = on_body};
}

HttpUrl next_url(const HttpUrl& url, const HttpHead& head) {
  const std::string location = head.header("location");
  const std::optional<HttpUrl> next = resolve_location(url, location);
  if (!next) {
    throw Error(
        Fault::network,
        url.host,
        "got a redirect to {}, expected an http or https address",
        quote(location.substr(0, location.find('?')))
    );
  }
  if (is_downgrade(url, *next)) {
    throw Error(
        Fault::network,
        url.host,
        "got a redirect from https to http at {}, expected https; nothing was sent there",
        next->host
    );
  }
  return *next;
}

uint64_t described_size(const HttpHead& head, const std::string& where) {
  const bool is_linked = !head.header("x-linked-size").empty();
  std::optional<uint64_t> size;
  if (is_linked || !head.is_redirect()) {  // a redirect's own length is that of its page
    size = head.size(is_linked ? "x-linked-size" : "content-length");
  }
  if (!size || *size > kLargestFile) {
    throw Error(Fault::network, where, "got no usable size from the hub; check HF_ENDPOINT");
  }
  return *size;
}

std::string described_blob(const HttpHead& head, const std::string& where) {
  const std::string linked = head.header("x-linked-etag");
  const std::string etag = linked.empty() ? head.header("etag") : linked;
  const std::optional<std::string> blob = blob_name(etag);
  if (!blob) {
    throw Error(
        Fault::network,
        where,
        "got the ETag {} from the hub, expected a hash of 40 or 64 hex digits; check HF_ENDPOINT",
        quote(etag)
    );
  }
  return *blob;
}

HttpUrl checked_endpoint(const std::string& text) {
  const std::optional<HttpUrl> url = parse_http_url(text);
  if (!url) {
    throw Error(Fault::usage, "HF_ENDPOINT", "got {}, expected an address", quote(text));
  }
  return *url;
}

std::string listed_name(const Json& sibling, const JsonSource& source) {
  std::string name = get_string(sibling, "rfilename", source);
  if (!is_safe_file_name(name)) {
    throw Error(
        source.fault,
        source.where,
        "got the unsafe file name {} from the hub, expected names that stay in the model's folder; "
        "nothing was written",
        quote(name)
    );
  }
  return name;
}

}  // namespace

HubListing parse_hub_listing(std::string_view bytes, const std::string& repo) {
  const JsonSource source{repo, Fault::network};
  const Json root = parse_json(bytes, repo, source.fault);
  HubListing listing{.commit = get_string(root, "sha", source)};
  if (!is_commit(listing.commit)) {
    throw Error(
        source.fault,
        repo,
        "got the commit {} from the hub, expected 40 hex digits",
        quote(listing.commit)
    );
  }
  if (!has_value(root, "siblings") || !root.at("siblings").is_array() ||
      root.at("siblings").size() > kMaxFiles) {
    throw Error(source.fault, repo, "got no usable list of files from the hub; check HF_ENDPOINT");
  }
  for (const Json& sibling : root.at("siblings")) {
    listing.files.push_back(listed_name(sibling, source));
  }
  return listing;
}

HubClient::HubClient(const HubSettings& settings, Cancelled cancelled)
    : settings_(settings),
      endpoint_(checked_endpoint(settings.endpoint)),
      cancelled_(cancelled),
      http_(settings.ca_file, std::move(cancelled)) {}

HttpResult HubClient::follow(HttpRequest request, const HttpSink& sink, Follow which) {
  HttpUrl url = checked_endpoint(request.url);
  bool at_home = true;  // once a redirect has left the endpoint, what comes is not its word
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    at_home = at_home && same_origin(url, endpoint_);
    request.url = url.text;
    request.token = at_home ? settings_.token : std::string();
    HttpResult result = http_.transfer(request, only_success(sink, url.host));
    if (!result.loss.empty() || !result.head.is_redirect()) {
      return result;
    }
    const HttpUrl next = next_url(url, result.head);
    if (which == Follow::same_origin && !same_origin(url, next)) {
      return result;
    }
    url = next;
  }
  throw Error(
      Fault::network,
      endpoint_.host,
      "got over {} redirects, expected a file; check HF_ENDPOINT",
      kMaxRedirects
  );
}

void HubClient::wait_for_retry(const HttpResult& result, const HubModel& model, int tries) {
  if (!may_work_later(result)) {
    throw_status(model, result.head, settings_.endpoint);
  }
  const uint64_t asked = result.loss.empty() ? result.head.retry_after : 0;
  if (asked > kLongestWait) {
    throw Error(
        Fault::network,
        model.repo,
        "got status {}: the hub asks to wait {} s; pull again then",
        result.head.status,
        asked
    );
  }
  if (tries >= kMaxTries) {
    throw Error(
        Fault::network,
        model.repo,
        "got no answer from {} in {} tries: {}; check the network, then pull again",
        endpoint_.host,
        kMaxTries,
        reason(result)
    );
  }
  const milliseconds own = kFirstWait * (1 << (tries - 1));
  sleep_unless(cancelled_, std::max<milliseconds>(own, std::chrono::seconds(asked)));
}

HttpResult HubClient::request_with_retries(
    const HttpRequest& request, const HttpSink& sink, const HubModel& model
) {
  for (int tries = 1;; ++tries) {
    HttpResult result = follow(request, sink, Follow::same_origin);
    const bool settled = is_success(result.head) || result.head.is_redirect();
    if (result.loss.empty() && settled) {
      return result;
    }
    wait_for_retry(result, model, tries);
  }
}

HubListing HubClient::list_files(const HubModel& model) {
  const HttpRequest request{
      .url = fmt::format(
          "{}/api/models/{}/revision/{}",
          settings_.endpoint,
          model.repo,
          percent_encode(model.revision)
      ),
      .connect_seconds = settings_.etag_timeout,
      .stall_seconds = settings_.etag_timeout,
      .total_seconds = kListingSeconds,
  };
  std::string bytes;
  const auto on_head = [&bytes](const HttpHead&) { bytes.clear(); };
  const auto on_body = [&bytes, &model](std::string_view piece) {
    bytes += piece;
    if (bytes.size() > kMaxListingBytes) {
      throw Error(
          Fault::network, model.repo, "got a list of files of over {} bytes", kMaxListingBytes
      );
    }
  };
  const HttpResult result =
      request_with_retries(request, {.on_head = on_head, .on_body = on_body}, model);
  if (result.head.is_redirect()) {
    throw Error(
        Fault::network,
        model.repo,
        "got a redirect to another host, expected a list of files; check HF_ENDPOINT"
    );
  }
  return parse_hub_listing(bytes, model.repo);
}

std::string HubClient::file_url(
    const std::string& repo, const std::string& commit, const std::string& name
) const {
  return fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, repo, commit, percent_encode(name));
}

HubFile HubClient::describe(
    const std::string& repo, const std::string& commit, const std::string& name
) {
  const HttpRequest request{
      .url = file_url(repo, commit, name),
      .head = true,
      .connect_seconds = settings_.etag_timeout,
      .stall_seconds = settings_.etag_timeout,
      .total_seconds = settings_.etag_timeout,
  };
  const HttpHead head = request_with_retries(request, {}, {repo, commit}).head;
  const std::string where = fmt::format("{} {}", repo, name);
  if (head.header("x-repo-commit") != commit) {
    throw Error(
        Fault::network,
        where,
        "got the commit {} from the hub, expected {}; check HF_ENDPOINT",
        quote(head.header("x-repo-commit")),
        commit
    );
  }
  return {name, described_size(head, where), described_blob(head, where)};
}

HttpResult HubClient::fetch(
    const std::string& repo,
    const std::string& commit,
    const std::string& name,
    uint64_t first_byte,
    const HttpSink& sink
) {
  const HttpRequest request{
      .url = file_url(repo, commit, name),
      .first_byte = first_byte,
      .connect_seconds = settings_.download_timeout,
      .stall_seconds = settings_.download_timeout,
  };
  return follow(request, sink, Follow::anywhere);
}

}  // namespace whimbrel
