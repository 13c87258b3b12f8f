#pragma once

#include <span>
#include <string>

#include "ablations/measure.h"
#include "base/json.h"

namespace whimbrel::ablations {

/// A raw row: every sample, the bytes, and what the step's graph has more than one without the
/// defect.
Json figure_json(const Figure& figure);

/// A table, one line a figure: medians, least and most in brackets.
std::string table(std::span<const Figure> figures);

}  // namespace whimbrel::ablations
