"""The table: what each arm reached, and how many times as fast whimbrel is."""

import json
import statistics
from collections import defaultdict
from typing import Any, NamedTuple

Row = dict[str, Any]


class Spread(NamedTuple):
    median: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.least:.3g} to {self.most:.3g})"


def spread(values: list[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


class Line(NamedTuple):
    """One cell of one model against one peer."""

    model: str
    own: str  # arm of ours
    peer: str
    test: str
    whimbrel: Spread  # tokens per second
    other: Spread  # the same of the peer
    ratio: Spread  # of the rounds: whimbrel / peer
    configuration: dict[str, Any]  # the peer's

    @property
    def verdict(self) -> str:
        """Only ranges that part say something."""
        if self.whimbrel.least > self.other.most:
            return "faster"
        return "slower" if self.whimbrel.most < self.other.least else "no verdict"


def test_name(row: Row) -> str:
    return f"{row['test']} @ d{row['depth']}" if row["depth"] else row["test"]


def by_cell(rows: list[Row]) -> dict[tuple[str, str, str, str], dict[str, dict[int, Row]]]:
    """Model, arm of ours, peer and test -> arm -> round -> row. Rows that chose a configuration are
    left out."""
    cells: dict = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["round"] is not None:
            cell = (row["model"], row["whimbrel"], row["against"], test_name(row))
            cells[cell][row["arm"]][row["round"]] = row
    return cells


def lines(rows: list[Row]) -> list[Line]:
    """Cells that both arms have rounds of."""
    found = []
    for (model, own, peer, test), arms in by_cell(rows).items():
        both = sorted(arms[own].keys() & arms[peer].keys())
        if not both:
            continue
        ours, theirs = ([arms[arm][r]["tok_s"] for r in both] for arm in (own, peer))
        ratio = spread([a / b for a, b in zip(ours, theirs, strict=True)])
        configuration = arms[peer][both[0]]["configuration"]
        found.append(
            Line(model, own, peer, test, spread(ours), spread(theirs), ratio, configuration)
        )
    return found


HEAD = ("model", "test", "ours", "tok/s", "peer", "peer tok/s", "ratio", "ours is", "peer's flags")


def markdown_line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def flags(configuration: dict[str, Any]) -> str:
    return ", ".join(f"{key}: {json.dumps(value)}" for key, value in configuration.items())


def builds(rows: list[Row]) -> list[str]:
    """Each build that the rows name, once."""
    named = {
        f"- {row['arm']}: `{json.dumps(row['build'], sort_keys=True)}`"
        for row in rows
        if "build" in row
    }
    return sorted(named)


def crashes(rows: list[Row]) -> list[str]:
    """Each configuration that can't run here, once."""
    named = {
        f"- {row['arm']}, {row['model']}, {', '.join(row['tests'])}, {flags(row['configuration'])}: "
        + row["crash"].partition(" from ")[0]
        for row in rows
        if "crash" in row
    }
    return ["Left out:", "", *sorted(named), ""] if named else []


def markdown(rows: list[Row]) -> str:
    """Medians of the rounds, least and most in brackets; then what was measured."""
    table = [markdown_line(HEAD), markdown_line(["---"] * len(HEAD))]
    for line in lines(rows):
        numbers = (line.own, str(line.whimbrel), line.peer, str(line.other), str(line.ratio))
        table.append(
            markdown_line(
                [line.model, line.test, *numbers, line.verdict, flags(line.configuration)]
            )
        )
    named = ["Builds, as the programs name themselves:", "", *builds(rows), ""]
    return "\n".join([*table, "", *crashes(rows), *named])
