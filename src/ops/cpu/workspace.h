#pragma once

#include <memory>
#include <mutex>

#include "ops/cpu/attend.h"
#include "ops/cpu/context.h"
#include "ops/cpu/experts.h"
#include "ops/cpu/prepared_rows.h"

namespace whimbrel::ops::cpu {

/// What all operations of a backend share, memory for what they compute in between included. They
/// run one after the other: whoever runs one holds `running`.
struct Workspace {
  Workspace(const Kernels& kernels, int threads) : context(kernels, threads) {}

  std::mutex running;
  Context context;
  PreparedRows rows;
  ExpertsWorkspace experts;
  AttendWorkspace attention;
};

}  // namespace whimbrel::ops::cpu
