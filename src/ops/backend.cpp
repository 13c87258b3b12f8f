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
  if (mx::default_device() == mx::Device::cpu) {
    return make_reference_ops(mx::float32, Arithmetic::float32);
  }
  return make_reference_ops(stored, Arithmetic::native);
}

}  // namespace whimbrel::ops
