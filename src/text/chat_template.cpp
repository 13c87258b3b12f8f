#include "text/chat_template.h"

#include <optional>
#include <string>

#include "base/file.h"
#include "text/textkit_handle.h"
#include "text/tokenizer_config.h"

namespace whimbrel {

namespace {

namespace fs = std::filesystem;

struct TemplateSource {
  std::string text;
  std::string where;  // the file it stands in
};

/// The value of "chat_template": a string, or a list of {"name", "template"} with a "default".
std::string template_text(const Json& config, const std::string& where) {
  const JsonSource source{where, Fault::model};
  const Json& value = config.at("chat_template");
  if (!value.is_array()) {
    return get_string(config, "chat_template", source);
  }
  for (const Json& entry : value) {
    if (get_string(entry, "name", source) == "default") {
      return get_string(entry, "template", source);
    }
  }
  throw Error(
      Fault::model, where, "got {} chat templates, expected one named \"default\"", value.size()
  );
}

std::optional<TemplateSource> find_in_json(const fs::path& file) {
  const std::optional<std::string> bytes = read_file_if_present(file, Fault::model);
  if (!bytes) {
    return std::nullopt;
  }
  const Json config = parse_json(*bytes, file.string(), Fault::model);
  if (!has_value(config, "chat_template")) {
    return std::nullopt;
  }
  return TemplateSource{template_text(config, file.string()), file.string()};
}

TemplateSource find_template(const fs::path& folder) {
  const fs::path jinja = folder / "chat_template.jinja";
  if (std::optional<std::string> text = read_file_if_present(jinja, Fault::model)) {
    return {std::move(*text), jinja.string()};
  }
  for (const char* name : {"chat_template.json", "tokenizer_config.json"}) {
    if (std::optional<TemplateSource> found = find_in_json(folder / name)) {
      return std::move(*found);
    }
  }
  throw Error(
      Fault::model,
      folder.string(),
      "got no chat template, expected chat_template.jinja, chat_template.json, or "
      "\"chat_template\" in tokenizer_config.json; give one, or use the model without a template"
  );
}

std::shared_ptr<const textkit::TemplateHandle> compile(
    const TemplateSource& source, const fs::path& folder, const textkit::TokenizerHandle& tokenizer
) {
  const std::string config_file = (folder / "tokenizer_config.json").string();
  const std::string special_tokens =
      named_special_tokens(read_tokenizer_config(folder), config_file).dump();
  textkit_template* compiled = nullptr;
  textkit::check(
      textkit_template_new(
          source.text.data(),
          source.text.size(),
          special_tokens.data(),
          special_tokens.size(),
          tokenizer.get(),
          &compiled
      ),
      Fault::model,
      source.where
  );
  return std::make_shared<textkit::TemplateHandle>(compiled);
}

std::string to_text(const ChatRequest& request) {
  try {
    return fmt::format(
        R"({{"messages":{},"tools":{},"add_generation_prompt":{},"kwargs":{}}})",
        request.messages.dump(),
        request.tools.dump(),
        request.add_generation_prompt,
        request.kwargs.dump()
    );
  } catch (const Json::exception& error) {
    throw Error(Fault::input, "messages", "got text that isn't UTF-8: {}", error.what());
  }
}

}  // namespace

ChatTemplate ChatTemplate::load(const fs::path& folder, const Tokenizer& tokenizer) {
  const TemplateSource source = find_template(folder);
  ChatTemplate chat_template;
  chat_template.handle_ = compile(source, folder, *tokenizer.handle_);
  chat_template.tool_format_ = find_tool_format(source.text);
  return chat_template;
}

ChatTemplate ChatTemplate::load_file(
    const fs::path& file, const fs::path& folder, const Tokenizer& tokenizer
) {
  const TemplateSource source{read_file(file, Fault::model), file.string()};
  ChatTemplate chat_template;
  chat_template.handle_ = compile(source, folder, *tokenizer.handle_);
  chat_template.tool_format_ = find_tool_format(source.text);
  return chat_template;
}

RenderedPrompt ChatTemplate::render(const ChatRequest& request) const {
  const std::string json = to_text(request);
  textkit_text text{};
  uint32_t marker = 0;
  textkit::check(
      textkit_template_render(handle_->get(), json.data(), json.size(), &text, &marker),
      Fault::input,
      "chat template"
  );
  return {.marked = textkit::take(text), .marker = marker};
}

}  // namespace whimbrel
