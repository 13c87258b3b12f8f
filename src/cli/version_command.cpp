#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/ops_choice.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace whimbrel {

namespace {

std::string lines_of(const Json& build) {
  std::string text;
  for (const auto& [key, value] : build.items()) {
    text +=
        fmt::format("{:<9} {}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

}  // namespace

void add_version_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("version", "Say which build this is and what it runs on");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "One line of JSON");
  command->footer("Example:\n  whimbrel version --json");
  command->callback([as_json] {
    const Json build = build_json(requested_ops_name());
    write_stdout(*as_json ? json_line(build) : lines_of(build));
  });
}

}  // namespace whimbrel
