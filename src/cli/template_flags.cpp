#include "cli/template_flags.h"

#include <filesystem>

#include "base/error.h"

namespace whimbrel {

void add_template_options(CLI::App& command, TemplateFlags& flags) {
  command.add_option("--chat-template", flags.file, "Jinja file instead of the model's");
  command.add_option("--chat-template-kwargs", flags.kwargs, "JSON object of template variables");
  command.add_option("--thinking", flags.thinking, "Let a thinking model think (on, off)")
      ->check(CLI::IsMember({"on", "off"}));
}

ChatTemplate load_template(const TemplateFlags& flags, const Frontend& frontend) {
  const std::filesystem::path& folder = frontend.config.folder;
  return flags.file.empty() ? ChatTemplate::load(folder, frontend.tokenizer)
                            : ChatTemplate::load_file(flags.file, folder, frontend.tokenizer);
}

Json template_kwargs(const TemplateFlags& flags) {
  Json kwargs = Json::object();
  if (!flags.kwargs.empty()) {
    kwargs = parse_json(flags.kwargs, "--chat-template-kwargs", Fault::usage);
    if (!kwargs.is_object()) {
      throw Error(
          Fault::usage, "--chat-template-kwargs", "got {}, expected an object", kwargs.type_name()
      );
    }
  }
  if (!flags.thinking.empty()) {
    kwargs["enable_thinking"] = flags.thinking == "on";
  }
  return kwargs;
}

}  // namespace whimbrel
