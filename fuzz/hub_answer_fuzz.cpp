// Any bytes as what a hub sends: a list of files, an ETag, the target of a redirect. What is
// accepted stays inside its folder, and leads to http or https only.

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "weights/hub_client.h"
#include "weights/hub_names.h"
#include "weights/hub_url.h"

namespace {

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

bool stays_inside(const std::string& name) {
  const std::filesystem::path folder = "/a/b";
  const std::filesystem::path file = (folder / name).lexically_normal();
  return file.string().starts_with("/a/b/") && name.find('\0') == std::string::npos;
}

void check_listing(std::string_view input) {
  try {
    const whimbrel::HubListing listing = whimbrel::parse_hub_listing(input, "owner/name");
    require(listing.commit.size() == 40 && stays_inside(listing.commit));
    for (const std::string& name : listing.files) {
      require(stays_inside(name));
    }
  } catch (const whimbrel::Error&) {
  }
}

void check_headers(std::string_view input) {
  const std::optional<std::string> blob = whimbrel::blob_name(input);
  require(!blob || stays_inside(*blob));
  const std::optional<whimbrel::HttpUrl> base = whimbrel::parse_http_url("https://hub.example/a");
  const std::optional<whimbrel::HttpUrl> url = whimbrel::resolve_location(*base, input);
  require(!url || url->scheme == "http" || url->scheme == "https");
  require(!url || whimbrel::parse_http_url(url->text));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_listing(input);
  check_headers(input);
  return 0;
}
