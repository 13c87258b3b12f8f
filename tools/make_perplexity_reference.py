#!/usr/bin/env python3
"""Makes tests/golden/perplexity/smollm2.safetensors: how well mlx-lm predicts text.txt in float32.

tools/make_perplexity_reference.py DIR, where DIR is what tools/convert_smollm2.py wrote. Needs
mlx==0.32.4 and mlx-lm==0.32.2, which no test needs. `input_ids` [N+1] int32 are the text's
tokens, `nll` [N] float32 the negative log probability of each token after the first.
"""

import pathlib
import sys

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten
from mlx_lm.models import llama
from mlx_lm.utils import load_config
from tokenizers import Tokenizer

OUT = pathlib.Path("tests/golden/perplexity")
QUESTION = "The capital of France is the city of"


def dequantized(stored: dict[str, mx.array], group: int) -> dict[str, mx.array]:
    """All weights in float32."""
    weights = {}
    for name, value in stored.items():
        path, _, kind = name.rpartition(".")
        if kind in ("scales", "biases"):
            continue
        if path + ".scales" in stored:
            scales, biases = (stored[f"{path}.{part}"].astype(mx.float32) for part in ("scales", "biases"))
            bits = 32 * value.shape[-1] // (group * scales.shape[-1])
            value = mx.dequantize(value, scales, biases, group_size=group, bits=bits)
        weights[name] = value.astype(mx.float32)
    return weights


def load(folder: pathlib.Path) -> llama.Model:
    config = load_config(folder)
    group = config.pop("quantization")["group_size"]
    model = llama.Model(llama.ModelArgs.from_dict(config))
    weights = dequantized(mx.load(str(folder / "model.safetensors")), group)
    model.load_weights(list(weights.items()))
    assert {value.dtype for _, value in tree_flatten(model.parameters())} == {mx.float32}
    return model


def main():
    folder = pathlib.Path(sys.argv[1])
    model, tokenizer = load(folder), Tokenizer.from_file(str(folder / "tokenizer.json"))
    question = tokenizer.encode(QUESTION).ids
    best = mx.argmax(model(mx.array([question]))[0, -1]).item()
    print(f"{QUESTION!r} -> {tokenizer.decode([best])!r}")
    ids = tokenizer.encode((OUT / "text.txt").read_text()).ids
    print(f"{len(ids)} tokens")
    ids = mx.array(ids)
    logits = model(ids[None, :-1])[0]
    nll = mx.logsumexp(logits, axis=-1) - mx.take_along_axis(logits, ids[1:, None], axis=1)[:, 0]
    print(f"perplexity {float(np.exp(np.mean(np.array(nll, np.float64)))):.4f}")
    tensors = {"input_ids": ids.astype(mx.int32), "nll": nll}
    mx.save_safetensors(str(OUT / "smollm2.safetensors"), tensors)


if __name__ == "__main__":
    main()
