#include "engine/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace whimbrel {

namespace {

/// Each once, in ascending order.
std::vector<int> sorted(std::vector<int> values) {
  std::ranges::sort(values);
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
  return values;
}

/// Those that leave room for `tokens`, the shortest depth in any case.
std::vector<int> default_depths(int context, int tokens) {
  std::vector<int> depths;
  for (const int depth : kDefaultDepths) {
    if (depths.empty() || depth + tokens <= context) {
      depths.push_back(depth);
    }
  }
  return depths;
}

/// Tokens that stand in each cache at the end of a cell.
int length(const BenchCell& cell, const BenchOptions& options) {
  return cell.depth +
         (cell.kind == BenchKind::decode ? std::max(cell.tokens, options.warmup) : cell.tokens);
}

void require_room(const BenchCell& cell, const BenchOptions& options, int context) {
  if (length(cell, options) > context) {
    throw Error(
        Fault::input,
        "bench",
        "got {} at depth {}, together {} tokens, expected at most the model's context of {}; take "
        "smaller -p, -n or -d",
        test_name(cell),
        cell.depth,
        length(cell, options),
        context
    );
  }
}

/// Adds cells in the order in which they are reported.
class Planner {
 public:
  Planner(const BenchOptions& options, int context) : options_(options), context_(context) {}

  void add_prefills() {
    const std::vector<int> depths = options_.depths.empty() ? std::vector{0} : options_.depths;
    for (const int tokens : sorted(options_.prompts)) {
      for (const int depth : sorted(depths)) {
        add({.kind = BenchKind::prefill, .tokens = tokens, .depth = depth});
      }
    }
  }

  void add_decodes() {
    for (const int tokens : sorted(options_.generated)) {
      const std::vector<int> depths =
          options_.depths.empty() ? default_depths(context_, std::max(tokens, options_.warmup))
                                  : options_.depths;
      for (const int rows : sorted(options_.rows)) {
        for (const int depth : sorted(depths)) {
          add({.tokens = tokens, .depth = depth, .rows = rows});
        }
      }
    }
  }

  /// Decodes behind the picture stand beside decodes of text at the same depth.
  void add_image(Size image, int image_prompt) {
    add({.kind = BenchKind::tower, .tokens = 1, .image = image});
    add({.kind = BenchKind::first_token, .tokens = image_prompt, .image = image});
    for (const int tokens : sorted(options_.generated)) {
      add({.tokens = tokens, .depth = image_prompt});
      add({.tokens = tokens, .depth = image_prompt, .behind_image = true});
    }
  }

  /// The first decode with each step computed twice.
  void add_control() {
    const auto decode = std::ranges::find(cells_, BenchKind::decode, &BenchCell::kind);
    if (decode != cells_.end()) {
      BenchCell doubled = *decode;
      doubled.doubled = true;
      cells_.push_back(doubled);
    }
  }

  std::vector<BenchCell> take() {
    if (cells_.empty()) {
      throw Error(
          Fault::usage, "bench", "got nothing to measure, expected -p, -n or --image to ask for it"
      );
    }
    return std::move(cells_);
  }

 private:
  void add(const BenchCell& cell) {
    if (cell.tokens == 0 || std::ranges::count(cells_, cell) != 0) {
      return;
    }
    require_room(cell, options_, context_);
    cells_.push_back(cell);
  }

  const BenchOptions& options_;
  int context_;
  std::vector<BenchCell> cells_;
};

}  // namespace

std::string test_name(const BenchCell& cell) {
  switch (cell.kind) {
    case BenchKind::prefill:
      return fmt::format("pp{}", cell.tokens);
    case BenchKind::decode:
      return fmt::format("tg{}{}", cell.tokens, cell.doubled ? "x2" : "");
    case BenchKind::tower:
      return fmt::format("tower{}x{}", cell.image.width, cell.image.height);
    case BenchKind::first_token:
      return fmt::format("ttft{}x{}", cell.image.width, cell.image.height);
  }
  return "";
}

std::vector<BenchCell> plan_cells(const BenchOptions& options, int context, int image_prompt) {
  Planner planner(options, context);
  planner.add_prefills();
  planner.add_decodes();
  if (options.image) {
    planner.add_image(*options.image, image_prompt);
  }
  if (options.control) {
    planner.add_control();
  }
  return planner.take();
}

}  // namespace whimbrel
