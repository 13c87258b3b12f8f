#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "ops/cpu/attend.h"
#include "ops/cpu/context.h"
#include "ops/cpu/experts.h"
#include "ops/cpu/prepared_rows.h"
#include "ops/cpu/product.h"

namespace whimbrel::ops::cpu {

/// Bytes of outputs that wait for their operations. MLX gives outputs their memory as it queues
/// operations, many of them ahead of the one that runs; whoever would queue too much waits here.
class Backlog {
 public:
  static constexpr size_t kMost = size_t{4} << 20;

  /// Returns at once where nothing is queued.
  void add(size_t bytes);
  void remove(size_t bytes);

 private:
  std::mutex mutex_;
  std::condition_variable removed_;
  size_t bytes_ = 0;
};

/// What all operations of a backend share, memory for what they compute in between included. They
/// run one after the other: whoever runs one holds `running`.
struct Workspace {
  Workspace(const Kernels& kernels, int threads, bool int8_for_codes)
      : context(kernels, threads, int8_for_codes) {}

  Backlog backlog;
  std::mutex running;
  Context context;
  PreparedRows rows;
  ExpertsWorkspace experts;
  AttendWorkspace attention;
  Scratch layer_rows;  // between the parts of an operation
  // Lists for the operation that runs; they stay, so that none allocates.
  std::vector<const CpuMatrix*> matrices;
  std::vector<Product> products;
  std::vector<AttendSequence> sequences;

  /// Bytes that it holds.
  size_t bytes() const;
};

}  // namespace whimbrel::ops::cpu
