#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ablations/subject.h"

namespace whimbrel::ablations {

/// One decode step as a graph, before it runs.
struct StepCost {
  std::map<std::string, int> nodes;  // by operation
  uint64_t bytes = 0;                // of outputs that get a buffer of their own; caches have one
};

/// One of several sequences that go the same way in turns, each with one defect.
struct Arm {
  Defect defect;
  nn::KVCache cache;  // its own copy
};

/// Copies of a context, with room for `steps` more tokens. In a model whose cache is float32 there
/// is no arm for `float32_cache`.
std::vector<Arm> make_arms(const Prefilled& prefilled, std::span<const Defect> defects, int steps);

/// Logits of the next step [1, vocab_size], a graph that has not run; the arm's cache then holds
/// its token.
mx::array build_step(const Subject& subject, const Prefilled& prefilled, Arm& arm);

/// Runs a graph of build_step.
void run_step(const mx::array& logits, const Arm& arm);

/// Counts a graph of build_step.
StepCost cost_of(const mx::array& logits, const Arm& arm);

/// What one defect costs at one context. Milliseconds are whole steps: graph and run.
struct Figure {
  Context context;
  Defect defect;
  uint64_t expected_bytes = 0;     // read and written by the defect, from the sizes
  std::vector<double> ms = {};     // with the defect, of each round
  std::vector<double> delta = {};  // more than without it, round by round
  StepCost cost = {};
  StepCost cost_without = {};
};

/// Steps in turns, forth and back: without, defect 1, defect 2, ..., then the other way round. A
/// first round warms up and isn't kept.
std::vector<Figure> measure(
    const Subject& subject, const Context& context, std::span<const Defect> defects, int rounds
);

}  // namespace whimbrel::ablations
