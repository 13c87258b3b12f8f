"""Writes safetensors files."""

import json
import pathlib
import struct
from typing import NamedTuple

import numpy as np


class Stored(NamedTuple):
    """A tensor as a file holds it."""

    dtype: str  # "F16", "BF16", "U32" …
    shape: list[int]
    data: bytes


def float16(values: np.ndarray) -> Stored:
    """Throws ValueError where a value isn't exactly one of float16."""
    narrow = np.ascontiguousarray(values, "<f2")
    if np.any(narrow.astype(np.float32) != values):
        raise ValueError("got a value that float16 can't hold")
    return Stored("F16", list(values.shape), narrow.tobytes())


def bfloat16(values: np.ndarray) -> Stored:
    """Throws ValueError where a value isn't exactly one of bfloat16."""
    bits = np.ascontiguousarray(values, "<f4").view("<u4")
    if np.any(bits & 0xFFFF):
        raise ValueError("got a value that bfloat16 can't hold")
    return Stored("BF16", list(values.shape), (bits >> 16).astype("<u2").tobytes())


def write_safetensors(path: pathlib.Path, tensors: dict[str, Stored], made_by: str):
    """`made_by` is the metadata's format: "pt", or "mlx" for files of MLX."""
    header: dict[str, dict] = {"__metadata__": {"format": made_by}}
    end = 0
    for name, tensor in sorted(tensors.items()):
        offsets = [end, end + len(tensor.data)]
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets}
        end += len(tensor.data)
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for _, tensor in sorted(tensors.items()):
            file.write(tensor.data)
