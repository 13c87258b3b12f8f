#include "cli/ops_choice.h"

#include <cstdlib>

#include "ops/ops.h"

namespace whimbrel {

std::string requested_ops() {
  const char* value = std::getenv("WHIMBREL_OPS");
  return value == nullptr ? "" : value;
}

std::string requested_ops_name() {
  return std::string(ops::make_ops(requested_ops(), ops::mx::float32)->name());
}

}  // namespace whimbrel
