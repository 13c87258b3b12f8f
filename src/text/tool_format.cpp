#include "text/tool_format.h"

namespace whimbrel {

ToolFormat find_tool_format(std::string_view chat_template) {
  if (chat_template.find("<tool_call>") == std::string_view::npos) {
    return ToolFormat::none;
  }
  const bool has_functions = chat_template.find("<function=") != std::string_view::npos;
  return has_functions ? ToolFormat::xml : ToolFormat::hermes;
}

}  // namespace whimbrel
