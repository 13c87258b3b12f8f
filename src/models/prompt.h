#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "media/image_processor.h"
#include "nn/positions.h"

namespace whimbrel {

enum class MediaKind { image, video };

/// Consecutive tokens of a prompt.
struct TokenRun {
  int first = 0;  // index of its first token
  int tokens = 0;
};

/// One picture or video of a prompt: which tokens stand for it, and what the tower sees.
struct MediaSpan {
  MediaKind kind = MediaKind::image;
  std::string source;  // file name, `data:`, or index: for people and error texts
  /// Where its tokens stand, in order; they take the rows of its features one after the other. One
  /// run, but for a video whose patches of frames stand behind their times in words.
  std::vector<TokenRun> runs = {};
  Patches patches = {};

  int first_token() const { return runs.front().first; }
  /// Behind the last token.
  int end_token() const { return runs.back().first + runs.back().tokens; }
  int tokens() const;
};

/// A request in the form a model computes: made on the host, without MLX.
struct Prompt {
  std::vector<int32_t> ids;      // placeholders expanded, one id a token
  std::vector<MediaSpan> media;  // in prompt order, runs never overlapping
  nn::Positions positions;

  int tokens() const { return static_cast<int>(ids.size()); }
};

inline int MediaSpan::tokens() const {
  int sum = 0;
  for (const TokenRun& run : runs) {
    sum += run.tokens;
  }
  return sum;
}

}  // namespace whimbrel
