#pragma once

#include <filesystem>
#include <string>

#include "engine/messages.h"

namespace whimbrel {

/// The bytes of a picture or video file, called `source` in answers. Throws Error(Fault::input).
MediaInput read_media_file(
    const std::filesystem::path& path, const std::string& source, MediaKind kind
);

/// A picture or video by a path (relative to `folder`), a `file://` or a `data:` URL. Throws
/// Error(Fault::input).
MediaInput read_media_url(
    const std::string& url, MediaKind kind, const std::filesystem::path& folder
);

/// A conversation from a file, or from stdin for `-`. Paths in it are relative to the file, or to
/// the working folder. Throws Error(Fault::input).
ChatInput read_messages_file(const std::string& file);

}  // namespace whimbrel
