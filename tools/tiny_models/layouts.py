"""How published checkpoints name and lay out a model's tensors, and spell its config.json.

Works on numpy arrays and, without numpy, on outlines (outline.py).
"""

import copy
from collections.abc import Callable
from typing import Any

Array = Any  # np.ndarray or Outline
Tensors = dict[str, Array]

EXPERTS = ".mlp.experts."
PATCH_KERNEL = "visual.patch_embed.proj.weight"


def is_expert(name: str) -> bool:
    return EXPERTS in name


def rename(tensors: Tensors, prefixes: dict[str, str]) -> Tensors:
    def renamed(name: str) -> str:
        for old, new in prefixes.items():
            if name.startswith(old):
                return new + name.removeprefix(old)
        return name

    return {renamed(name): value for name, value in tensors.items()}


# ---- experts


def one_by_one(path: str, gate: Array, up: Array, down: Array) -> Tensors:
    """mlp.experts.0.gate_proj.weight …, as text checkpoints have it."""
    stacks = {"gate_proj": gate, "up_proj": up, "down_proj": down}
    return {
        f"{path}.experts.{i}.{name}.weight": stack[i]
        for i in range(len(gate))
        for name, stack in stacks.items()
    }


def fused_in_out(path: str, gate: Array, up: Array, down: Array) -> Tensors:
    """[experts, in, out], as vision-language checkpoints have it."""
    fused = fused_out_in(path, gate, up, down)
    return {name: value.transpose(0, 2, 1) for name, value in fused.items()}


def fused_out_in(path: str, gate: Array, up: Array, down: Array) -> Tensors:
    """[experts, out, in], as newer modules of transformers hold it."""
    gate_up = gate.__array_namespace__().concat([gate, up], axis=1)
    return {f"{path}.experts.gate_up_proj": gate_up, f"{path}.experts.down_proj": down}


def switched(path: str, gate: Array, up: Array, down: Array) -> Tensors:
    """Stacks of MLX conversions."""
    stacks = {"gate_proj": gate, "up_proj": up, "down_proj": down}
    return {f"{path}.switch_mlp.{name}.weight": stack for name, stack in stacks.items()}


def lay_out_experts(tensors: Tensors, form: Callable[..., Tensors]) -> Tensors:
    result = {name: value for name, value in tensors.items() if not is_expert(name)}
    for name in tensors:
        if name.endswith(EXPERTS + "gate_proj.weight"):
            path = name.removesuffix(".experts.gate_proj.weight")
            parts = (f"{path}.experts.{part}_proj.weight" for part in ("gate", "up", "down"))
            result |= form(path, *(tensors[part] for part in parts))
    return result


# ---- whole checkpoints


def hub_tensors(config: dict, tensors: Tensors, experts_out_in: bool, nested: bool) -> Tensors:
    """As the model's authors published it, or (nested) as transformers 5 saves it again."""
    has_vision = PATCH_KERNEL in tensors
    form = fused_in_out if has_vision else one_by_one
    tensors = lay_out_experts(tensors, fused_out_in if experts_out_in else form)
    if has_vision and (nested or "text_config" in config):
        return rename(tensors, {"model.": "model.language_model.", "visual.": "model.visual."})
    return tensors


def mlx_tensors(tensors: Tensors) -> Tensors:
    tensors = lay_out_experts(tensors, switched)
    if PATCH_KERNEL not in tensors:
        return tensors
    tensors[PATCH_KERNEL] = tensors[PATCH_KERNEL].transpose(0, 2, 3, 4, 1)
    prefixes = {"visual.": "vision_tower.", "": "language_model."}
    return rename(tensors, prefixes)


def without_vision(tensors: Tensors) -> Tensors:
    """A conversion of the text decoder alone keeps the prefix of the whole model's."""
    return {name: value for name, value in tensors.items() if not name.startswith("vision_tower.")}


# ---- config.json


ROOT_KEYS = (
    "architectures",
    "image_token_id",
    "model_type",
    "tie_word_embeddings",
    "transformers_version",
    "video_token_id",
    "vision_config",
    "vision_end_token_id",
    "vision_start_token_id",
    "vision_token_id",
)


def new_text_spelling(text: dict) -> dict:
    """rope_parameters in place of rope_theta and rope_scaling; dtype in place of torch_dtype."""
    text = dict(text)
    rope = text.pop("rope_scaling", None) or {}
    kept = {key: value for key, value in rope.items() if key.startswith("mrope_")}
    theta = text.pop("rope_theta")
    text["rope_parameters"] = {**kept, "rope_theta": theta, "rope_type": "default"}
    text["dtype"] = text.pop("torch_dtype", None) or text["dtype"]
    if "sliding_window" in text:
        text["layer_types"] = ["full_attention"] * text["num_hidden_layers"]
        text["sliding_window"] = None
    return text


def nested_config(config: dict) -> dict:
    """As transformers 5 saves it."""
    config = copy.deepcopy(config) | {"transformers_version": "5.0.0"}
    if "vision_config" not in config:
        return new_text_spelling(config)
    root = {key: config[key] for key in ROOT_KEYS if key in config}
    root.pop("vision_token_id", None)
    text = config.get("text_config")
    if text is None:
        text = {key: value for key, value in config.items() if key not in ROOT_KEYS}
        text["model_type"] = config["model_type"] + "_text"
        text["tie_word_embeddings"] = config["tie_word_embeddings"]
    text = new_text_spelling(text)
    return {**root, "dtype": text["dtype"], "text_config": text}


def mlx_config(config: dict) -> dict:
    """mlx-vlm keeps what it read, and copies root keys of a flat file into a text_config too."""
    config = copy.deepcopy(config)
    if "vision_config" in config and "text_config" not in config:
        config["text_config"] = {k: v for k, v in config.items() if k != "vision_config"}
    return dict(sorted(config.items()))


def text_only_config(config: dict) -> dict:
    """mlx-lm keeps what it read but for the tower's part."""
    return {key: value for key, value in sorted(config.items()) if key != "vision_config"}


def set_dtype(config: dict, dtype: str) -> dict:
    """`dtype` in place of the one stated, wherever it is stated."""
    config = copy.deepcopy(config)
    for part in (config, config.get("text_config", {})):
        for key in ("torch_dtype", "dtype"):
            if key in part:
                part[key] = dtype
    return config
