#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "media/image_processor.h"
#include "nn/positions.h"

namespace whimbrel {

/// One picture of a prompt: which tokens stand for it, and what the tower sees.
struct MediaSpan {
  std::string source;  // file name, `data:`, or index: for people and error texts
  int first = 0;       // index of its first token in the prompt
  int tokens = 0;
  Patches patches;
};

/// A request in the form a model computes: made on the host, without MLX.
struct Prompt {
  std::vector<int32_t> ids;      // placeholders expanded, one id a token
  std::vector<MediaSpan> media;  // in prompt order, never overlapping
  nn::Positions positions;

  int tokens() const { return static_cast<int>(ids.size()); }
};

}  // namespace whimbrel
