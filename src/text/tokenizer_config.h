#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"

namespace whimbrel {

/// A folder's tokenizer_config.json; an empty object where there is none. Throws
/// Error(Fault::model) where it is no JSON object.
Json read_tokenizer_config(const std::filesystem::path& folder);

/// The named special tokens of a tokenizer_config.json ("bos_token", "eos_token", …) by name, as
/// transformers passes them to a chat template. Values are a string or {"content": string}; null
/// ones are left out. Throws Error(Fault::model) on others.
Json named_special_tokens(const Json& config, const std::string& where);

}  // namespace whimbrel
