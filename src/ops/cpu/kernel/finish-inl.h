// What happens to a panel's products before they are written out.

namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE {

WHIMBREL_INLINE F32 activate(F32 x, Activation activation) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::gelu_erf:
      return gelu_erf(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
    case Activation::gelu_quick:
      return gelu_quick(x);
  }
  return x;
}

inline void finish_tile(const FinishTile& f) {
  const F32 bias = f.bias != nullptr ? load(f.bias) : zero_f32();
  for (int row = 0; row < f.rows; ++row) {
    F32 y = activate(add(load(f.tile + row * kLanes), bias), f.activation);
    if (f.residual != nullptr) {
      y = add(y, load_lanes(f.residual + row * f.residual_stride, f.columns));
    }
    store_lanes(f.out + row * f.out_stride, y, f.columns);
  }
}

inline void finish_swiglu(const FinishSwiglu& f) {
  const F32 gate_bias = f.gate_bias != nullptr ? load(f.gate_bias) : zero_f32();
  const F32 up_bias = f.up_bias != nullptr ? load(f.up_bias) : zero_f32();
  for (int row = 0; row < f.rows; ++row) {
    const F32 gate = add(load(f.gate + row * kLanes), gate_bias);
    const F32 up = add(load(f.up + row * kLanes), up_bias);
    store_lanes(f.out + row * f.out_stride, mul(silu(gate), up), f.columns);
  }
}

}  // namespace whimbrel::ops::cpu::WHIMBREL_ISA_NAMESPACE
