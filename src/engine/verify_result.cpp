#include "engine/verify_result.h"

#include <mlx/mlx.h>

#include <sstream>

namespace whimbrel::verify {

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::passed:
      return "passed";
    case Outcome::failed:
      return "failed";
    case Outcome::not_applicable:
      break;
  }
  return "not_applicable";
}

std::string dtype_text(mx::Dtype dtype) {
  std::ostringstream text;
  text << dtype;
  return text.str();
}

CheckResult passed(std::string check, std::string detail, Json figures) {
  return {std::move(check), Outcome::passed, std::move(detail), std::move(figures)};
}

CheckResult failed(std::string check, std::string detail, Json figures) {
  return {std::move(check), Outcome::failed, std::move(detail), std::move(figures)};
}

CheckResult not_applicable(std::string check, std::string detail) {
  return {std::move(check), Outcome::not_applicable, std::move(detail)};
}

}  // namespace whimbrel::verify
