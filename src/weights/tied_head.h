#pragma once

#include "weights/checkpoint.h"
#include "weights/config.h"

namespace whimbrel {

/// True where logits come from the embedding, false where from `lm_head`. The tensors decide, then
/// tie_word_embeddings:
///   flag true,  no lm_head   tied
///   flag true,  lm_head      tied as in transformers; lm_head is discarded, with a warning where
///   it
///                            differs from the embedding
///   flag false, lm_head      lm_head
///   flag false, no lm_head   tied, with a warning
/// Without a flag the presence of lm_head decides alone.
bool head_is_tied(Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace whimbrel
