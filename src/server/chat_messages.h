#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/prompt.h"
#include "server/fields.h"

namespace whimbrel::wire {

/// How closely a picture is to be looked at (OpenAI's `detail`).
enum class ImageDetail { automatic, low, high };

/// A picture or video of a conversation, in the order in which engine/messages.h reads them.
struct MediaPart {
  std::string param = {};  // where it stands: `messages[1].content[0].image_url`
  MediaKind kind = MediaKind::image;
  ImageDetail detail = ImageDetail::automatic;
};

/// A conversation as a client sent it, checked.
struct ChatMessages {
  Json messages = Json::array();  // for engine/messages.h
  std::vector<MediaPart> media = {};
};

/// Checks `messages`: a list of objects with the roles system, developer, user, assistant and tool;
/// content that is text, null beside tool calls (absent counts as null), or a list of parts (text,
/// image_url, video_url, video, input_text, input_image). What changes: the arguments of tool calls
/// become objects, which is what templates print, where their text is one; a list of texts alone
/// becomes one text, for templates of text models print nothing of a list. Throws
/// http::ApiException (400) that names the field.
ChatMessages read_chat_messages(const Field& messages, const RequestLimits& limits);

/// The arguments of a call as templates want them: an object where the text is one, else the text.
/// No text is no argument.
Json call_arguments(const std::string& text);

/// `detail`: low, high or auto.
ImageDetail read_detail(Fields& fields);

/// One text where a list of parts holds texts alone, as it stands where it holds others.
Json joined_texts(const Json& parts);

}  // namespace whimbrel::wire
