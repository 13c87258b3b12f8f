#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "base/error.h"

namespace whimbrel {

/// Whether nobody waits for a result any more; asked again and again while it is made. Empty where
/// somebody always does.
using Cancelled = std::function<bool()>;

/// Between two such questions, where nothing else is to be done.
inline constexpr std::chrono::milliseconds kCancelledLook{50};

/// Throws Error(Fault::interrupted) where nobody waits.
inline void require_wanted(const Cancelled& cancelled, std::string_view where) {
  if (cancelled && cancelled()) {
    throw Error(Fault::interrupted, where, "cancelled: nobody waits for it any more");
  }
}

}  // namespace whimbrel
