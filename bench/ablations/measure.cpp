#include "ablations/measure.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "models/prompt_chunk.h"
#include "ops/graph.h"

namespace whimbrel::ablations {

namespace {

mx::array copy_of(const mx::array& array) {
  mx::array source = mx::contiguous(array);
  source.eval();
  mx::array copy(mx::allocator::malloc(source.nbytes()), source.shape(), source.dtype());
  std::memcpy(copy.data<char>(), source.data<char>(), source.nbytes());
  return copy;
}

nn::KVCache copy_of(const nn::KVCache& cache, Defect defect, int steps) {
  std::vector<nn::LayerCache> layers = cache.layers();
  for (nn::LayerCache& layer : layers) {
    if (defect == Defect::float32_cache) {
      layer.buffer = widened(layer.buffer);
    }
    nn::reserve(layer, steps);
    layer.buffer.keys.data = copy_of(layer.buffer.keys.data);
    layer.buffer.values.data = copy_of(layer.buffer.values.data);
  }
  return {std::move(layers), 0};
}

std::vector<mx::array> roots(const mx::array& logits, const Arm& arm) {
  std::vector<mx::array> arrays = arm.cache.arrays();
  arrays.push_back(logits);
  return arrays;
}

/// Whether a node is a write into a cache.
bool writes_cache(const mx::array& node) {
  const std::string_view name = node.primitive().name();
  const bool is_own = ops::as_own(node.primitive()) != nullptr;
  return name == "SliceUpdate" || name == "AppendRows" || (is_own && node.ndim() == 4);
}

/// Views take no buffer, but a copy has to be made where repeated heads are put side by side.
bool has_buffer(const mx::array& node) {
  if (writes_cache(node)) {
    return false;
  }
  const auto is_broadcast = [](const mx::array& x) {
    return x.has_primitive() && std::string_view(x.primitive().name()) == "Broadcast";
  };
  return !is_broadcast(node) &&
         (!ops::is_view(node.primitive().name()) || is_broadcast(node.inputs()[0]));
}

double run_timed(const Subject& subject, const Prefilled& prefilled, Arm& arm) {
  const Stopwatch watch;
  run_step(build_step(subject, prefilled, arm), arm);
  return watch.milliseconds();
}

/// Milliseconds of each arm, run in order or the other way round.
std::vector<double> run_round(
    const Subject& subject, const Prefilled& prefilled, std::vector<Arm>& arms, bool backwards
) {
  std::vector<double> ms(arms.size());
  for (size_t i = 0; i < arms.size(); ++i) {
    const size_t at = backwards ? arms.size() - 1 - i : i;
    ms[at] = run_timed(subject, prefilled, arms[at]);
  }
  return ms;
}

StepShape shape_of(const Subject& subject, const Arm& without) {
  const nn::LayerCache& layer = without.cache.layers().front();
  return {
      .layers = subject.model.config().num_hidden_layers,
      .heads = subject.model.config().attention.heads,
      .rows = layer.length + 1,
      .capacity = layer.capacity(),
      .number_bytes = static_cast<int>(mx::size_of(layer.buffer.format.dtype))
  };
}

/// A step of each arm, counted and then run to warm up.
std::vector<Figure> first_round(
    const Subject& subject, const Prefilled& prefilled, std::vector<Arm>& arms
) {
  const StepShape shape = shape_of(subject, arms.front());
  std::vector<Figure> figures;
  for (Arm& arm : arms) {
    const mx::array logits = build_step(subject, prefilled, arm);
    figures.push_back({prefilled.context, arm.defect, extra_bytes(arm.defect, shape)});
    figures.back().cost = cost_of(logits, arm);
    figures.back().cost_without = figures.front().cost;
    run_step(logits, arm);
  }
  return figures;
}

}  // namespace

std::vector<Arm> make_arms(const Prefilled& prefilled, std::span<const Defect> defects, int steps) {
  const mx::Dtype dtype = prefilled.cache.layers().front().buffer.format.dtype;
  std::vector<Arm> arms = {{Defect::none, copy_of(prefilled.cache, Defect::none, steps)}};
  for (const Defect defect : defects) {
    if (defect != Defect::float32_cache || dtype != mx::float32) {
      arms.push_back({defect, copy_of(prefilled.cache, defect, steps)});
    }
  }
  return arms;
}

mx::array build_step(const Subject& subject, const Prefilled& prefilled, Arm& arm) {
  subject.ops->apply(arm.defect);
  const std::vector<int32_t>& ids = prefilled.prompt.ids;
  const int tokens = arm.cache.tokens();
  const int32_t id = ids[static_cast<size_t>(tokens) % ids.size()];
  return subject.model.logits(
      subject.model.forward(next_chunk(prefilled.prompt, tokens, id), arm.cache)
  );
}

void run_step(const mx::array& logits, const Arm& arm) {
  mx::eval(roots(logits, arm));
}

StepCost cost_of(const mx::array& logits, const Arm& arm) {
  StepCost cost;
  ops::walk_graph(roots(logits, arm), [&cost](const mx::array& node) {
    if (!node.has_primitive()) {
      return;
    }
    cost.nodes[node.primitive().name()] += 1;
    cost.bytes += has_buffer(node) ? node.nbytes() : 0;
  });
  return cost;
}

std::vector<Figure> measure(
    const Subject& subject, const Context& context, std::span<const Defect> defects, int rounds
) {
  const Prefilled prefilled = prefill(subject, context);
  std::vector<Arm> arms = make_arms(prefilled, defects, rounds + 1);
  std::vector<Figure> figures = first_round(subject, prefilled, arms);
  for (int round = 0; round < rounds; ++round) {
    const std::vector<double> ms = run_round(subject, prefilled, arms, round % 2 == 1);
    for (size_t i = 0; i < arms.size(); ++i) {
      figures[i].ms.push_back(ms[i]);
      figures[i].delta.push_back(ms[i] - ms.front());
    }
  }
  subject.ops->apply(Defect::none);
  return figures;
}

}  // namespace whimbrel::ablations
