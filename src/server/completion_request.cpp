#include "server/completion_request.h"

#include <fmt/format.h>

#include <limits>

namespace whimbrel::wire {

namespace {

constexpr std::string_view kPromptForms =
    "a text, token ids, or a list of one kind of them, none empty";

[[noreturn]] void refuse_prompt(const std::string& path, const Json& value) {
  refuse(path, shown(value), kPromptForms);
}

TextPrompt read_prompt(const Json& value, const std::string& path) {
  if (value.empty() || (value.is_string() && value.get_ref<const std::string&>().empty())) {
    refuse_prompt(path, value);
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!value.is_array()) {
    refuse_prompt(path, value);
  }
  return read_token_ids(value, path);
}

std::vector<TextPrompt> read_prompts(const Field& field, const RequestLimits& limits) {
  const Json& value = field.value;
  const bool is_list = value.is_array() && !value.empty() && !value[0].is_number();
  if (!is_list) {
    return {read_prompt(value, field.path)};
  }
  if (std::ssize(value) > limits.prompts) {
    refuse(
        field.path,
        fmt::format("{} prompts", value.size()),
        fmt::format("at most {}", limits.prompts)
    );
  }
  std::vector<TextPrompt> prompts;
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", field.path, i);
    if (value[i].type() != value[0].type()) {
      refuse_prompt(path, value[i]);
    }
    prompts.push_back(read_prompt(value[i], path));
  }
  return prompts;
}

void read_legacy_max_tokens(Fields& fields, GenerationFields& generation) {
  const std::optional<int64_t> predict = fields.integer("n_predict", -1);
  if (!predict) {
    return;
  }
  const std::optional<int> tokens =
      *predict == -1 ? std::nullopt : std::optional(static_cast<int>(*predict));
  const bool contradicts = generation.max_tokens && generation.max_tokens != tokens;
  if (*predict == 0 || contradicts) {
    refuse("n_predict", fmt::to_string(*predict), "at least 1 or -1, and equal to max_tokens");
  }
  generation.max_tokens = tokens;
}

void refuse_unsupported(Fields& fields, const CompletionRequest& read) {
  const std::optional<std::string> suffix = fields.text("suffix");
  if (suffix && !suffix->empty()) {
    refuse("suffix", "a text", "none: text is only added at the end");
  }
  const std::optional<Field> best_of = fields.find("best_of");
  if (best_of && best_of->value != read.generation.choices) {
    refuse(
        "best_of", shown(best_of->value), fmt::format("none, or n: {}", read.generation.choices)
    );
  }
  if (read.echo && read.logprobs) {
    refuse("echo", "true with logprobs", "one of them: prompts have no log probabilities");
  }
}

}  // namespace

std::vector<int32_t> read_token_ids(const Json& list, const std::string& path) {
  std::vector<int32_t> ids;
  ids.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& id = list[i];
    // The path is made for a refusal only: there may be many ids.
    const bool is_plain = id.is_number_unsigned() &&
                          id.get<uint64_t>() <= uint64_t{std::numeric_limits<int32_t>::max()};
    ids.push_back(
        is_plain ? id.get<int32_t>()
                 : static_cast<int32_t>(to_integer(
                       {id, fmt::format("{}[{}]", path, i)}, 0, std::numeric_limits<int32_t>::max()
                   ))
    );
  }
  return ids;
}

CompletionRequest parse_completion_request(std::string_view body, const RequestLimits& limits) {
  const Json json = parse_body(body, limits);
  Fields fields(json);
  CompletionRequest read;
  read.prompts = read_prompts(fields.require("prompt"), limits);
  read.generation = read_generation_fields(fields, limits);
  read_legacy_max_tokens(fields, read.generation);
  read.echo = fields.boolean("echo").value_or(false);
  if (const std::optional<int64_t> top = fields.integer("logprobs", 0, limits.top_logprobs)) {
    read.logprobs = static_cast<int>(*top);
  }
  refuse_unsupported(fields, read);
  accept_without_effect(fields, {"user"});
  read.ignored = fields.unread();
  return read;
}

}  // namespace whimbrel::wire
