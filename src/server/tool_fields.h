#pragma once

#include <string>
#include <vector>

#include "server/fields.h"
#include "text/tool.h"

namespace whimbrel::wire {

/// Whether an answer may or must call tools (OpenAI's `tool_choice`).
enum class ToolChoice { none, automatic, required };

/// The tools of a request.
struct ToolFields {
  Json template_tools = nullptr;  // as the client wrote them, for the template; null: none
  std::vector<Tool> tools = {};   // the ones that may be called
  ToolChoice choice = ToolChoice::none;
  bool parallel = true;  // `parallel_tool_calls`
};

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`. Without tools, and with `tool_choice`
/// "none", the model is not told of any. A choice by name is `required` with one tool, of which
/// alone the grammar knows; the template shows all. Throws http::ApiException (400) that names the
/// field.
ToolFields read_tool_fields(Fields& fields, const RequestLimits& limits);

/// A tool's name: 1 to 64 of letters, digits, '_', '-' and '.'.
std::string read_tool_name(const Field& name);

}  // namespace whimbrel::wire
