#pragma once

#include <string_view>

#include "base/json.h"

namespace whimbrel {

/// The positive integer at `key`.
int get_size(const Json& object, std::string_view key, const JsonSource& source);

/// The number of layers at `key`, 1 to 1000.
int get_depth(const Json& object, std::string_view key, const JsonSource& source);

/// Throws Error(Fault::model) where hidden_act is stated and not `expected`.
void require_activation(const Json& object, std::string_view expected, const JsonSource& source);

/// Throws Error(Fault::model) unless the value of `key` is over 0.
void require_positive(double value, std::string_view key, const JsonSource& source);

}  // namespace whimbrel
