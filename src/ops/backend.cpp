#include <mlx/device.h>

#include "base/cores.h"
#include "base/error.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/device.h"
#include "ops/ops.h"

namespace whimbrel::ops {

std::unique_ptr<const Ops> make_ops(
    std::string_view requested, mx::Dtype stored, const OpsOptions& options
) {
  const bool on_cpu = mx::default_device() == mx::Device::cpu;
  const bool own = requested == "cpu" || (requested.empty() && on_cpu);
  if (!own && !requested.empty() && requested != "reference") {
    throw Error(
        Fault::usage,
        "WHIMBREL_OPS",
        "got \"{}\", expected \"reference\" or \"cpu\": this build has no other operations",
        requested
    );
  }
  if (own && !on_cpu) {
    throw Error(
        Fault::usage, "WHIMBREL_OPS", "got \"cpu\" on a GPU, expected \"reference\" or nothing"
    );
  }
  if (own) {
    return cpu::make_cpu_ops(chosen_isa(), threads(), options);
  }
  if (options.prefill_int8) {
    throw Error(
        Fault::usage,
        "--prefill-int8",
        "got it with the operations \"reference\"{}, expected \"cpu\": no others round so; leave "
        "it out",
        on_cpu ? "" : " on a GPU"
    );
  }
  if (on_cpu) {
    return make_reference_ops(mx::float32, Arithmetic::float32);
  }
  return make_reference_ops(stored, Arithmetic::native);
}

}  // namespace whimbrel::ops
