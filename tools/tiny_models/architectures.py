"""Names and shapes of each family's tensors, by its config.json. No values, no numpy.

Canonical names: `model.` for the text decoder, `visual.` for the tower, `lm_head.`; a layer's
experts in three stacks `mlp.experts.{gate,up,down}_proj.weight` [experts, out, in].
"""

import abc
import math


class Maker(abc.ABC):
    """Hears of one model's tensors, each with the spread that random values of it should have."""

    @abc.abstractmethod
    def uniform(self, name: str, shape: tuple[int, ...], spread: float, middle: float = 0.0):
        """Values of standard deviation `spread` around `middle`."""

    def norm(self, path: str, width: int, bias: bool = False, middle: float = 1.0):
        self.uniform(f"{path}.weight", (width,), 0.15, middle)
        if bias:
            self.uniform(f"{path}.bias", (width,), 0.15)

    def linear(self, path: str, shape: tuple[int, ...], gain: float, bias: bool = False):
        """[.., out, in]; an input of variance 1 gives an output of variance gain²."""
        self.uniform(f"{path}.weight", shape, gain / math.sqrt(shape[-1]))
        if bias:
            self.uniform(f"{path}.bias", (shape[-2],), 0.3)


def add_attention(make: Maker, layer: str, text: dict, qwen2: bool, qk_norm: bool):
    hidden, heads = text["hidden_size"], text["num_attention_heads"]
    head_dim = text.get("head_dim", hidden // heads)
    width, kv_width = heads * head_dim, text["num_key_value_heads"] * head_dim
    make.norm(f"{layer}.input_layernorm", hidden)
    make.linear(f"{layer}.self_attn.q_proj", (width, hidden), 1.4, bias=qwen2)
    make.linear(f"{layer}.self_attn.k_proj", (kv_width, hidden), 1.4, bias=qwen2)
    make.linear(f"{layer}.self_attn.v_proj", (kv_width, hidden), 1.4, bias=qwen2)
    make.linear(f"{layer}.self_attn.o_proj", (hidden, width), 1.4)
    if qk_norm:
        make.norm(f"{layer}.self_attn.q_norm", head_dim, middle=1.375)
        make.norm(f"{layer}.self_attn.k_norm", head_dim, middle=1.375)


def add_swiglu(make: Maker, path: str, hidden: int, width: int, stack: tuple[int, ...] = ()):
    for name in ("gate_proj", "up_proj"):
        make.linear(f"{path}.{name}", (*stack, width, hidden), 1.4)
    make.linear(f"{path}.down_proj", (*stack, hidden, width), 1.4)


def is_sparse(text: dict, layer: int) -> bool:
    if "num_experts" not in text or layer in text["mlp_only_layers"]:
        return False
    return (layer + 1) % text["decoder_sparse_step"] == 0


def add_text(make: Maker, text: dict, qwen2: bool, qk_norm: bool):
    hidden = text["hidden_size"]
    vocabulary = (text["vocab_size"], hidden)
    make.uniform("model.embed_tokens.weight", vocabulary, 0.5)
    for i in range(text["num_hidden_layers"]):
        layer = f"model.layers.{i}"
        add_attention(make, layer, text, qwen2, qk_norm)
        make.norm(f"{layer}.post_attention_layernorm", hidden)
        if is_sparse(text, i):
            experts = text["num_experts"]
            make.linear(f"{layer}.mlp.gate", (experts, hidden), 1.4)
            width = text["moe_intermediate_size"]
            add_swiglu(make, f"{layer}.mlp.experts", hidden, width, (experts,))
        else:
            add_swiglu(make, f"{layer}.mlp", hidden, text["intermediate_size"])
    make.norm("model.norm", hidden, middle=1.75)
    if not text["tie_word_embeddings"]:
        make.uniform("lm_head.weight", vocabulary, 0.5)


def add_patch_embedding(make: Maker, vision: dict, width: int, bias: bool):
    patch = (vision["temporal_patch_size"], vision["patch_size"], vision["patch_size"])
    shape = (width, 3, *patch)
    # Pixels of a picture go together, so that their sum grows faster than a random one.
    make.uniform("visual.patch_embed.proj.weight", shape, 0.5 / math.sqrt(math.prod(shape[1:])))
    if bias:
        make.uniform("visual.patch_embed.proj.bias", (width,), 0.3)


def add_vision_attention(make: Maker, block: str, width: int, bias_in_norm: bool):
    for norm in ("norm1", "norm2"):
        make.norm(f"{block}.{norm}", width, bias=bias_in_norm)
    make.linear(f"{block}.attn.qkv", (3 * width, width), 1.2, bias=True)
    make.linear(f"{block}.attn.proj", (width, width), 1.2, bias=True)


def add_merger(make: Maker, first: str, second: str, merged: int, out: int):
    make.linear(first, (merged, merged), 1.4, bias=True)
    make.linear(second, (out, merged), 1.0, bias=True)


def add_qwen2_vision(make: Maker, vision: dict):
    width = vision["embed_dim"]
    add_patch_embedding(make, vision, width, bias=False)
    for i in range(vision["depth"]):
        block = f"visual.blocks.{i}"
        inner = width * vision["mlp_ratio"]
        add_vision_attention(make, block, width, bias_in_norm=True)
        make.linear(f"{block}.mlp.fc1", (inner, width), 1.4, bias=True)
        make.linear(f"{block}.mlp.fc2", (width, inner), 1.4, bias=True)
    make.norm("visual.merger.ln_q", width, bias=True)
    merger = "visual.merger.mlp."
    add_merger(make, merger + "0", merger + "2", 4 * width, vision["hidden_size"])


def add_qwen2_5_vision(make: Maker, vision: dict):
    width, inner = vision["hidden_size"], vision["intermediate_size"]
    add_patch_embedding(make, vision, width, bias=False)
    for i in range(vision["depth"]):
        block = f"visual.blocks.{i}"
        add_vision_attention(make, block, width, bias_in_norm=False)
        make.linear(f"{block}.mlp.gate_proj", (inner, width), 1.4, bias=True)
        make.linear(f"{block}.mlp.up_proj", (inner, width), 1.4, bias=True)
        make.linear(f"{block}.mlp.down_proj", (width, inner), 1.4, bias=True)
    make.norm("visual.merger.ln_q", width)
    merger = "visual.merger.mlp."
    add_merger(make, merger + "0", merger + "2", 4 * width, vision["out_hidden_size"])


def add_qwen3_vision(make: Maker, vision: dict):
    width, inner = vision["hidden_size"], vision["intermediate_size"]
    add_patch_embedding(make, vision, width, bias=True)
    make.uniform("visual.pos_embed.weight", (vision["num_position_embeddings"], width), 0.5)
    for i in range(vision["depth"]):
        block = f"visual.blocks.{i}"
        add_vision_attention(make, block, width, bias_in_norm=True)
        make.linear(f"{block}.mlp.linear_fc1", (inner, width), 1.4, bias=True)
        make.linear(f"{block}.mlp.linear_fc2", (width, inner), 1.4, bias=True)
    count = len(vision["deepstack_visual_indexes"])
    mergers = [f"visual.deepstack_merger_list.{i}" for i in range(count)]
    for path in ("visual.merger", *mergers):
        make.norm(f"{path}.norm", width if path == "visual.merger" else 4 * width, bias=True)
        first, second = f"{path}.linear_fc1", f"{path}.linear_fc2"
        add_merger(make, first, second, 4 * width, vision["out_hidden_size"])


VISION = {
    "qwen2_vl": add_qwen2_vision,
    "qwen2_5_vl": add_qwen2_5_vision,
    "qwen3_vl": add_qwen3_vision,
    "qwen3_vl_moe": add_qwen3_vision,
}


def add_tensors(make: Maker, config: dict):
    """All tensors of the model that config.json describes."""
    family = config["model_type"]
    qwen2, qwen3 = family.startswith("qwen2"), family.startswith("qwen3")
    add_text(make, config.get("text_config", config), qwen2, qk_norm=qwen3)
    if family in VISION:
        VISION[family](make, config["vision_config"])
