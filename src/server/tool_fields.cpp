#include "server/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>

namespace whimbrel::wire {

namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

Tool read_tool(const Json& json, const std::string& path) {
  Fields fields(json, path);
  fields.require("type");
  fields.one_of("type", {"function"});
  const Field function = fields.require("function");
  Fields parts(function.value, function.path);
  Tool tool;
  tool.name = read_tool_name(parts.require("name"));
  parts.text("description");
  parts.boolean("strict");
  if (const std::optional<Field> parameters = parts.find("parameters")) {
    to_object(*parameters);
    tool.parameters = parameters->value;
  }
  return tool;
}

std::vector<Tool> read_tools(const Field& field, const RequestLimits& limits) {
  const Json& list = to_list(field);
  if (std::ssize(list) > limits.tools) {
    refuse(
        field.path, fmt::format("{} tools", list.size()), fmt::format("at most {}", limits.tools)
    );
  }
  std::vector<Tool> tools;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("{}[{}]", field.path, i);
    Tool tool = read_tool(list[i], path);
    if (std::ranges::count(tools, tool.name, &Tool::name) > 0) {
      refuse(path + ".function.name", shown(tool.name) + " again", "a name of its own");
    }
    tools.push_back(std::move(tool));
  }
  return tools;
}

/// `{"type":"function","function":{"name":…}}`
std::string read_chosen_name(const Field& choice) {
  Fields fields(choice.value, choice.path);
  fields.require("type");
  fields.one_of("type", {"function"});
  const Field function = fields.require("function");
  return read_tool_name(Fields(function.value, function.path).require("name"));
}

/// Keeps the one tool of that name.
void choose(ToolFields& read, const std::string& name, const std::string& path) {
  const auto found = std::ranges::find(read.tools, name, &Tool::name);
  if (found == read.tools.end()) {
    refuse(path, shown(name), "the name of one of tools");
  }
  read.tools = {*found};
  read.choice = ToolChoice::required;
}

void read_choice(Fields& fields, ToolFields& read) {
  const std::optional<Field> choice = fields.find("tool_choice");
  read.choice = read.tools.empty() ? ToolChoice::none : ToolChoice::automatic;
  if (!choice || choice->value == "auto") {
    return;
  }
  if (choice->value == "none") {
    read.choice = ToolChoice::none;
  } else if (choice->value == "required") {
    if (read.tools.empty()) {
      refuse(choice->path, shown(choice->value) + " without tools", "tools to choose from");
    }
    read.choice = ToolChoice::required;
  } else if (choice->value.is_object()) {
    choose(read, read_chosen_name(*choice), choice->path + ".function.name");
  } else {
    refuse(choice->path, shown(choice->value), "none, auto, required, or a function by its name");
  }
}

}  // namespace

std::string read_tool_name(const Field& name) {
  constexpr size_t kLongest = 64;
  const std::string& text = to_text(name);
  if (text.empty() || text.size() > kLongest || !std::ranges::all_of(text, is_name_character)) {
    refuse(name.path, shown(name.value), "1 to 64 of letters, digits, '_', '-' and '.'");
  }
  return text;
}

ToolFields read_tool_fields(Fields& fields, const RequestLimits& limits) {
  ToolFields read;
  const std::optional<Field> field = fields.find("tools");
  if (field) {
    read.tools = read_tools(*field, limits);
  }
  read_choice(fields, read);
  read.parallel = fields.boolean("parallel_tool_calls").value_or(true);
  if (read.choice == ToolChoice::none) {
    read.tools.clear();
  } else {
    read.template_tools = field->value;
  }
  return read;
}

}  // namespace whimbrel::wire
