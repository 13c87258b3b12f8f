#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/prepare.h"

namespace whimbrel {

/// Fetches a picture or video that a message names by path, `file://` or `data:` URL.
using MediaReader = std::function<MediaInput(const std::string& url, MediaKind kind)>;

/// Reads OpenAI's `messages` array, or an object that holds `messages` (and `tools`), into a
/// conversation. Parts: `text`, `image_url` and `video_url` (a string, or an object with `url`),
/// `video` (a list of its frames' pictures as it is, with their `fps`), and the spellings
/// `input_text` and `input_image`. The role `developer` counts as `system`. Throws
/// Error(Fault::input) that names the message and part.
ChatInput read_messages(const Json& json, const MediaReader& read_media);

/// The bytes of a `data:<type>;base64,<data>` URL. A video of type `video/jpeg` is a list of
/// frames, separated by commas. Throws Error(Fault::input).
MediaInput read_data_url(std::string_view url, MediaKind kind);

}  // namespace whimbrel
