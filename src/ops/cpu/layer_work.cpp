#include "ops/cpu/layer_work.h"

namespace whimbrel::ops::cpu {

namespace {

HeadNorm head_norm(const std::optional<InputNorm>& norm, const Memory& memory) {
  return norm ? HeadNorm{norm->in(memory).weight, norm->eps} : HeadNorm{};
}

}  // namespace

RowNorm InputNorm::in(const Memory& memory) const {
  return {memory.in<float>(input), has_bias ? memory.in<float>(input + 1) : nullptr, eps};
}

InputNorm append_norm(std::vector<mx::array>& inputs, const Norm& norm) {
  const size_t first = inputs.size();
  if (const auto* rms = std::get_if<RmsNorm>(&norm)) {
    inputs.push_back(rms->weight);
    return {first, false, rms->eps};
  }
  const auto& layer = std::get<LayerNorm>(norm);
  inputs.push_back(layer.weight);
  inputs.push_back(layer.bias);
  return {first, true, layer.eps};
}

KVCache AttentionPlan::cache_at(const Memory& memory, size_t output) const {
  if (group_size == 0) {
    return {.data = memory.out<std::byte>(output)};
  }
  return {
      .data = memory.out<std::byte>(output),
      .scales = memory.out<uint16_t>(output + 1),
      .offsets = memory.out<uint16_t>(output + 2)
  };
}

void AttentionPlan::run(Workspace& workspace, const Memory& memory, const Rows& rows) const {
  workspace.sequences.clear();
  for (size_t i = 0; i < sequences.size(); ++i) {
    const auto& [first, count, cached, capacity, prefill] = sequences[i];
    const size_t input = first_sequence + i * (2 + arrays_a_cache());
    const size_t output = 1 + i * arrays_a_cache();
    workspace.sequences.push_back({
        .first_row = first,
        .rows = count,
        .cached = cached,
        .capacity = capacity,
        .prefill = prefill,
        .keys = cache_at(memory, output),
        .values = cache_at(memory, output + arrays_a_cache() / 2),
        .cos = memory.in<float>(input),
        .sin = memory.in<float>(input + 1),
    });
  }
  attend(
      {
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .head_dim = shape.head_dim,
          .group_size = group_size,
          .q = rows.q,
          .k = rows.k,
          .v = rows.v,
          .q_stride = q_width(),
          .k_stride = kv_width(),
          .v_stride = kv_width(),
          .q_norm = head_norm(q_norm, memory),
          .k_norm = head_norm(k_norm, memory),
          .sequences = workspace.sequences,
          .out = rows.out,
          .out_stride = q_width(),
      },
      workspace.context.kernels,
      workspace.context.pool,
      workspace.attention
  );
}

void AttentionWork::operator()(Workspace& workspace, const Memory& memory) const {
  plan.run(
      workspace,
      memory,
      {memory.in<float>(0), memory.in<float>(1), memory.in<float>(2), memory.out<float>(0)}
  );
}

uint64_t AttentionResidual::weight_bytes() const {
  return q_proj->bytes() + k_proj->bytes() + v_proj->bytes() + o_proj->bytes();
}

void AttentionResidual::operator()(Workspace& workspace, const Memory& memory) const {
  const auto count = static_cast<size_t>(rows);
  float* q = workspace.layer_rows.of<float>(count * 2 * (plan.q_width() + plan.kv_width()));
  float* k = q + count * plan.q_width();
  float* v = k + count * plan.kv_width();
  float* attended = v + count * plan.kv_width();
  const auto* x = memory.in<float>(0);
  const Product qkv[] = {
      {.w = q_proj.get(), .out = q}, {.w = k_proj.get(), .out = k}, {.w = v_proj.get(), .out = v}
  };
  run_products(workspace, {.x = x, .rows = rows, .prefill = prefill, .norm = norm.in(memory)}, qkv);
  plan.run(workspace, memory, {q, k, v, attended});
  const Product o{.w = o_proj.get(), .residual = x, .out = memory.out<float>(0)};
  run_products(workspace, {.x = attended, .rows = rows, .prefill = prefill}, {&o, 1});
}

void SwigluResidual::operator()(Workspace& workspace, const Memory& memory) const {
  float* hidden = workspace.layer_rows.of<float>(static_cast<size_t>(rows) * gate->outputs());
  const auto* x = memory.in<float>(0);
  const Product inner{.w = gate.get(), .up = up.get(), .out = hidden};
  run_products(
      workspace, {.x = x, .rows = rows, .prefill = prefill, .norm = norm.in(memory)}, {&inner, 1}
  );
  const Product outer{.w = down.get(), .residual = x, .out = memory.out<float>(0)};
  run_products(workspace, {.x = hidden, .rows = rows, .prefill = prefill}, {&outer, 1});
}

void run_products(Workspace& workspace, const ForwardRows& x, std::span<const Product> products) {
  workspace.matrices.clear();
  for (const Product& product : products) {
    workspace.matrices.push_back(product.w);
    if (product.up != nullptr) {
      workspace.matrices.push_back(product.up);
    }
  }
  const int width = products[0].w->inputs();
  const auto run = [&](int first, int end, bool exact) {
    if (first == end) {
      return;
    }
    const RowSource part{
        .x = x.x + static_cast<size_t>(first) * width,
        .rows = end - first,
        .width = width,
        .norm = x.norm,
        .exact = exact
    };
    workspace.rows.prepare(workspace.context, part, workspace.matrices);
    multiply_all(workspace.context, workspace.rows, products, first);
  };
  run(0, x.prefill, false);
  run(x.prefill, x.rows, true);
}

}  // namespace whimbrel::ops::cpu
