#include "cli/input_files.h"

#include "base/file.h"
#include "cli/terminal.h"
#include "media/decode.h"

namespace whimbrel {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kFileScheme = "file://";

[[noreturn]] void throw_not_fetched(const std::string& url) {
  throw Error(
      Fault::input,
      url.substr(0, 80),
      "got a URL to fetch, expected a path, file:// or data:; download it first"
  );
}

}  // namespace

MediaInput read_media_file(const fs::path& path, const std::string& source, MediaKind kind) {
  if (source.starts_with("http://") || source.starts_with("https://")) {
    throw_not_fetched(source);
  }
  const uint64_t most = kind == MediaKind::image ? ImageLimits{}.max_bytes : kMaxVideoBytes;
  return {.source = source, .bytes = read_file(path, Fault::input, most), .kind = kind};
}

MediaInput read_media_url(const std::string& url, MediaKind kind, const fs::path& folder) {
  if (url.starts_with("data:")) {
    return read_data_url(url, kind);
  }
  if (url.starts_with(kFileScheme)) {
    return read_media_file(folder / url.substr(kFileScheme.size()), url, kind);
  }
  if (url.find("://") != std::string::npos) {
    throw_not_fetched(url);
  }
  return read_media_file(folder / url, url, kind);
}

ChatInput read_messages_file(const std::string& file) {
  const std::string text = file == "-" ? read_stdin() : read_file(file, Fault::input);
  const fs::path folder = file == "-" ? fs::path() : fs::path(file).parent_path();
  return read_messages(
      parse_json(text, file == "-" ? "stdin" : file, Fault::input),
      [&folder](const std::string& url, MediaKind kind) {
        return read_media_url(url, kind, folder);
      }
  );
}

}  // namespace whimbrel
