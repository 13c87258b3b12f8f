#include <mlx/device.h>

#include "base/error.h"
#include "ops/ops.h"

namespace whimbrel::ops {

std::unique_ptr<const Ops> make_ops(std::string_view requested, mx::Dtype stored) {
  if (!requested.empty() && requested != "reference") {
    throw Error(
        Fault::usage,
        "WHIMBREL_OPS",
        "got \"{}\", expected \"reference\": this build has no other operations",
        requested
    );
  }
  // MLX's own bfloat16 and quantised products on a CPU are slow and sum in 16 bits.
  const bool widen = mx::default_device() == mx::Device::cpu;
  return make_reference_ops(widen ? mx::float32 : stored, widen);
}

}  // namespace whimbrel::ops
