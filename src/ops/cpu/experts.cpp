#include "ops/cpu/experts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace whimbrel::ops::cpu {

namespace {

/// Softmax over all experts, in place.
void softmax(float* logits, int count) {
  const float largest = *std::max_element(logits, logits + count);
  float sum = 0;
  for (int i = 0; i < count; ++i) {
    logits[i] = std::exp(logits[i] - largest);
    sum += logits[i];
  }
  for (int i = 0; i < count; ++i) {
    logits[i] /= sum;
  }
}

class Run {
 public:
  Run(Context& context, ExpertsWorkspace& workspace, const ExpertsProduct& product)
      : context_(context), workspace_(workspace), product_(product) {}

  void run() {
    route();
    line_up();
    const CpuMatrix* const matrices[] = {product_.gate_proj, product_.up_proj};
    const int slots = static_cast<int>(workspace_.order.size());
    workspace_.input.prepare(
        context_,
        {.x = product_.x,
         .rows = slots,
         .width = product_.router->inputs(),
         .norm = product_.norm,
         .order = workspace_.order.data(),
         .row_step = row_step(),
         .exact = true},
        matrices
    );
    const int width = product_.gate_proj->outputs();
    float* hidden = workspace_.activations.of<float>(static_cast<size_t>(slots) * width);
    activate(hidden);
    workspace_.hidden.prepare(
        context_,
        {.x = hidden,
         .rows = slots,
         .width = width,
         .order = workspace_.slots.data(),
         .row_step = row_step(),
         .exact = true},
        {&product_.down_proj, 1}
    );
    add_up();
  }

 private:
  int tokens() const { return product_.rows; }

  /// A single token is alone at each of its experts; else tiles are as large as they get.
  int row_step() const { return tokens() == 1 ? 1 : kTileRows; }

  /// The experts of each row and their weights, by the router's logits in float32.
  void route() {
    const int experts = product_.router->outputs();
    float* logits = workspace_.logits.of<float>(static_cast<size_t>(tokens()) * experts);
    workspace_.routed.prepare(
        context_,
        {.x = product_.x,
         .rows = tokens(),
         .width = product_.router->inputs(),
         .norm = product_.norm,
         .exact = true},
        {&product_.router, 1}
    );
    const Product products[] = {{.w = product_.router, .out = logits}};
    multiply_all(context_, workspace_.routed, products, 0);
    workspace_.visits.clear();
    for (int row = 0; row < tokens(); ++row) {
      choose(logits + static_cast<size_t>(row) * experts, experts, row);
    }
  }

  /// Of equal ones the first expert counts as the better.
  void choose(float* probabilities, int experts, int row) {
    softmax(probabilities, experts);
    std::vector<int>& ranking = workspace_.ranking;
    ranking.resize(static_cast<size_t>(experts));
    std::iota(ranking.begin(), ranking.end(), 0);
    const auto better = [probabilities](int a, int b) {
      return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
    };
    std::partial_sort(ranking.begin(), ranking.begin() + product_.per_token, ranking.end(), better);
    float sum = 0;
    for (int i = 0; i < product_.per_token; ++i) {
      sum += probabilities[ranking[static_cast<size_t>(i)]];
    }
    for (int i = 0; i < product_.per_token; ++i) {
      const int expert = ranking[static_cast<size_t>(i)];
      const float weight = probabilities[expert];
      workspace_.visits.push_back({expert, row, product_.renormalized ? weight / sum : weight});
    }
  }

  /// Puts the rows of an expert side by side, each expert's first at the start of a tile.
  void line_up() {
    std::vector<ExpertsWorkspace::Visit>& visits = workspace_.visits;
    std::ranges::sort(visits, [](const auto& a, const auto& b) {
      return a.expert != b.expert ? a.expert < b.expert : a.row < b.row;
    });
    workspace_.order.clear();
    workspace_.slots.clear();
    workspace_.weights.clear();
    workspace_.visitors.clear();
    for (const auto& [expert, row, weight] : visits) {
      if (workspace_.visitors.empty() || workspace_.visitors.back().expert != expert) {
        fill_up();
        const int first = static_cast<int>(workspace_.order.size());
        workspace_.visitors.push_back({expert, first, 0});
      }
      ++workspace_.visitors.back().count;
      add_slot(row, weight);
    }
    fill_up();
  }

  void add_slot(int row, float weight) {
    workspace_.slots.push_back(row < 0 ? -1 : static_cast<int>(workspace_.order.size()));
    workspace_.order.push_back(row);
    workspace_.weights.push_back(weight);
  }

  void fill_up() {
    while (workspace_.order.size() % static_cast<size_t>(row_step()) != 0) {
      add_slot(-1, 0);
    }
  }

  /// gate, up and SwiGLU of all experts' rows -> hidden [slots][width].
  void activate(float* hidden) {
    // As if one expert were visited by all.
    context_.reserve_tiles(2 * static_cast<size_t>(workspace_.input.padded(tokens())) * kLanes);
    const CpuMatrix& gate = *product_.gate_proj;
    const int step = panels_a_task(context_.kernels, 1, gate.panel_bytes());
    const int tasks = (gate.panels() + step - 1) / step;
    const int experts = static_cast<int>(workspace_.visitors.size());
    context_.pool.parallel_for(experts * tasks, [&](int task, int thread) {
      const ExpertsWorkspace::Visitors& visitors = workspace_.visitors[task / tasks];
      const int end = std::min(gate.panels(), (task % tasks + 1) * step);
      for (int panel = task % tasks * step; panel < end; ++panel) {
        activate_panel(visitors, panel, hidden, thread);
      }
    });
  }

  float* tiles(int thread, const PreparedRows& x, int rows, int count) {
    const size_t size = static_cast<size_t>(x.padded(rows)) * kLanes;
    return context_.tiles[static_cast<size_t>(thread)].of<float>(count * size);
  }

  void activate_panel(
      const ExpertsWorkspace::Visitors& visitors, int panel, float* hidden, int thread
  ) {
    const auto [expert, first, count] = visitors;
    const PreparedRows& x = workspace_.input;
    float* gate = tiles(thread, x, count, 2);
    float* up = gate + static_cast<size_t>(x.padded(count)) * kLanes;
    const Kernels& kernels = context_.kernels;
    x.multiply(kernels, {product_.gate_proj, expert, panel, 1, first, count}, gate);
    x.multiply(kernels, {product_.up_proj, expert, panel, 1, first, count}, up);
    const auto width = static_cast<size_t>(product_.gate_proj->outputs());
    const int column = panel * kLanes;
    kernels.finish_swiglu({
        .gate = gate,
        .up = up,
        .rows = count,
        .columns = std::min(kLanes, product_.gate_proj->outputs() - column),
        .out = hidden + first * width + column,
        .out_stride = width,
    });
  }

  /// out = x + weighted down projections. A task owns some panels of all rows; an expert's share is
  /// added in the order of experts, so that a row's sum depends on no other row.
  void add_up() {
    const CpuMatrix& down = *product_.down_proj;
    const size_t numbers = static_cast<size_t>(tokens()) * down.outputs();
    std::copy(product_.x, product_.x + numbers, product_.out);
    const int chosen = std::max(1, static_cast<int>(workspace_.visitors.size()));
    const int step = panels_a_task(context_.kernels, 1, down.panel_bytes() * chosen);
    const int tasks = (down.panels() + step - 1) / step;
    context_.pool.parallel_for(tasks, [&](int task, int thread) {
      const int end = std::min(down.panels(), (task + 1) * step);
      for (int panel = task * step; panel < end; ++panel) {
        for (const ExpertsWorkspace::Visitors& visitors : workspace_.visitors) {
          add_panel(visitors, panel, thread);
        }
      }
    });
  }

  void add_panel(const ExpertsWorkspace::Visitors& visitors, int panel, int thread) {
    const auto [expert, first, count] = visitors;
    const PreparedRows& x = workspace_.hidden;
    float* tile = tiles(thread, x, count, 1);
    x.multiply(context_.kernels, {product_.down_proj, expert, panel, 1, first, count}, tile);
    const int outputs = product_.down_proj->outputs();
    const int columns = std::min(kLanes, outputs - panel * kLanes);
    for (int i = 0; i < count; ++i) {
      const size_t slot = static_cast<size_t>(first) + i;
      const float weight = workspace_.weights[slot];
      float* out = product_.out + static_cast<size_t>(workspace_.order[slot]) * outputs;
      for (int column = 0; column < columns; ++column) {
        out[panel * kLanes + column] += weight * tile[i * kLanes + column];
      }
    }
  }

  Context& context_;
  ExpertsWorkspace& workspace_;
  const ExpertsProduct& product_;
};

}  // namespace

void run_experts(Context& context, ExpertsWorkspace& workspace, const ExpertsProduct& product) {
  Run(context, workspace, product).run();
}

}  // namespace whimbrel::ops::cpu
