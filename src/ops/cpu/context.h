#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/memory.h"

namespace whimbrel::ops::cpu {

/// What computes: kernels, the threads that they run on, and a piece of memory for each thread.
struct Context {
  /// Panels [first, end) of one of an operation's products.
  struct Piece {
    int product;
    int first;
    int end;
  };

  Context(const Kernels& kernels_, int threads)
      : kernels(kernels_), pool(threads), tiles(static_cast<size_t>(threads)) {}

  const Kernels& kernels;
  ThreadPool pool;
  std::vector<Scratch> tiles;  // products of some panels
  std::vector<Piece> pieces;   // of the products that run
};

}  // namespace whimbrel::ops::cpu
