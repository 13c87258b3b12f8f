#pragma once

#include <mlx/dtype.h>

#include <string>
#include <string_view>

#include "base/json.h"

namespace whimbrel::verify {

namespace mx = mlx::core;

enum class Outcome { passed, failed, not_applicable };

/// What one check found.
struct CheckResult {
  std::string check;
  Outcome outcome = Outcome::failed;
  std::string detail = {};        // one line for people
  Json figures = Json::object();  // the same for programs
};

/// `passed`, `failed` or `not_applicable`.
std::string_view outcome_name(Outcome outcome);

/// `float32` and so on.
std::string dtype_text(mx::Dtype dtype);

CheckResult passed(std::string check, std::string detail, Json figures = Json::object());
CheckResult failed(std::string check, std::string detail, Json figures = Json::object());
CheckResult not_applicable(std::string check, std::string detail);

}  // namespace whimbrel::verify
