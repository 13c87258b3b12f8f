#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/json.h"
#include "engine/frontend.h"
#include "text/chat_template.h"

namespace whimbrel {

/// The flags of the chat template, as typed.
struct TemplateFlags {
  std::string file = {};      // instead of the checkpoint's own
  std::string kwargs = {};    // a JSON object
  std::string thinking = {};  // on, off, or nothing
};

/// Adds --chat-template, --chat-template-kwargs and --thinking to a command.
void add_template_options(CLI::App& command, TemplateFlags& flags);

/// The template that the flags ask for. Throws Error(Fault::model) as ChatTemplate does.
ChatTemplate load_template(const TemplateFlags& flags, const Frontend& frontend);

/// The template's further variables: an object. Throws Error(Fault::usage) where the flag holds
/// none.
Json template_kwargs(const TemplateFlags& flags);

}  // namespace whimbrel
