#!/usr/bin/env python3
"""Writes a GGUF file of random weights: random_gguf.py MODEL WEIGHTS FILE

MODEL is one of subjects.DIMS, WEIGHTS 4bit (Q4_0), 8bit (Q8_0) or bf16. Sizes, biases, norms and
the tied embedding are those of the published text decoder; the numbers are noise of the spread that
trained weights have, so that nothing overflows. There is no vocabulary but its size. Needs gguf
and numpy.
"""

import argparse
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import gguf
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from subjects import DIMS, hub_config, text_config  # noqa: E402

ARCHITECTURES = {"qwen2_vl": "qwen2vl", "qwen2_5_vl": "qwen2vl", "qwen3_vl": "qwen3vl"}
BLOCK = 32  # values of a Q4_0 or Q8_0 block
CONTEXT_LENGTH = 32768
SEED = 20


class Outline(NamedTuple):
    name: str
    shape: tuple[int, ...]  # outermost first

    @property
    def is_matrix(self) -> bool:
        return len(self.shape) == 2


# ---- numbers


def scaled_blocks(rng: np.random.Generator, count: int, bytes_: int, scale: float) -> np.ndarray:
    """[count, 2 + bytes_]: a float16 scale around `scale`, then random codes."""
    blocks = np.frombuffer(bytearray(rng.bytes(count * (2 + bytes_))), np.uint8)
    blocks = blocks.reshape(count, 2 + bytes_)
    scales = (scale * rng.uniform(0.75, 1.25, count)).astype("<f2")
    blocks[:, :2] = scales.view(np.uint8).reshape(count, 2)
    return blocks


def q4_0(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> np.ndarray:
    """Rows of blocks, as bytes. Codes are -8 to 7, of standard deviation 4.61."""
    rows, width = shape
    return scaled_blocks(rng, rows * width // BLOCK, 16, spread / 4.61).reshape(rows, -1)


def q8_0(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> np.ndarray:
    """Rows of blocks, as bytes. Codes are -128 to 127, of standard deviation 73.9."""
    rows, width = shape
    return scaled_blocks(rng, rows * width // BLOCK, 32, spread / 73.9).reshape(rows, -1)


def bf16(rng: np.random.Generator, shape: tuple[int, ...], spread: float) -> np.ndarray:
    """Rows of numbers, as bytes: signs and mantissas are random, the exponent is one."""
    exponent = int(np.floor(np.log2(spread / 1.53))) + 127
    rows, width = shape
    bits = np.frombuffer(bytearray(rng.bytes(2 * rows * width)), "<u2")
    bits &= 0x807F
    bits |= exponent << 7
    return bits.view(np.uint8).reshape(rows, -1)


class Weights(NamedTuple):
    type: gguf.GGMLQuantizationType
    file_type: gguf.LlamaFileType
    make: Callable[[np.random.Generator, tuple[int, ...], float], np.ndarray]


TYPES, FILES = gguf.GGMLQuantizationType, gguf.LlamaFileType
WEIGHTS = {
    "4bit": Weights(TYPES.Q4_0, FILES.MOSTLY_Q4_0, q4_0),
    "8bit": Weights(TYPES.Q8_0, FILES.MOSTLY_Q8_0, q8_0),
    "bf16": Weights(TYPES.BF16, FILES.MOSTLY_BF16, bf16),
}


# ---- tensors


def head_dim(text: dict) -> int:
    return text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]


def layer_outlines(text: dict, has_head_norms: bool) -> Iterator[Outline]:
    """Tensors of a decoder layer, without `blk.N.`"""
    hidden, inner, head = text["hidden_size"], text["intermediate_size"], head_dim(text)
    queries = text["num_attention_heads"] * head
    keys = text["num_key_value_heads"] * head
    yield Outline("attn_norm.weight", (hidden,))
    for name, width in (("attn_q", queries), ("attn_k", keys), ("attn_v", keys)):
        yield Outline(f"{name}.weight", (width, hidden))
        if not has_head_norms:
            yield Outline(f"{name}.bias", (width,))
    if has_head_norms:
        yield Outline("attn_q_norm.weight", (head,))
        yield Outline("attn_k_norm.weight", (head,))
    yield Outline("attn_output.weight", (hidden, queries))
    yield Outline("ffn_norm.weight", (hidden,))
    yield Outline("ffn_gate.weight", (inner, hidden))
    yield Outline("ffn_up.weight", (inner, hidden))
    yield Outline("ffn_down.weight", (hidden, inner))


def outlines(config: dict) -> Iterator[Outline]:
    """All tensors of a model with a tied head."""
    text = text_config(config)
    has_head_norms = ARCHITECTURES[config["model_type"]].startswith("qwen3")
    yield Outline("token_embd.weight", (text["vocab_size"], text["hidden_size"]))
    for layer in range(text["num_hidden_layers"]):
        for outline in layer_outlines(text, has_head_norms):
            yield outline._replace(name=f"blk.{layer}.{outline.name}")
    yield Outline("output_norm.weight", (text["hidden_size"],))


def numbers(rng: np.random.Generator, outline: Outline, weights: Weights) -> np.ndarray:
    if outline.is_matrix:
        return weights.make(rng, outline.shape, spread=outline.shape[1] ** -0.5)
    if outline.name.endswith(".bias"):
        return (0.02 * rng.standard_normal(outline.shape)).astype(np.float32)
    return np.ones(outline.shape, np.float32)


def stored_bytes(outline: Outline, weights: Weights) -> int:
    count = int(np.prod(outline.shape))
    if not outline.is_matrix:
        return 4 * count
    values, size = gguf.GGML_QUANT_SIZES[weights.type]
    return count // values * size


# ---- files


def add_fields(writer: gguf.GGUFWriter, config: dict, weights: Weights):
    text = text_config(config)
    writer.add_file_type(weights.file_type)
    writer.add_context_length(CONTEXT_LENGTH)
    writer.add_embedding_length(text["hidden_size"])
    writer.add_block_count(text["num_hidden_layers"])
    writer.add_feed_forward_length(text["intermediate_size"])
    writer.add_head_count(text["num_attention_heads"])
    writer.add_head_count_kv(text["num_key_value_heads"])
    writer.add_key_length(head_dim(text))
    writer.add_value_length(head_dim(text))
    writer.add_layer_norm_rms_eps(text["rms_norm_eps"])
    writer.add_rope_freq_base(text["rope_theta"])
    writer.add_rope_dimension_sections([*text["rope_scaling"]["mrope_section"], 0])
    if deepstack := config["vision_config"].get("deepstack_visual_indexes"):
        writer.add_num_deepstack_layers(len(deepstack))
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(text["vocab_size"])


def write_random_gguf(path: pathlib.Path, config: dict, weights: Weights):
    """Throws ValueError where the model has a head of its own."""
    if not config["tie_word_embeddings"]:
        raise ValueError("got a model with a head of its own, expected a tied one")
    rng = np.random.default_rng(SEED)
    tensors = list(outlines(config))
    writer = gguf.GGUFWriter(path, ARCHITECTURES[config["model_type"]])
    add_fields(writer, config, weights)
    for outline in tensors:
        raw = weights.type if outline.is_matrix else TYPES.F32
        # A matrix's type is told by the bytes of its rows, and then its shape is theirs too.
        rows = (outline.shape[0], stored_bytes(outline, weights) // outline.shape[0])
        shape, dtype = (rows, np.uint8) if outline.is_matrix else (outline.shape, np.float32)
        size = stored_bytes(outline, weights)
        writer.add_tensor_info(outline.name, shape, np.dtype(dtype), size, raw_dtype=raw)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for outline in tensors:
        writer.write_tensor_data(numbers(rng, outline, weights))
    writer.close()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=DIMS, metavar="MODEL")
    parser.add_argument("weights", choices=WEIGHTS, metavar="WEIGHTS")
    parser.add_argument("file", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    # Under another name until it is whole: who finds the file may use it.
    part = arguments.file.with_suffix(".part")
    write_random_gguf(part, hub_config(arguments.model), WEIGHTS[arguments.weights])
    part.replace(arguments.file)


if __name__ == "__main__":
    main()
