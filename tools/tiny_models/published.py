"""config.json of published checkpoints at full size: keys of configs.py, sizes as published."""

import dataclasses
from collections.abc import Callable

from . import configs

VOCABULARY = {"bos_token_id": 151643, "eos_token_id": 151645}
MEDIA_TOKENS = {
    "image_token_id": 151655,
    "video_token_id": 151656,
    "vision_end_token_id": 151653,
    "vision_start_token_id": 151652,
}
GENERATION = {
    "bos_token_id": 151643,
    "do_sample": True,
    "eos_token_id": [151645, 151643],
    "pad_token_id": 151643,
}


@dataclasses.dataclass(frozen=True)
class Text:
    """Sizes of a text decoder. `expert` is the width of one expert, 0 in dense models."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int = 151936
    tied: bool = False
    expert: int = 0

    def keys(self) -> dict:
        mixture = {
            "mlp_only_layers": [],
            "moe_intermediate_size": self.expert,
            "num_experts": 128,
            "num_experts_per_tok": 8,
        }
        return {
            **VOCABULARY,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "num_key_value_heads": self.kv_heads,
            "tie_word_embeddings": self.tied,
            "vocab_size": self.vocabulary,
            **(mixture if self.expert else {}),
        }


def qwen2(text: Text) -> dict:
    return configs.qwen2() | text.keys() | {"max_window_layers": text.layers}


def qwen3(text: Text) -> dict:
    base = configs.qwen3_moe() if text.expert else configs.qwen3()
    return base | text.keys() | {"head_dim": 128, "max_window_layers": text.layers}


def qwen2_multimodal(base: dict, text: Text, vision: dict) -> dict:
    return {
        **base,
        **text.keys(),
        **MEDIA_TOKENS,
        "max_window_layers": text.layers,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
        "vision_config": base["vision_config"] | vision,
        "vision_token_id": 151654,
    }


def qwen2_vl(text: Text) -> dict:
    vision = {"depth": 32, "embed_dim": 1280, "hidden_size": text.hidden, "num_heads": 16}
    return qwen2_multimodal(configs.qwen2_vl(), text, vision)


def qwen2_5_vl(text: Text, vision_intermediate: int = 3420) -> dict:
    vision = {
        "depth": 32,
        "fullatt_block_indexes": [7, 15, 23, 31],
        "hidden_size": 1280,
        "intermediate_size": vision_intermediate,
        "num_heads": 16,
        "out_hidden_size": text.hidden,
    }
    return qwen2_multimodal(configs.qwen2_5_vl(), text, vision)


SMALL_TOWER = {
    "deepstack_visual_indexes": [5, 11, 17],
    "depth": 24,
    "hidden_size": 1024,
    "intermediate_size": 4096,
}
LARGE_TOWER = {
    "deepstack_visual_indexes": [8, 16, 24],
    "depth": 27,
    "hidden_size": 1152,
    "intermediate_size": 4304,
}


def qwen3_vl(text: Text, tower: dict) -> dict:
    base = configs.qwen3_vl_moe() if text.expert else configs.qwen3_vl()
    rope = base["text_config"]["rope_scaling"] | {"mrope_section": [24, 20, 20]}
    vision = tower | {
        "num_heads": 16,
        "num_position_embeddings": 2304,
        "out_hidden_size": text.hidden,
    }
    return {
        **base,
        **MEDIA_TOKENS,
        "text_config": base["text_config"] | text.keys() | {"head_dim": 128, "rope_scaling": rope},
        "tie_word_embeddings": text.tied,
        "vision_config": base["vision_config"] | vision,
    }


QWEN2_7B = Text(28, 3584, 28, 4, 18944, vocabulary=152064)
QWEN3_4B = Text(36, 2560, 32, 8, 9728, tied=True)
QWEN3_30B = Text(48, 2048, 32, 4, 6144, expert=768)

# By the name on the hub, without the owner's.
CONFIGS: dict[str, Callable[[], dict]] = {
    "Qwen2-VL-2B-Instruct": lambda: qwen2_vl(Text(28, 1536, 12, 2, 8960, tied=True)),
    "Qwen2-VL-7B-Instruct": lambda: qwen2_vl(QWEN2_7B),
    "Qwen2.5-VL-3B-Instruct": lambda: qwen2_5_vl(Text(36, 2048, 16, 2, 11008, tied=True)),
    "Qwen2.5-VL-7B-Instruct": lambda: qwen2_5_vl(QWEN2_7B),
    "Qwen2.5-VL-32B-Instruct": lambda: qwen2_5_vl(
        Text(64, 5120, 40, 8, 27648, vocabulary=152064), vision_intermediate=3456
    ),
    "Qwen2.5-VL-72B-Instruct": lambda: qwen2_5_vl(
        Text(80, 8192, 64, 8, 29568, vocabulary=152064), vision_intermediate=3456
    ),
    "Qwen3-VL-2B-Instruct": lambda: qwen3_vl(
        Text(28, 2048, 16, 8, 6144, tied=True), SMALL_TOWER
    ),
    "Qwen3-VL-4B-Instruct": lambda: qwen3_vl(QWEN3_4B, SMALL_TOWER),
    "Qwen3-VL-8B-Instruct": lambda: qwen3_vl(Text(36, 4096, 32, 8, 12288), LARGE_TOWER),
    "Qwen3-VL-32B-Instruct": lambda: qwen3_vl(Text(64, 5120, 64, 8, 25600), LARGE_TOWER),
    "Qwen3-VL-30B-A3B-Instruct": lambda: qwen3_vl(QWEN3_30B, LARGE_TOWER),
    "Qwen3-VL-235B-A22B-Instruct": lambda: qwen3_vl(
        Text(94, 4096, 64, 4, 12288, expert=1536), LARGE_TOWER
    ),
    "Qwen2.5-7B-Instruct": lambda: qwen2(QWEN2_7B),
    "Qwen3-4B": lambda: qwen3(QWEN3_4B),
    "Qwen3-30B-A3B": lambda: qwen3(QWEN3_30B),
}
# MLX conversions of these, named with "-4bit" behind.
MLX_4BIT = ("Qwen2.5-VL-3B-Instruct", "Qwen3-VL-4B-Instruct", "Qwen3-VL-30B-A3B-Instruct")
