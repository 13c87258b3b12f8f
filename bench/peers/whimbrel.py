"""whimbrel itself, by `whimbrel bench` (docs/contract.md)."""

import json
import pathlib
import re
from typing import Any

from arms import Configuration, Measurement
from llama_cpp import test_flags
from programs import run
from subjects import Cell

TEST = re.compile(r"(pp|tg)(\d+)")


def parse_rows(jsonl: str) -> list[Measurement]:
    """Rows of -o jsonl. The build stands in each row, or in an object ahead of the rows."""
    measurements = []
    build: dict[str, Any] = {}
    for line in jsonl.splitlines():
        value = json.loads(line)
        build = value.get("build", build)
        if not (match := TEST.fullmatch(value.get("test", ""))):
            continue
        cell = Cell(match[1], int(match[2]), value["depth"])
        measurements.append(Measurement(cell, value["tok_s"], build, value))
    return measurements


class Whimbrel:
    def __init__(
        self,
        program: pathlib.Path,
        folders: dict[str, pathlib.Path],
        threads: int,
        options: tuple[str, ...] = (),
    ):
        """`folders`: checkpoints by model; the others are random weights at its dims. `options` of
        `whimbrel bench` stand in the arm's name."""
        self.name = " ".join(["whimbrel", *options])
        self.options = options
        self.program = program
        self.folders = folders
        self.threads = threads

    def configurations(self) -> list[Configuration]:
        return [{}]

    def measure(
        self, model: str, cells: tuple[Cell, ...], configuration: Configuration
    ) -> list[Measurement]:
        folder = self.folders.get(model)
        subject = ["-m", folder] if folder else ["--dims", f"{model}:4bit"]
        flags = ["--threads", str(self.threads), "-r", "1", "-o", "jsonl", *test_flags(cells)]
        flags += self.options
        return parse_rows(run([self.program, "bench", *subject, *flags]).stdout)
