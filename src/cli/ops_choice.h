#pragma once

#include <string>

namespace whimbrel {

/// The value of WHIMBREL_OPS, empty where it isn't set.
std::string requested_ops();

/// The name of the operations that a model would get.
std::string requested_ops_name();

}  // namespace whimbrel
