#!/usr/bin/env python3
"""Draws the curve of contexts as SVG: plot_bench.py ROWS.jsonl... -o FILE.svg

Rows are those of `whimbrel bench -o jsonl`. On the left tokens a second, on the right the fraction of
the read bandwidth of the same run, both over the tokens in the cache. A curve is one model, form,
build and number of rows; decodes behind a picture are dots. Needs no package.
"""

import argparse
import dataclasses
import html
import json
import math
import pathlib

COLOURS = ("#1b6ca8", "#c8553d", "#3a7d44", "#8e5572", "#b8860b", "#4f5d75", "#0f8b8d", "#a23e48")
PANEL = (420, 300)  # width, height of the plotted area
MARGIN = (60, 30)  # left of and above it
GAP = 90


@dataclasses.dataclass(frozen=True)
class Curve:
    label: str
    rows: list[dict]


def read_rows(paths: list[pathlib.Path]) -> list[dict]:
    lines = [line for path in paths for line in path.read_text().splitlines() if line.strip()]
    rows = [json.loads(line) for line in lines]
    decodes = [row for row in rows if row["bytes_per_token"] and "x2" not in row["test"]]
    if not decodes:
        raise SystemExit("error: got no decodes in these files, expected rows of bench -o jsonl")
    return decodes


def curves(rows: list[dict]) -> list[Curve]:
    by_label: dict[str, list[dict]] = {}
    builds = {row["build"]["build_id"] for row in rows}
    for row in rows:
        label = f"{row['model']} {row['weights']} {row['build']['ops']}"
        label += f", {row['rows']} rows" if row["rows"] != 1 else ""
        label += f", build {row['build']['build_id'][:8]}" if len(builds) > 1 else ""
        by_label.setdefault(label, []).append(row)
    return [
        Curve(label, sorted(rows, key=lambda row: row["depth"]))
        for label, rows in by_label.items()
    ]


def nice_steps(largest: float, count: int = 5) -> list[float]:
    """Round numbers from 0 to at least `largest`."""
    rough = largest / count
    unit = 10 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough)
    return [step * i for i in range(math.ceil(largest / step) + 1)]


class Panel:
    """One diagram; x is logarithmic."""

    def __init__(self, left: float, title: str, depths: list[int], largest: float):
        self.left, self.title = left, title
        self.depths = sorted({max(depth, 1) for depth in depths})
        self.steps = nice_steps(largest)

    def x(self, depth: int) -> float:
        low, high = math.log(self.depths[0]), math.log(self.depths[-1])
        share = (math.log(max(depth, 1)) - low) / (high - low) if high > low else 0.5
        return self.left + share * PANEL[0]

    def y(self, value: float) -> float:
        return MARGIN[1] + PANEL[1] * (1 - value / self.steps[-1])

    def frame(self) -> list[str]:
        parts = [text(self.left, MARGIN[1] - 12, self.title, "start")]
        for step in self.steps:
            y = self.y(step)
            parts.append(
                f'<line x1="{self.left}" x2="{self.left + PANEL[0]}" y1="{y:.1f}" y2="{y:.1f}"'
                ' stroke="#ddd"/>'
            )
            parts.append(text(self.left - 6, y + 4, f"{step:g}", "end"))
        bottom = MARGIN[1] + PANEL[1] + 18
        parts += [text(self.x(depth), bottom, str(depth), "middle") for depth in self.depths]
        middle = self.left + PANEL[0] / 2
        return [*parts, text(middle, bottom + 18, "tokens in the cache", "middle")]

    def curve(self, curve: Curve, key: str, colour: str) -> list[str]:
        points = [(self.x(row["depth"]), self.y(row[key]), row) for row in curve.rows]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, row in points if not row["behind_image"])
        dots = [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
            for x, y, row in points
            if row["behind_image"]
        ]
        return [
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>',
            *dots,
        ]


def text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def legend(all_curves: list[Curve], top: float) -> list[str]:
    parts = []
    for i, curve in enumerate(all_curves):
        y = top + 18 * i
        colour = COLOURS[i % len(COLOURS)]
        parts.append(
            f'<line x1="{MARGIN[0]}" x2="{MARGIN[0] + 24}" y1="{y - 4}" y2="{y - 4}"'
            f' stroke="{colour}" stroke-width="2"/>'
        )
        parts.append(text(MARGIN[0] + 32, y, curve.label, "start"))
    return parts


def svg(all_curves: list[Curve]) -> str:
    rows = [row for curve in all_curves for row in curve.rows]
    depths = [row["depth"] for row in rows]
    right = MARGIN[0] + PANEL[0] + GAP
    fraction = max(1.0, *(row["bandwidth_fraction"] for row in rows))
    panels = (
        (Panel(MARGIN[0], "tokens a second", depths, max(r["tok_s"] for r in rows)), "tok_s"),
        (Panel(right, "fraction of the read bandwidth", depths, fraction), "bandwidth_fraction"),
    )
    parts = []
    for panel, key in panels:
        parts += panel.frame()
        for i, curve in enumerate(all_curves):
            parts += panel.curve(curve, key, COLOURS[i % len(COLOURS)])
    top = MARGIN[1] + PANEL[1] + 64
    parts += legend(all_curves, top)
    width, height = right + PANEL[0] + 30, top + 18 * len(all_curves)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=pathlib.Path, nargs="+", metavar="ROWS.jsonl")
    parser.add_argument("-o", "--out", type=pathlib.Path, required=True, metavar="FILE.svg")
    arguments = parser.parse_args()
    arguments.out.write_text(svg(curves(read_rows(arguments.rows))))


if __name__ == "__main__":
    main()
