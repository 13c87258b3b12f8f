#pragma once

#include <cstdint>
#include <string>

#include "models/family.h"
#include "models/prompt.h"
#include "ops/ops.h"
#include "weights/checkpoint.h"

namespace whimbrel {

/// What has to be multiplied before a first token, known from shapes, and what it is made of.
struct PrefillWork {
  double tower_macs = 0;    // multiply-adds of all media, attention over whole frames included
  double decoder_macs = 0;  // of all prompt tokens, causal attention and one head included
  int tokens = 0;
  int media = 0;
  int64_t patches = 0;  // of all media

  double macs() const { return tower_macs + decoder_macs; }
};

/// Attention inside the tower's windows, norms and activations are left out: a few percent.
PrefillWork prefill_work(
    const ModelShape& shape, const Checkpoint& checkpoint, const Prompt& prompt
);

/// Multiply-adds a second in a prompt's matrices.
struct PrefillRates {
  double tower = 0;
  double decoder = 0;
};

/// Measured on this machine in some ten milliseconds: products of a matrix in the form of the
/// checkpoint's own (4 or 8 bits, bfloat16 or float32) with as many rows as a step of a
/// prompt has, or as one of many experts gets of it.
PrefillRates measure_prefill_rates(const ops::Ops& ops, const Checkpoint& checkpoint);

double prefill_seconds(const PrefillWork& work, const PrefillRates& rates);

/// Whether `work` can take over kLongPrefill at all; less isn't worth a measurement.
bool may_take_long(const PrefillWork& work);

/// Seconds before the first token from which on a user is told beforehand.
constexpr double kLongPrefill = 10;

/// "about 25 s until the first token (2,310 prompt tokens, 1 picture or video of 5,329 patches);
/// …".
std::string long_prefill_text(const PrefillWork& work, double seconds);

}  // namespace whimbrel
