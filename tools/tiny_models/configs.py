"""config.json of a tiny model of each family, key for key as published checkpoints spell it.

Sizes are odd where the family allows: heads that don't add up to hidden_size, widths that no
quantisation group divides, layers that differ.
"""

VOCABULARY = {
    "bos_token_id": 2000,
    "eos_token_id": 2002,
    "vocab_size": 2048,
}
MEDIA_TOKENS = {
    "image_token_id": 2012,
    "video_token_id": 2013,
    "vision_end_token_id": 2010,
    "vision_start_token_id": 2009,
}
TRAINING = {
    "attention_dropout": 0.0,
    "initializer_range": 0.02,
    "use_cache": True,
}


def qwen2_text(heads: int, kv_heads: int, tied: bool) -> dict:
    return {
        **VOCABULARY,
        **TRAINING,
        "hidden_act": "silu",
        "hidden_size": heads * 16,
        "intermediate_size": 152,
        "max_position_embeddings": 32768,
        "max_window_layers": 3,
        "num_attention_heads": heads,
        "num_hidden_layers": 3,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "sliding_window": 32768,
        "tie_word_embeddings": tied,
        "use_sliding_window": False,
    }


def qwen3_text(heads: int, kv_heads: int, head_dim: int, tied: bool) -> dict:
    return {
        **VOCABULARY,
        **TRAINING,
        "attention_bias": False,
        "head_dim": head_dim,
        "hidden_act": "silu",
        "hidden_size": 64,
        "intermediate_size": 152,
        "num_attention_heads": heads,
        "num_hidden_layers": 3,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": tied,
    }


MIXTURE = {
    "decoder_sparse_step": 1,
    "mlp_only_layers": [1],
    "moe_intermediate_size": 24,
    "norm_topk_prob": True,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 4,
    "router_aux_loss_coef": 0.001,
}


def qwen2() -> dict:
    return {
        "architectures": ["Qwen2ForCausalLM"],
        **qwen2_text(heads=6, kv_heads=2, tied=True),
        "model_type": "qwen2",
        "torch_dtype": "bfloat16",
        "transformers_version": "4.43.1",
    }


def qwen3_for_text(heads: int, kv_heads: int, tied: bool) -> dict:
    text = qwen3_text(heads, kv_heads, 24, tied)
    return {
        **text,
        "max_position_embeddings": 40960,
        "max_window_layers": text["num_hidden_layers"],
        "rope_scaling": None,
        "rope_theta": 1000000,
        "sliding_window": None,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0",
        "use_sliding_window": False,
    }


def qwen3() -> dict:
    return {
        "architectures": ["Qwen3ForCausalLM"],
        **qwen3_for_text(heads=4, kv_heads=1, tied=True),
        "model_type": "qwen3",
    }


def qwen3_moe() -> dict:
    return {
        "architectures": ["Qwen3MoeForCausalLM"],
        **qwen3_for_text(heads=6, kv_heads=2, tied=False),
        **MIXTURE,
        "max_window_layers": 4,
        "model_type": "qwen3_moe",
        "output_router_logits": False,
    }


def llama() -> dict:
    return {
        "architectures": ["LlamaForCausalLM"],
        **VOCABULARY,
        **TRAINING,
        "attention_bias": False,
        "hidden_act": "silu",
        "hidden_size": 72,
        "intermediate_size": 200,
        "is_llama_config": True,
        "max_position_embeddings": 8192,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 9,
        "num_hidden_layers": 3,
        "num_key_value_heads": 3,
        "pad_token_id": 2002,
        "pretraining_tp": 1,
        "rms_norm_eps": 1e-5,
        "rope_interleaved": False,
        "rope_scaling": None,
        "rope_theta": 100000,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.42.3",
    }


def qwen2_vl() -> dict:
    text = qwen2_text(heads=4, kv_heads=2, tied=True)
    return {
        "architectures": ["Qwen2VLForConditionalGeneration"],
        **text,
        **MEDIA_TOKENS,
        "model_type": "qwen2_vl",
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
        "torch_dtype": "bfloat16",
        "transformers_version": "4.41.2",
        "vision_config": {
            "depth": 3,
            "embed_dim": 48,
            "hidden_size": text["hidden_size"],
            "in_chans": 3,
            "mlp_ratio": 4,
            "num_heads": 3,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "spatial_patch_size": 14,
            "temporal_patch_size": 2,
        },
        "vision_token_id": 2011,
    }


def qwen2_5_vl() -> dict:
    text = qwen2_text(heads=4, kv_heads=1, tied=False)
    return {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        **text,
        **MEDIA_TOKENS,
        "max_position_embeddings": 128000,
        "model_type": "qwen2_5_vl",
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
        "torch_dtype": "bfloat16",
        "transformers_version": "4.41.2",
        "vision_config": {
            "depth": 3,
            "fullatt_block_indexes": [1],
            "hidden_act": "silu",
            "hidden_size": 48,
            "in_chans": 3,
            "intermediate_size": 44,
            "num_heads": 3,
            "out_hidden_size": text["hidden_size"],
            "patch_size": 14,
            "spatial_merge_size": 2,
            "spatial_patch_size": 14,
            "temporal_patch_size": 2,
            "tokens_per_second": 2,
            "window_size": 112,
        },
        "vision_token_id": 2011,
    }


def qwen3_vision(model_type: str, depth: int, deepstack: list[int]) -> dict:
    return {
        "deepstack_visual_indexes": deepstack,
        "depth": depth,
        "hidden_act": "gelu_pytorch_tanh",
        "hidden_size": 32,
        "in_channels": 3,
        "initializer_range": 0.02,
        "intermediate_size": 76,
        "model_type": model_type,
        "num_heads": 2,
        "num_position_embeddings": 49,
        "out_hidden_size": 64,
        "patch_size": 16,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    }


def qwen3_multimodal(text: dict, section: list[int], vision: dict) -> dict:
    text = {
        **text,
        "dtype": "bfloat16",
        "max_position_embeddings": 262144,
        "model_type": vision["model_type"] + "_text",
        "rope_scaling": {
            "mrope_interleaved": True,
            "mrope_section": section,
            "rope_type": "default",
        },
        "rope_theta": 5000000,
    }
    return {
        **MEDIA_TOKENS,
        "model_type": vision["model_type"],
        "text_config": text,
        "tie_word_embeddings": text["tie_word_embeddings"],
        "transformers_version": "4.57.0.dev0",
        "vision_config": vision,
    }


def qwen3_vl() -> dict:
    text = qwen3_text(heads=4, kv_heads=2, head_dim=32, tied=True)
    vision = qwen3_vision("qwen3_vl", depth=4, deepstack=[0, 2, 3])
    architectures = {"architectures": ["Qwen3VLForConditionalGeneration"]}
    return architectures | qwen3_multimodal(text, [6, 5, 5], vision)


def qwen3_vl_moe() -> dict:
    text = qwen3_text(heads=6, kv_heads=2, head_dim=24, tied=False) | MIXTURE
    vision = qwen3_vision("qwen3_vl_moe", depth=4, deepstack=[0, 1, 3])
    architectures = {"architectures": ["Qwen3VLMoeForConditionalGeneration"]}
    return architectures | qwen3_multimodal(text, [6, 3, 3], vision)


CONFIGS = {
    make.__name__: make
    for make in (qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_vl_moe, qwen2, qwen3, qwen3_moe, llama)
}
TEXT_FAMILIES = ("qwen2", "qwen3", "qwen3_moe", "llama")
