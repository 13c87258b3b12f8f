#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"
#include "engine/box_scale.h"
#include "text/boxes.h"

namespace whimbrel::wire {

/// How boxes in an answer are to be read.
struct BoxForm {
  BoxNotation notation = BoxNotation::json;
  std::optional<BoxScale> scale = {};
};

/// The boxes that a choice's content names: choice, kind, label, written, and pixels, which are
/// null without a scale.
Json boxes_json(int choice, std::string_view content, const BoxForm& form);

}  // namespace whimbrel::wire
