#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/bench_plan.h"
#include "models/model.h"
#include "models/prompt.h"

namespace whimbrel {

/// A cell that is ready to run: caches filled to its depth, warmed up.
class BenchRun {
 public:
  virtual ~BenchRun() = default;

  /// One repetition -> milliseconds: of each step of a decode, else of the whole. What it changed
  /// is undone before the next.
  virtual std::vector<double> repeat() = 0;
};

/// Makes cells ready on one model. Depths are filled by a real prefill of random ids, each once;
/// cells share what is filled.
class BenchSession {
 public:
  /// `picture` is the prompt with the picture, for cells that need one.
  BenchSession(const Model& model, const BenchOptions& options, std::optional<Prompt> picture);

  std::unique_ptr<BenchRun> prepare(const BenchCell& cell);

 private:
  /// A sequence whose cache holds its prompt.
  struct Filled {
    Prompt prompt;
    nn::KVCache cache;
  };
  const Filled& text(int depth);
  const Filled& behind_picture();

  const Model& model_;
  BenchOptions options_;
  std::optional<Prompt> picture_;
  std::vector<Filled> texts_;  // by ascending depth
  std::optional<Filled> behind_picture_;
};

}  // namespace whimbrel
