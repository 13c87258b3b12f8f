#include "text/tokenizer_config.h"

#include <array>
#include <optional>

#include "base/file.h"

namespace whimbrel {

namespace {

/// transformers' SPECIAL_TOKENS_ATTRIBUTES.
constexpr std::array<const char*, 7> kNames = {
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
};

}  // namespace

Json read_tokenizer_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "tokenizer_config.json";
  const std::optional<std::string> bytes = read_file_if_present(file, Fault::model);
  if (!bytes) {
    return Json::object();
  }
  Json config = parse_json(*bytes, file.string(), Fault::model);
  if (!config.is_object()) {
    throw Error(Fault::model, file.string(), "got {}, expected an object", config.type_name());
  }
  return config;
}

Json named_special_tokens(const Json& config, const std::string& where) {
  const JsonSource source{where, Fault::model};
  Json tokens = Json::object();
  for (const char* name : kNames) {
    if (!has_value(config, name)) {
      continue;
    }
    const Json& token = config.at(name);
    tokens[name] =
        token.is_object() ? get_string(token, "content", source) : get_string(config, name, source);
  }
  return tokens;
}

}  // namespace whimbrel
