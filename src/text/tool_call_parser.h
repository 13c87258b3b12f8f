#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/tool.h"
#include "text/tool_format.h"

namespace whimbrel {

/// What one byte of a call did.
enum class CallStep {
  going,
  ended,  // it was the last one of the closing tag
  wrong,  // no call goes on like this
};

/// Reads one call, byte by byte, from behind `<tool_call>` to the end of `</tool_call>`.
class ToolCallParser {
 public:
  virtual ~ToolCallParser() = default;

  virtual CallStep push(char c) = 0;

  /// Whether the name is known.
  bool has_name() const { return has_name_; }
  const std::string& name() const { return name_; }

  /// JSON of the arguments since the last call of this.
  std::string take_arguments() { return std::exchange(arguments_, {}); }

 protected:
  bool has_name_ = false;
  std::string name_;
  std::string arguments_;
};

std::unique_ptr<ToolCallParser> make_hermes_parser();

/// `tools` must outlive the parser.
std::unique_ptr<ToolCallParser> make_xml_parser(const std::vector<Tool>& tools);

/// White space of JSON.
inline bool is_white_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

}  // namespace whimbrel
