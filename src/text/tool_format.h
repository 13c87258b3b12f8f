#pragma once

#include <string_view>

namespace whimbrel {

/// How a model writes a call of a tool.
enum class ToolFormat {
  none,    // the template knows no tools
  hermes,  // <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>
  xml,     // <tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>
};

/// The format that a chat template asks for, found from its text.
ToolFormat find_tool_format(std::string_view chat_template);

}  // namespace whimbrel
