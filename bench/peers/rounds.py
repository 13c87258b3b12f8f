"""Rounds of a comparison: which arm runs when, and with which of its configurations."""

import datetime
import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from arms import Arm, Configuration, Measurement
from programs import Crash, say
from subjects import Cell


class Comparison(NamedTuple):
    """Cells of one kind that two arms measure on one model."""

    model: str
    cells: tuple[Cell, ...]
    whimbrel: Arm
    peer: Arm


def names_of(
    comparison: Comparison, arm: Arm, configuration: Configuration, round_: int | None
) -> dict[str, Any]:
    """What each raw row begins with. `round` is null where it served to choose a configuration."""
    return {
        "model": comparison.model,
        "arm": arm.name,
        "whimbrel": comparison.whimbrel.name,
        "against": comparison.peer.name,
        "round": round_,
        "configuration": configuration,
    }


def row(
    comparison: Comparison,
    arm: Arm,
    configuration: Configuration,
    measurement: Measurement,
    round_: int | None,
) -> dict[str, Any]:
    """One raw row."""
    return names_of(comparison, arm, configuration, round_) | {
        "test": measurement.cell.test,
        "depth": measurement.cell.depth,
        "tok_s": measurement.tokens_per_second,
        "build": measurement.build,
        "time": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "raw": measurement.raw,
    }


def check_cells(arm: Arm, measurements: list[Measurement], cells: tuple[Cell, ...]):
    """Throws ValueError where an arm didn't measure just what it was asked to."""
    got = sorted(measurement.cell for measurement in measurements)
    if got != sorted(cells):
        names = [", ".join(map(str, some)) for some in (got, sorted(cells))]
        raise ValueError(f"got {names[0] or 'nothing'} from {arm.name}, expected {names[1]}")


def crash_row(
    comparison: Comparison, arm: Arm, configuration: Configuration, crash: Crash
) -> dict[str, Any]:
    """Says that a configuration can't run here."""
    tests = [str(cell) for cell in comparison.cells]
    return names_of(comparison, arm, configuration, None) | {"tests": tests, "crash": str(crash)}


def measure(
    comparison: Comparison,
    arm: Arm,
    configuration: Configuration,
    cells: tuple[Cell, ...],
    round_: int | None,
) -> list[dict[str, Any]]:
    say(
        f"{comparison.model}: {arm.name} {json.dumps(configuration)}: {', '.join(map(str, cells))}"
        + ("" if round_ is None else f", round {round_}")
    )
    measurements = arm.measure(comparison.model, cells, configuration)
    check_cells(arm, measurements, cells)
    return [row(comparison, arm, configuration, one, round_) for one in measurements]


Choice = dict[Cell, Configuration]


def best_configurations(rows: list[dict[str, Any]], cells: tuple[Cell, ...]) -> Choice:
    """The fastest configuration of each cell. Throws ValueError where none ran."""
    best = {}
    for cell in cells:
        of_cell = [row for row in rows if (row["test"], row["depth"]) == (cell.test, cell.depth)]
        if not of_cell:
            raise ValueError(f"got no configuration that ran {cell}, expected one")
        best[cell] = max(of_cell, key=lambda row: row["tok_s"])["configuration"]
    return best


def choose(comparison: Comparison, arm: Arm) -> tuple[Choice, list[dict[str, Any]]]:
    """Tries all configurations of an arm, where there are several. A crash is no choice."""
    configurations = arm.configurations()
    if len(configurations) == 1:
        return dict.fromkeys(comparison.cells, configurations[0]), []
    rows, crashes = [], []
    for configuration in configurations:
        try:
            rows += measure(comparison, arm, configuration, comparison.cells, None)
        except Crash as crash:
            say(str(crash))
            crashes.append(crash_row(comparison, arm, configuration, crash))
    return best_configurations(rows, comparison.cells), [*rows, *crashes]


def runs_of(choice: Choice) -> Iterator[tuple[Configuration, tuple[Cell, ...]]]:
    """Cells that share a configuration are measured by one process."""
    ordered = sorted(choice, key=lambda cell: (json.dumps(choice[cell]), cell))
    for _, cells in itertools.groupby(ordered, key=lambda cell: json.dumps(choice[cell])):
        group = tuple(cells)
        yield choice[group[0]], group


def order(arms: list[Arm], round_: int) -> list[Arm]:
    """A B, B A, A B...: drift of the machine meets both arms alike."""
    return arms if round_ % 2 == 0 else arms[::-1]


# Choices made, by arm, model and cells: another arm of ours meets a peer as it was chosen before.
Choices = dict[tuple[str, str, tuple[Cell, ...]], Choice]


def compare(comparison: Comparison, rounds: int, chosen: Choices) -> Iterator[dict[str, Any]]:
    """All raw rows of a comparison, as they come. Adds its choices to `chosen`."""
    choices: dict[str, Choice] = {}
    arms = [comparison.whimbrel, comparison.peer]
    for arm in arms:
        key = (arm.name, comparison.model, comparison.cells)
        if key not in chosen:
            chosen[key], rows = choose(comparison, arm)
            yield from rows
        choices[arm.name] = chosen[key]
    for round_ in range(rounds):
        for arm in order(arms, round_):
            for configuration, cells in runs_of(choices[arm.name]):
                yield from measure(comparison, arm, configuration, cells, round_)
