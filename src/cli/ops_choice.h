#pragma once

#include <string>

#include "ops/ops.h"

namespace CLI {
class App;
}

namespace whimbrel {

/// The value of WHIMBREL_OPS, empty where it isn't set.
std::string requested_ops();

/// The name of the operations that a model would get.
std::string requested_ops_name();

/// Adds the flag --prefill-int8 to a command.
void add_prefill_int8(CLI::App& command, ops::OpsOptions& options);

}  // namespace whimbrel
