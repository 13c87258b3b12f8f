#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/frontend.h"
#include "ops/ops.h"

namespace whimbrel {

/// One check of an installation.
struct Check {
  std::string name = {};
  bool ok = false;
  std::string detail = {};  // what was seen, or why it failed
  double milliseconds = 0;
};

/// Runs `body`, whose text becomes the detail. What it throws makes the check fail.
Check run_check(const std::string& name, const std::function<std::string()>& body);

/// The operations against scalar loops in float64: a matrix product, and grouped attention of
/// several rows and of one more behind them.
std::vector<Check> check_ops(const ops::Ops& ops);

/// The decoder of pictures on one that is compiled in.
Check check_picture();

/// A checkpoint's tokenizer (ids and back), and its chat template with the compiled-in picture
/// where the model takes pictures.
std::vector<Check> check_frontend(const Frontend& frontend);

/// The whole way: asks a model for the colour of the compiled-in picture. Fails unless the answer
/// is `expected`.
Check check_answer(
    const Frontend& frontend, std::string_view requested_ops, std::string_view expected
);

}  // namespace whimbrel
