"""A folder with a file of candidates and one of budgets, and commands that are run in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import optdesign as od
from optdesign.cli import commands as cli

RNG = np.random.default_rng(3)
SITES, ARMS = ["north", "south", "west"], ["a", "b"]
ROWS = [(SITES[i % 3], ARMS[i // 3 % 2], *RNG.normal(size=2)) for i in range(24)]
BUDGETS = "site,budget\nnorth,1\nsouth,2\nwest,5\n"


def write_example(folder: Path) -> None:
    """Write data.csv and budgets.csv to a folder."""
    lines = [
        "site,arm,x,y",
        *(f"{s},{a},{x!r},{y!r}" for s, a, x, y in ((*r[:2], *map(float, r[2:])) for r in ROWS)),
    ]
    (folder / "data.csv").write_text("\n".join(lines) + "\n")
    (folder / "budgets.csv").write_text(BUDGETS)


def run(*arguments: Any) -> Any:
    """Run a command in the current folder."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def solved(*arguments: Any) -> Any:
    """Solve data.csv with its labels, and check that it succeeds."""
    result = run("solve", "data.csv", "--group", "site", "--parameter-block", "arm", *arguments)
    assert result.exit_code == 0, result.stderr
    return result


def refused(*arguments: Any) -> str:
    """Return the one message of a command that is refused."""
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("optdesign: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def expected(budgets: Any = None) -> od.DesignProblem:
    """Return the problem of data.csv, made in Python."""
    x = np.array([r[2:] for r in ROWS], dtype=float)
    groups = [SITES.index(r[0]) for r in ROWS]
    return od.DesignProblem(x, groups, [ARMS.index(r[1]) for r in ROWS], budgets)
