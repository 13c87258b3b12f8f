"""Tensors without values: what layouts.py moves about when only names and shapes count."""

import dataclasses
import math

from .architectures import Maker, add_tensors

BITS = {"BF16": 16, "U32": 32}


@dataclasses.dataclass(frozen=True)
class Outline:
    """A tensor's shape, and its dtype as safetensors spells it. The few operations that layouts.py
    needs are spelled as numpy spells them."""

    shape: tuple[int, ...]
    dtype: str = "BF16"

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * BITS[self.dtype] // 8

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: int) -> "Outline":
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Outline(self.shape[1:], self.dtype)

    def transpose(self, *axes: int) -> "Outline":
        if sorted(axes) != list(range(len(self.shape))):
            raise ValueError(f"got axes {axes}, expected each axis of {self.shape} once")
        return Outline(tuple(self.shape[axis] for axis in axes), self.dtype)

    def __array_namespace__(self) -> type["Outline"]:
        return Outline

    @staticmethod
    def concat(parts: list["Outline"], axis: int) -> "Outline":
        others = {part.shape[:axis] + part.shape[axis + 1 :] for part in parts}
        if len(others) != 1:
            raise ValueError(f"got {parts}, expected shapes that differ in axis {axis} only")
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return Outline(tuple(shape), parts[0].dtype)


Outlines = dict[str, Outline]


class OutlineMaker(Maker):
    """Notes names and shapes."""

    def __init__(self):
        self.tensors: Outlines = {}

    def uniform(self, name: str, shape: tuple[int, ...], spread: float, middle: float = 0.0):
        self.tensors[name] = Outline(shape)


def make_outlines(config: dict) -> Outlines:
    make = OutlineMaker()
    add_tensors(make, config)
    return make.tensors


# ---- MLX's quantisation


GROUP_SIZE = 64
ROUTER = ".mlp.gate"
ROUTER_BITS = 8


def bits_of(module: str, bits: int) -> int:
    return ROUTER_BITS if module.endswith(ROUTER) else bits


def packed(module: str, weight: Outline, bits: int) -> Outlines:
    """Codes in words of 32 bits; a scale and a bias for each group of columns."""
    rows, columns = weight.shape[:-1], weight.shape[-1]
    if columns % GROUP_SIZE != 0:
        raise ValueError(f"got {columns} columns of {module}, expected groups of {GROUP_SIZE}")
    words = columns * bits_of(module, bits) // 32
    scales = Outline((*rows, columns // GROUP_SIZE))
    return {
        f"{module}.weight": Outline((*rows, words), "U32"),
        f"{module}.scales": scales,
        f"{module}.biases": scales,
    }


def is_packed(name: str, tensor: Outline, tower: bool) -> bool:
    if name.startswith("language_model."):
        return len(tensor.shape) > 1
    return tower and len(tensor.shape) == 2 and tensor.shape[-1] % GROUP_SIZE == 0


def quantized(config: dict, tensors: Outlines, bits: int, tower: bool) -> tuple[dict, Outlines]:
    """As mlx-vlm converts: every matrix of the text decoder, routers at 8 bits. With `tower`, as
    others do: matrices of the tower too, where groups divide their columns."""
    setting = {"group_size": GROUP_SIZE, "bits": bits, "mode": "affine"}
    block, result = dict(setting), {}
    for name, tensor in tensors.items():
        if not is_packed(name, tensor, tower):
            result[name] = tensor
            continue
        module = name.removesuffix(".weight")
        result |= packed(module, tensor, bits)
        if bits_of(module, bits) != bits:
            block[module] = setting | {"bits": bits_of(module, bits)}
    return config | {"quantization": block, "quantization_config": block}, result
