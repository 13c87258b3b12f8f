#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/scratch.h"

namespace whimbrel::ops::cpu {

/// What computes: kernels, the threads that they run on, and a piece of memory for each thread.
struct Context {
  /// Panels [first, end) of one of an operation's products.
  struct Piece {
    int product;
    int first;
    int end;
  };

  Context(const Kernels& of_isa, int threads, bool int8)
      : kernels(of_isa), int8_for_codes(int8), pool(threads), tiles(static_cast<size_t>(threads)) {}

  /// Room for `count` floats on every thread: which of them gets what to do is left to chance, and
  /// none is to allocate for it later.
  void reserve_tiles(size_t count) {
    for (Scratch& tile : tiles) {
      tile.of<float>(count);
    }
  }

  const Kernels& kernels;
  const bool int8_for_codes;  // whether many rows meet codes as 8-bit integers
  ThreadPool pool;
  std::vector<Scratch> tiles;  // products of some panels
  std::vector<Piece> pieces;   // of the products that run
};

}  // namespace whimbrel::ops::cpu
