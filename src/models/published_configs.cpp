// Sizes of published models: their config.json on the Hugging Face hub, without what says nothing
// about sizes.

#include "models/published.h"

namespace whimbrel {

namespace {

constexpr std::string_view kQwen2Vl2B = R"({
  "model_type": "qwen2_vl", "eos_token_id": 151645, "hidden_act": "silu",
  "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28,
  "num_attention_heads": 12, "num_key_value_heads": 2, "vocab_size": 151936,
  "max_position_embeddings": 32768, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
  "tie_word_embeddings": true, "image_token_id": 151655, "video_token_id": 151656,
  "vision_start_token_id": 151652, "vision_end_token_id": 151653,
  "vision_config": {
    "depth": 32, "embed_dim": 1280, "hidden_size": 1536, "in_chans": 3, "mlp_ratio": 4,
    "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2
  }
})";

constexpr std::string_view kQwen25Vl3B = R"({
  "model_type": "qwen2_5_vl", "eos_token_id": 151645, "hidden_act": "silu",
  "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36,
  "num_attention_heads": 16, "num_key_value_heads": 2, "vocab_size": 151936,
  "max_position_embeddings": 128000, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
  "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
  "tie_word_embeddings": true, "image_token_id": 151655, "video_token_id": 151656,
  "vision_start_token_id": 151652, "vision_end_token_id": 151653,
  "vision_config": {
    "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "out_hidden_size": 2048,
    "in_chans": 3, "hidden_act": "silu", "num_heads": 16, "patch_size": 14,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "tokens_per_second": 2,
    "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31]
  }
})";

constexpr std::string_view kQwen3Vl4B = R"({
  "model_type": "qwen3_vl", "image_token_id": 151655, "video_token_id": 151656,
  "vision_start_token_id": 151652, "vision_end_token_id": 151653, "tie_word_embeddings": true,
  "text_config": {
    "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 2560,
    "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 5000000,
    "rope_scaling": {
      "rope_type": "default", "mrope_interleaved": true, "mrope_section": [24, 20, 20]
    },
    "tie_word_embeddings": true
  },
  "vision_config": {
    "depth": 24, "hidden_size": 1024, "intermediate_size": 4096, "out_hidden_size": 2560,
    "in_channels": 3, "hidden_act": "gelu_pytorch_tanh", "num_heads": 16, "patch_size": 16,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [5, 11, 17]
  }
})";

constexpr std::string_view kQwen3Vl30B = R"({
  "model_type": "qwen3_vl_moe", "image_token_id": 151655, "video_token_id": 151656,
  "vision_start_token_id": 151652, "vision_end_token_id": 151653, "tie_word_embeddings": false,
  "text_config": {
    "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 2048,
    "intermediate_size": 6144, "num_hidden_layers": 48, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 5000000,
    "rope_scaling": {
      "rope_type": "default", "mrope_interleaved": true, "mrope_section": [24, 20, 20]
    },
    "decoder_sparse_step": 1, "mlp_only_layers": [], "moe_intermediate_size": 768,
    "norm_topk_prob": true, "num_experts": 128, "num_experts_per_tok": 8,
    "tie_word_embeddings": false
  },
  "vision_config": {
    "depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "out_hidden_size": 2048,
    "in_channels": 3, "hidden_act": "gelu_pytorch_tanh", "num_heads": 16, "patch_size": 16,
    "spatial_merge_size": 2, "temporal_patch_size": 2, "num_position_embeddings": 2304,
    "deepstack_visual_indexes": [8, 16, 24]
  }
})";

constexpr std::string_view kQwen3Text4B = R"({
  "model_type": "qwen3", "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 2560,
  "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
  "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
  "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
  "rope_scaling": null, "tie_word_embeddings": true
})";

constexpr std::string_view kQwen25Text7B = R"({
  "model_type": "qwen2", "eos_token_id": 151645, "hidden_act": "silu", "hidden_size": 3584,
  "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
  "num_key_value_heads": 4, "vocab_size": 152064, "max_position_embeddings": 32768,
  "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": false
})";

}  // namespace

const std::vector<PublishedDims>& published_dims() {
  static const std::vector<PublishedDims> dims = {
      {.name = "qwen2-vl-2b", .config = kQwen2Vl2B, .layers = 28, .kept_layers = 28},
      {.name = "qwen2.5-vl-3b", .config = kQwen25Vl3B, .layers = 36, .kept_layers = 36},
      {.name = "qwen3-vl-4b", .config = kQwen3Vl4B, .layers = 36, .kept_layers = 36},
      {.name = "qwen3-vl-30b-a3b", .config = kQwen3Vl30B, .layers = 48, .kept_layers = 12},
      {.name = "qwen3-4b", .config = kQwen3Text4B, .layers = 36, .kept_layers = 36},
      {.name = "qwen2.5-7b", .config = kQwen25Text7B, .layers = 28, .kept_layers = 28},
  };
  return dims;
}

}  // namespace whimbrel
