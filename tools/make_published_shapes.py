#!/usr/bin/env python3
"""Makes published checkpoints without weights: make_published_shapes.py --out DIR [--model M]...

Writes DIR/M for each model: config.json, generation_config.json, and safetensors files with the
names, dtypes and shapes of the full-size model. Their data are holes: no disk space, zeros when
read. Files hold at most 5 GB, with an index where there are several, as on the hub. Models whose
name ends in -4bit have the form of MLX's conversions; --packed-tower packs their towers too, as
some conversions do.
"""

import argparse
import json
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tiny_models import layouts, published  # noqa: E402
from tiny_models.outline import Outlines, make_outlines, quantized  # noqa: E402

LARGEST_FILE = 5 * 10**9
QUANTIZED = {f"{name}-4bit": name for name in published.MLX_4BIT}
MODELS = (*published.CONFIGS, *QUANTIZED)


def checkpoint(model: str, packed_tower: bool) -> tuple[dict, Outlines]:
    config = published.CONFIGS[QUANTIZED.get(model, model)]()
    tensors = make_outlines(config)
    if model not in QUANTIZED:
        return config, layouts.hub_tensors(config, tensors, experts_out_in=False, nested=False)
    tensors = layouts.mlx_tensors(tensors)
    return quantized(layouts.mlx_config(config), tensors, bits=4, tower=packed_tower)


def shards(tensors: Outlines) -> list[Outlines]:
    """Tensors in order, a new file where one would grow over the limit."""
    files: list[Outlines] = [{}]
    size = 0
    for name, tensor in tensors.items():
        if files[-1] and size + tensor.bytes > LARGEST_FILE:
            files.append({})
            size = 0
        files[-1][name] = tensor
        size += tensor.bytes
    return files


def write_file(path: pathlib.Path, tensors: Outlines, made_by: str):
    """A safetensors file whose data are a hole."""
    header: dict[str, dict] = {"__metadata__": {"format": made_by}}
    end = 0
    for name, tensor in tensors.items():
        offsets = [end, end + tensor.bytes]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        end += tensor.bytes
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        file.flush()
        os.truncate(path, file.tell() + end)


def write_json(path: pathlib.Path, value: dict):
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_weights(folder: pathlib.Path, tensors: Outlines, made_by: str):
    files = shards(tensors)
    if len(files) == 1:
        write_file(folder / "model.safetensors", tensors, made_by)
        return
    weight_map = {}
    for number, shard in enumerate(files, 1):
        name = f"model-{number:05}-of-{len(files):05}.safetensors"
        write_file(folder / name, shard, made_by)
        weight_map |= dict.fromkeys(shard, name)
    total_size = sum(tensor.bytes for tensor in tensors.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
    write_json(folder / "model.safetensors.index.json", index)


def make_model(model: str, folder: pathlib.Path, packed_tower: bool):
    """Writes one model into `folder`."""
    config, tensors = checkpoint(model, packed_tower)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", published.GENERATION)
    write_weights(folder, tensors, "mlx" if model in QUANTIZED else "pt")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--model", action="append", choices=MODELS, default=[])
    parser.add_argument("--packed-tower", action="store_true")
    arguments = parser.parse_args()
    for model in arguments.model or MODELS:
        make_model(model, arguments.out / model, arguments.packed_tower)


if __name__ == "__main__":
    main()
