#include "weights/tied_head.h"

#include <algorithm>
#include <array>
#include <optional>

namespace whimbrel {

namespace {

constexpr std::string_view kHead = "lm_head";
constexpr std::string_view kEmbedding = "model.embed_tokens";

/// transformers reads the root's flag, MLX the text's; a flat file has one only.
std::optional<bool> tie_flag(const ModelConfig& config) {
  const Json& place = has_value(config.root, "tie_word_embeddings") ? config.root : config.text;
  if (!has_value(place, "tie_word_embeddings")) {
    return std::nullopt;
  }
  return get_bool_or(place, "tie_word_embeddings", false, config.source());
}

bool head_equals_embedding(const Checkpoint& checkpoint) {
  constexpr std::array<std::string_view, 3> kTensors = {".weight", ".scales", ".biases"};
  return std::all_of(kTensors.begin(), kTensors.end(), [&checkpoint](std::string_view tensor) {
    return checkpoint.same_bytes(
        fmt::format("{}{}", kHead, tensor), fmt::format("{}{}", kEmbedding, tensor)
    );
  });
}

}  // namespace

bool head_is_tied(Checkpoint& checkpoint, const ModelConfig& config) {
  const std::optional<bool> flag = tie_flag(config);
  const bool has_head = checkpoint.has("lm_head.weight");
  if (!has_head && !flag.value_or(false)) {
    checkpoint.warn(
        "the checkpoint has no lm_head and its config.json doesn't say that the head is tied; the "
        "embedding is used as head"
    );
  }
  if (has_head && flag.value_or(false)) {
    if (!head_equals_embedding(checkpoint)) {
      checkpoint.warn(
          "config.json says that the head is tied, but the checkpoint has an lm_head that differs "
          "from the embedding; the embedding is used, as in transformers"
      );
    }
    checkpoint.discard(kHead);
  }
  return !has_head || flag.value_or(false);
}

}  // namespace whimbrel
