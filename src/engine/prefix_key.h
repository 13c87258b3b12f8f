#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/prompt.h"

namespace whimbrel {

/// What the keys and values of a sequence's tokens depend on: the tokens, and what media tokens
/// stand for.
struct PrefixKey {
  struct Medium {
    int first = 0;  // token
    int end = 0;
    std::string content;    // SHA-256 of what the tower sees, shape included
    std::string positions;  // of the three positions of its tokens: a video's tell of its times

    friend bool operator==(const Medium&, const Medium&) = default;
  };

  std::vector<int32_t> ids = {};
  std::vector<Medium> media = {};
};

/// SHA-256 of patches and grid, in hex: equal where a tower sees the same, which size and processor
/// settings are part of.
std::string media_content(const Patches& patches);

PrefixKey prefix_key(const Prompt& prompt);

/// Tokens at the front that are the same in both, what media tokens stand for included.
int common_tokens(const PrefixKey& a, const PrefixKey& b);

}  // namespace whimbrel
