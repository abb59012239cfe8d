"""Read the tables of docs/measured, as :func:`harness.show` prints them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

MEASURED = Path(__file__).parents[1] / "docs" / "measured"
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "%": 1e-2, "": 1.0}


class Table(NamedTuple):
    """A printed table."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> list[str]:
        """Return the cells of a column."""
        return [row[self.columns.index(name)] for row in self.rows]

    def numbers(self, name: str) -> list[float]:
        """Return the numbers of a column."""
        return [number(cell) for cell in self.column(name)]


def text(name: str) -> str:
    """Return the stored output of a benchmark."""
    return (MEASURED / f"{name}.txt").read_text(encoding="utf-8")


def tables(name: str) -> list[Table]:
    """Return the tables of a stored output."""
    found: list[Table] = []
    lines = text(name).splitlines()
    for k, line in enumerate(lines):
        if line.startswith("┃"):
            found.append(Table(lines[k - 2].strip(), _cells(line, "┃"), []))
        elif line.startswith("│"):
            found[-1].rows.append(_cells(line, "│"))
    return found


def table(name: str, *columns: str, title: str = "") -> Table:
    """Return the only table of a stored output that has the columns and the words of the title."""
    found = [t for t in tables(name) if set(columns) <= set(t.columns) and title in t.title]
    if len(found) != 1:
        raise ValueError(
            f"{name}.txt must have one table with the columns {', '.join(columns)}; it has {len(found)}. "
            "Change the chart with the benchmark."
        )
    return found[0]


def number(cell: str) -> float:
    """Return the first number of a cell in units of 1 or of a second; NaN without one."""
    found = re.search(r"(\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?)\s*(s|ms|us|%)?(?![\w%])", cell)
    return float(found[1].replace(",", "")) * UNITS[found[2] or ""] if found else float("nan")


def _cells(line: str, edge: str) -> list[str]:
    return [cell.strip() for cell in line.strip(edge).split(edge)]
