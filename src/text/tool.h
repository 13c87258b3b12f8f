#pragma once

#include <string>

#include "base/json.h"

namespace whimbrel {

/// A tool that an answer may call.
struct Tool {
  std::string name = {};      // 1 to 64 of letters, digits, '_', '-', '.'
  Json parameters = nullptr;  // JSON Schema of an object, or null: any object
};

}  // namespace whimbrel
