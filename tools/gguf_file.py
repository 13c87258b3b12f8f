"""Reads GGUF files (version 3, little endian; the format is specified in ggml's docs/gguf.md)."""

import mmap
import pathlib
import struct
from typing import Any, NamedTuple

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
F32, Q4_1, Q8_0 = 0, 3, 8
# Type to values and bytes of a block.
BLOCKS = {F32: (1, 4), Q4_1: (32, 20), Q8_0: (32, 34)}


class GgufTensor(NamedTuple):
    type: int
    shape: list[int]  # outermost first, as in safetensors
    data: memoryview


class GgufFile(NamedTuple):
    fields: dict[str, Any]
    tensors: dict[str, GgufTensor]


class Reader:
    def __init__(self, data: mmap.mmap):
        self.data = data
        self.at = 0

    def scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self) -> str:
        length = self.scalar("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode()

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            kind = self.scalar("I")
            return [self.value(kind) for _ in range(self.scalar("Q"))]
        return self.scalar(SCALARS[kind])

    def field(self) -> tuple[str, Any]:
        name = self.string()
        return name, self.value(self.scalar("I"))

    def tensor_info(self) -> tuple[str, list[int], int, int]:
        name = self.string()
        sizes = [self.scalar("Q") for _ in range(self.scalar("I"))]
        return name, sizes[::-1], self.scalar("I"), self.scalar("Q")


def read_gguf(path: pathlib.Path) -> GgufFile:
    """Throws ValueError for another version or tensor type. Trusts the file: it is a pinned one."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    reader = Reader(data)
    if (data[:4], struct.unpack_from("<I", data, 4)[0]) != (b"GGUF", 3):
        raise ValueError(f"got {path}, expected a GGUF file of version 3")
    reader.at = 8
    tensor_count, field_count = reader.scalar("Q"), reader.scalar("Q")
    fields = dict(reader.field() for _ in range(field_count))
    infos = [reader.tensor_info() for _ in range(tensor_count)]
    alignment = fields.get("general.alignment", 32)
    start = -(-reader.at // alignment) * alignment
    tensors = {}
    for name, shape, kind, offset in infos:
        if kind not in BLOCKS:
            raise ValueError(f"got tensor {name} of type {kind}, expected one of {list(BLOCKS)}")
        values, size = BLOCKS[kind]
        count = 1
        for side in shape:
            count *= side
        first = start + offset
        tensors[name] = GgufTensor(kind, shape, memoryview(data)[first : first + count // values * size])
    return GgufFile(fields, tensors)
