#include "cli/ops_choice.h"

#include <CLI/CLI.hpp>
#include <cstdlib>

namespace whimbrel {

std::string requested_ops() {
  const char* value = std::getenv("WHIMBREL_OPS");
  return value == nullptr ? "" : value;
}

std::string requested_ops_name() {
  return std::string(ops::make_ops(requested_ops(), ops::mx::float32)->name());
}

void add_prefill_int8(CLI::App& command, ops::OpsOptions& options) {
  command.add_flag(
      "--prefill-int8",
      options.prefill_int8,
      "Round prompts and pictures to 8 bits where weights are packed: faster on a CPU, and lossy"
  );
}

}  // namespace whimbrel
