#pragma once

#include <vector>

#include "nn/decoder.h"
#include "weights/config.h"

namespace whimbrel {

/// The keys of config.json that all families' text decoders share; the rest of the struct is the
/// family's. Throws Error(Fault::model) that names the key: a missing one, another activation than
/// SiLU, biases that no family has.
nn::DecoderConfig read_text_config(const ModelConfig& config);

/// Sections of the multimodal rope, or `fallback` where the file states none; they have to fit the
/// heads either way.
std::vector<int> read_mrope_section(const ModelConfig& config, const std::vector<int>& fallback);

/// Refuses an order of the multimodal rope's axes that is not the family's.
void require_interleaved(const ModelConfig& config, bool interleaved);

/// Experts, and the layers that have none (mlp_only_layers, decoder_sparse_step). Without
/// norm_topk_prob in the file the chosen weights are left as they are.
nn::MoeConfig read_moe_config(const ModelConfig& config);

}  // namespace whimbrel
