#pragma once

#include <mlx/dtype.h>

#include <string>
#include <string_view>

#include "base/json.h"
#include "engine/prepare.h"
#include "generate/generate.h"

namespace whimbrel {

/// The object of `whimbrel version --json`; `ops` is the name of the operations in use.
Json build_json(std::string_view ops);

/// A dtype as the contract spells it: `float32`, `bfloat16`, `float16`.
std::string dtype_text(mlx::core::Dtype dtype);

/// One entry of `media` in the answer of `generate --json` and in `inspect --json`.
Json media_json(const MediaSpan& span);

/// Milliseconds of a whole `generate`.
struct RunTimings {
  double load = 0;
  double media_decode = 0;
  double preprocess = 0;
  GenerateTimings generate;
};

/// The answer of `generate --json` (docs/contract.md).
Json answer_json(
    const Prompt& prompt,
    const Generation& generation,
    const RunTimings& timings,
    std::string_view ops
);

/// One line of JSON; bytes that are no UTF-8 become U+FFFD.
std::string json_line(const Json& json);

}  // namespace whimbrel
