"""What is measured: the models and the cells of the table."""

import pathlib
import sys
from typing import Literal, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from tiny_models import published  # noqa: E402

# Names of `whimbrel bench --dims`, and the published model whose sizes they mean.
DIMS = {
    "qwen2-vl-2b": "Qwen2-VL-2B-Instruct",
    "qwen2.5-vl-3b": "Qwen2.5-VL-3B-Instruct",
    "qwen3-vl-4b": "Qwen3-VL-4B-Instruct",
}
# Real weights, out of one GGUF file for all.
SMOLLM2 = "smollm2-135m"


class Cell(NamedTuple):
    """One test: a prompt of `tokens` tokens, or as many tokens generated one by one, behind
    `depth` tokens of context."""

    kind: Literal["pp", "tg"]
    tokens: int
    depth: int = 0

    @property
    def test(self) -> str:
        """llama-bench's name for it, without the depth."""
        return f"{self.kind}{self.tokens}"

    def __str__(self) -> str:
        return f"{self.test} @ d{self.depth}" if self.depth else self.test


def prompts(lengths: list[int]) -> tuple[Cell, ...]:
    return tuple(Cell("pp", tokens) for tokens in lengths)


def decodes(tokens: int, depths: list[int]) -> tuple[Cell, ...]:
    return tuple(Cell("tg", tokens, depth) for depth in depths)


# For a peer that needs seconds for each token.
FOUR_TOKENS = (Cell("tg", 4, 64),)


def hub_config(model: str) -> dict:
    """config.json of one of DIMS."""
    return published.CONFIGS[DIMS[model]]()


def text_config(config: dict) -> dict:
    """The text decoder's part of a config.json, flat or nested."""
    return config.get("text_config", config)
