#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/prepare.h"

namespace whimbrel {

/// Fetches a picture that a message names by path, `file://` or `data:` URL.
using MediaReader = std::function<MediaInput(const std::string& url)>;

/// Reads OpenAI's `messages` array, or an object that holds `messages` (and `tools`), into a
/// conversation. Parts: `text`, `image_url` (a string, or an object with `url`), and the spellings
/// `input_text` and `input_image`. The role `developer` counts as `system`. Throws
/// Error(Fault::input) that names the message and part.
ChatInput read_messages(const Json& json, const MediaReader& read_media);

/// The bytes of a `data:<type>;base64,<data>` URL. Throws Error(Fault::input).
MediaInput read_data_url(std::string_view url);

}  // namespace whimbrel
