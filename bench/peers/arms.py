"""What an arm of the comparison is, and what it gives."""

from typing import Any, NamedTuple, Protocol

from subjects import Cell

# How a peer is run, such as {"flash_attn": True}: the best per cell counts.
Configuration = dict[str, Any]


class Measurement(NamedTuple):
    """One cell measured once."""

    cell: Cell
    tokens_per_second: float
    build: dict[str, Any]  # as the program itself says it
    raw: dict[str, Any]  # the program's own row


class Arm(Protocol):
    name: str

    def configurations(self) -> list[Configuration]: ...

    def measure(
        self, model: str, cells: tuple[Cell, ...], configuration: Configuration
    ) -> list[Measurement]:
        """Each cell once, in one process where the program can. Throws Failure, and Crash where
        the program can't run so here."""
        ...
