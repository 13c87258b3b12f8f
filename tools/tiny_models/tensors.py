"""The tensors of a tiny model under their canonical names (architectures.py), float32.

A value is a whole number times a power of two with at most 7 bits, so that float16, bfloat16 and
float32 hold it exactly; it depends on the seed and the tensor's name alone. Spreads are chosen so
that attention looks at few tokens, no part of the model is drowned by another, and the best logit
often leads by more than 0.5.
"""

import hashlib
import math

import numpy as np

from .architectures import Maker, add_tensors

Tensors = dict[str, np.ndarray]


class RandomMaker(Maker):
    """Draws the tensors of one model."""

    def __init__(self, seed: str):
        self.seed = seed
        self.tensors: Tensors = {}

    def uniform(self, name: str, shape: tuple[int, ...], spread: float, middle: float = 0.0):
        largest = spread * math.sqrt(3)
        step = 1 / 32 if middle else math.ldexp(1.0, math.ceil(math.log2(largest / 63)))
        steps = int(largest / step)
        stream = hashlib.shake_256(f"{self.seed}/{name}".encode()).digest(2 * math.prod(shape))
        drawn = np.frombuffer(stream, "<u2").astype(np.int64) % (2 * steps + 1) - steps
        self.tensors[name] = (middle + drawn * step).astype(np.float32).reshape(shape)


def make_tensors(config: dict, seed: int) -> Tensors:
    make = RandomMaker(f"{seed}/{config['model_type']}")
    add_tensors(make, config)
    return make.tensors
