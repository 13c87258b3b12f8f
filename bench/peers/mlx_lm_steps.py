#!/usr/bin/env python3
"""Times decode steps of mlx-lm on the CPU: mlx_lm_steps.py MODEL DTYPE CONTEXT STEPS

mlx-lm's own model code with random weights in 4 bit, groups of 64, at the dims of MODEL (one of
subjects.DIMS); DTYPE is that of scales and activations. The cache is filled with `CONTEXT` random rows, for
a prompt would take minutes and a step doesn't depend on what stands in them. A first step warms up.
Prints one JSON object. Needs mlx-lm.
"""

import argparse
import importlib.metadata
import json
import pathlib
import sys
import time

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_map
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import _get_classes

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from subjects import DIMS, hub_config  # noqa: E402

GROUP, BITS = 64, 4
DTYPES = {"bfloat16": mx.bfloat16, "float32": mx.float32}


def random_numbers(array: mx.array, dtype: mx.Dtype) -> mx.array:
    """Packed codes become random bits; scales, offsets, norms and biases small numbers."""
    if array.dtype == mx.uint32:
        return mx.random.randint(-(2**31), 2**31 - 1, array.shape, mx.int32).view(mx.uint32)
    return (0.01 * mx.random.normal(array.shape)).astype(dtype)


def make_model(config: dict, dtype: mx.Dtype) -> nn.Module:
    model_class, args_class = _get_classes(config)
    model = model_class(args_class.from_dict(config))
    # Shapes only: the float32 weights are never computed.
    nn.quantize(model, GROUP, BITS)
    model.update(tree_map(lambda array: random_numbers(array, dtype), model.parameters()))
    mx.eval(model.parameters())
    return model


def fill_cache(model: nn.Module, text: dict, dtype: mx.Dtype, rows: int) -> list:
    cache = make_prompt_cache(model)
    head_dim = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    shape = (1, text["num_key_value_heads"], rows, head_dim)
    for layer in cache:
        layer.update_and_fetch(*(mx.random.normal(shape).astype(dtype) for _ in range(2)))
    mx.eval([layer.state for layer in cache])
    return cache


def step_times(model: nn.Module, cache: list, steps: int) -> list[float]:
    """Milliseconds of each step but the first."""
    token = mx.array([[1]])
    times = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        token = mx.argmax(model(token, cache=cache)[:, -1], axis=-1)[None]
        mx.eval(token)
        times.append(1000 * (time.perf_counter() - start))
    return times[1:]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=DIMS)
    parser.add_argument("dtype", choices=DTYPES)
    parser.add_argument("context", type=int)
    parser.add_argument("steps", type=int)
    arguments = parser.parse_args()
    mx.set_default_device(mx.cpu)
    mx.random.seed(20)
    config, dtype = hub_config(arguments.model), DTYPES[arguments.dtype]
    model = make_model(config, dtype)
    cache = fill_cache(model, config.get("text_config", config), dtype, arguments.context)
    times = step_times(model, cache, arguments.steps)
    versions = {name: importlib.metadata.version(name) for name in ("mlx-lm", "mlx")}
    row = {"build": versions, "step_ms": times, **vars(arguments)}
    print(json.dumps(row))


if __name__ == "__main__":
    main()
