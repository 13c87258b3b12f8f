#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/config.h"
#include "weights/random_weights.h"

namespace whimbrel {

/// A published model's sizes, to be filled with random weights: speed depends on sizes alone, and
/// nothing has to be downloaded.
struct PublishedDims {
  std::string_view name;    // as --dims spells it
  std::string_view config;  // the text of its config.json, as far as it says sizes
  int layers;               // of the text decoder, as published
  int kept_layers;          // fewer where the whole model is too large for a plain computer
};

/// All of them.
const std::vector<PublishedDims>& published_dims();

/// A model of published dims in one form.
struct RandomModel {
  std::string name;     // `NAME`
  std::string weights;  // `4bit`, `8bit` or `bf16`
  int layers = 0;       // as published
  int kept_layers = 0;
  ModelConfig config = {};
  std::vector<RandomTensor> tensors = {};

  /// Its tensors, drawn when they are evaluated, so that of a loading model only one at a time
  /// stands in memory twice.
  Checkpoint checkpoint() const;
};

/// `dims` is NAME, NAME:4bit, NAME:8bit or NAME:bf16; 4bit is the default. Packed forms are those
/// of MLX's conversions: matrices of the text decoder in groups of 64, routers at 8 bits, the tower
/// in bf16. Throws Error(Fault::usage) with the known names.
RandomModel random_model(std::string_view dims);

}  // namespace whimbrel
