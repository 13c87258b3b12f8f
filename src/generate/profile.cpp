#include "generate/profile.h"

#include <mlx/mlx.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "generate/forward.h"
#include "models/prompt_chunk.h"
#include "ops/graph.h"

namespace whimbrel {

namespace {

using ArrayIds = std::set<std::uintptr_t>;

/// What a node reads of an array that was there before the step.
struct Read {
  mx::array source;
  uint64_t bytes = 0;  // the least that a view on the way leaves
};

/// The graph of one decode step, and which of its leaves are the cache and which stay for the next
/// step.
class StepGraph {
 public:
  StepGraph(mx::array logits, const std::vector<mx::array>& cache, int rows, ArrayIds lasting)
      : roots_({std::move(logits)}), cache_rows_(rows), lasting_(std::move(lasting)) {
    for (const mx::array& buffer : cache) {
      cache_.insert(buffer.id());
    }
  }

  StepProfile count() {
    ops::walk_graph(roots_, [this](const mx::array& node) {
      node.has_primitive() ? add_node(node) : add_leaf(node);
    });
    for (const auto& [id, bytes] : reads_) {
      (cache_.contains(id) ? step_.bytes.cache : step_.bytes.weights) += bytes;
    }
    return step_;
  }

 private:
  void add_leaf(const mx::array& leaf) {
    if (!cache_.contains(leaf.id()) && !lasting_.contains(leaf.id())) {
      step_.bytes.inputs += leaf.nbytes();
    }
  }

  void add_node(const mx::array& node) {
    const std::string name = node.primitive().name();
    OpCount& op = step_.ops[name];
    op.count += 1;
    op.bytes += node.nbytes();
    step_.nodes += 1;
    add_own(node.primitive());
    if (ops::is_view(name) || writes_cache(node)) {
      return;
    }
    step_.bytes.activations += node.nbytes();
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      add_read(node, name, i);
    }
  }

  /// Once for all outputs of an operation.
  void add_own(const mx::Primitive& primitive) {
    const ops::OwnPrimitive* own = ops::as_own(primitive);
    if (own != nullptr && own_.insert(own).second) {
      step_.own_launches += 1;
      step_.bytes.weights += own->weight_bytes();
    }
  }

  void add_read(const mx::array& node, const std::string& name, size_t input) {
    const Read read = trace_back(node.inputs()[input]);
    const std::uintptr_t id = read.source.id();
    if (cache_.contains(id)) {
      // A kernel that takes the whole buffer reads the rows that are written.
      const uint64_t whole = read.source.nbytes();
      const auto capacity = static_cast<uint64_t>(read.source.shape(2));
      const auto rows = static_cast<uint64_t>(cache_rows_);
      note(id, read.bytes == whole ? whole / capacity * rows : read.bytes);
    } else if (lasting_.contains(id)) {
      note(id, input == 0 && name == "Gather" ? node.nbytes() : part_read(node, name, read));
    }
  }

  /// Products with chosen matrices of a stack read those.
  static uint64_t part_read(const mx::array& node, const std::string& name, const Read& read) {
    if (name != "GatherMM" && name != "GatherQMM") {
      return read.bytes;
    }
    const auto stacked = static_cast<uint64_t>(read.source.shape(0));
    return read.bytes / stacked * std::min<uint64_t>(stacked, node.inputs().back().size());
  }

  void note(std::uintptr_t id, uint64_t bytes) {
    uint64_t& most = reads_[id];
    most = std::max(most, bytes);
  }

  /// Through views, and through writes into the cache, to where the bytes lie.
  Read trace_back(mx::array array) const {
    uint64_t bytes = array.nbytes();
    while (array.has_primitive() &&
           (ops::is_view(array.primitive().name()) || writes_cache(array))) {
      array = mx::array(array.inputs()[0]);
      bytes = std::min<uint64_t>(bytes, array.nbytes());
    }
    return {array, bytes};
  }

  bool writes_cache(const mx::array& node) const {
    return std::string_view(node.primitive().name()) == "SliceUpdate" &&
           cache_.contains(trace_back(node.inputs()[0]).source.id());
  }

  std::vector<mx::array> roots_;
  int cache_rows_;
  ArrayIds lasting_;
  ArrayIds cache_;
  std::map<std::uintptr_t, uint64_t> reads_;
  std::set<const ops::OwnPrimitive*> own_;
  StepProfile step_;
};

ArrayIds leaves(const mx::array& root) {
  ArrayIds ids;
  ops::walk_graph({root}, [&ids](const mx::array& node) {
    if (!node.has_primitive()) {
      ids.insert(node.id());
    }
  });
  return ids;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// One sequence that is decoded behind its context.
class Decoding {
 public:
  Decoding(const Model& model, Prompt prompt, const ProfileOptions& options)
      : model_(model), prompt_(std::move(prompt)), cache_(model.make_cache()) {
    const std::vector<nn::Features> features =
        encode_media(model, prompt_, prompt_.media.size(), [] {});
    for (int first = 0; first < prompt_.tokens(); first += options.prefill_chunk) {
      const int end = std::min(first + options.prefill_chunk, prompt_.tokens());
      model.forward(prompt_chunk(prompt_, features, first, end), cache_);
      mx::eval(cache_.arrays());
    }
    const int layers = static_cast<int>(cache_.layers().size());
    for (int layer = 0; layer < layers; ++layer) {
      nn::reserve(cache_.layer(layer), options.steps + 2);
    }
    mx::eval(cache_.arrays());
  }

  /// The graph of the next step. Nothing runs: two forks of the cache are decoded on paper.
  StepProfile inspect() const {
    const auto build = [this] {
      nn::KVCache fork = cache_;
      return model_.logits(
          model_.forward(next_chunk(prompt_, fork.tokens(), prompt_.ids.back()), fork)
      );
    };
    const mx::array logits = build();
    const mx::array again = build();
    const ArrayIds here = leaves(logits);
    ArrayIds lasting;
    std::ranges::set_intersection(here, leaves(again), std::inserter(lasting, lasting.end()));
    StepProfile step =
        StepGraph(logits, cache_.arrays(), cache_.length() + 1, std::move(lasting)).count();
    step.context = prompt_.tokens();
    return step;
  }

  void run_step() {
    mx::reset_peak_memory();
    active_memory_ = mx::get_active_memory();
    const Stopwatch host;
    const int32_t id = prompt_.ids[static_cast<size_t>(cache_.length()) % prompt_.ids.size()];
    mx::array logits =
        model_.logits(model_.forward(next_chunk(prompt_, cache_.tokens(), id), cache_));
    host_ms_.push_back(host.milliseconds());
    const Stopwatch device;
    logits.eval();
    device_ms_.push_back(device.milliseconds());
    step_memory_ = mx::get_peak_memory() - std::min(mx::get_peak_memory(), active_memory_);
  }

  /// A first step allocates and warms caches; it is not kept.
  void forget_times() {
    host_ms_.clear();
    device_ms_.clear();
  }

  void add_measured(StepProfile& step) const {
    step.active_memory = active_memory_;
    step.step_memory = step_memory_;
    step.host_ms = median(host_ms_);
    step.device_ms = median(device_ms_);
  }

 private:
  const Model& model_;
  Prompt prompt_;
  nn::KVCache cache_;
  uint64_t active_memory_ = 0;
  uint64_t step_memory_ = 0;
  std::vector<double> host_ms_;
  std::vector<double> device_ms_;
};

}  // namespace

Prompt fill_prompt(const Prompt& prompt, std::span<const int32_t> filler, int tokens) {
  if (prompt.tokens() > tokens) {
    throw Error(
        Fault::input,
        "profile",
        "got a prompt of {} tokens, expected at most the context of {}; use larger contexts",
        prompt.tokens(),
        tokens
    );
  }
  Prompt filled = prompt;
  for (int i = prompt.tokens(); i < tokens; ++i) {
    filled.ids.push_back(filler[static_cast<size_t>(i) % filler.size()]);
    for (std::vector<int32_t>& axis : filled.positions.axes) {
      axis.push_back(i + prompt.positions.delta);
    }
  }
  return filled;
}

std::vector<StepProfile> profile_steps(
    const Model& model,
    const Prompt& prompt,
    std::span<const int32_t> filler,
    const ProfileOptions& options
) {
  std::vector<Decoding> decodings;
  std::vector<StepProfile> steps;
  for (const int context : options.contexts) {
    decodings.emplace_back(model, fill_prompt(prompt, filler, context), options);
    steps.push_back(decodings.back().inspect());
  }
  for (int step = 0; step <= options.steps; ++step) {
    for (Decoding& decoding : decodings) {
      decoding.run_step();
      if (step == 0) {
        decoding.forget_times();
      }
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    decodings[i].add_measured(steps[i]);
  }
  return steps;
}

}  // namespace whimbrel
