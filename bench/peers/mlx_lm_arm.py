"""mlx-lm on the CPU, by mlx_lm_steps.py."""

import json
import pathlib
import statistics

from arms import Configuration, Measurement
from programs import HERE, run
from subjects import Cell


def parse_row(line: str) -> Measurement:
    row = json.loads(line)
    cell = Cell("tg", row["steps"], row["context"])
    return Measurement(cell, 1000 / statistics.mean(row["step_ms"]), row["build"], row)


class MlxLm:
    name = "mlx-lm"

    def __init__(self, python: pathlib.Path):
        self.python = python

    def configurations(self) -> list[Configuration]:
        """bfloat16 is what checkpoints on the hub come in, float32 what its CPU code is best at."""
        return [{"dtype": dtype} for dtype in ("bfloat16", "float32")]

    def measure(
        self, model: str, cells: tuple[Cell, ...], configuration: Configuration
    ) -> list[Measurement]:
        command = [self.python, HERE / "mlx_lm_steps.py", model, configuration["dtype"]]
        return [
            parse_row(run([*command, str(cell.depth), str(cell.tokens)]).stdout) for cell in cells
        ]
