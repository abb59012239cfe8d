"""Effect of the constants and of the structures of the search for whole runs.

python benchmarks/search_ablation.py [--seeds 5] [--first 2000] [--only WORD ...]

One constant at a time is changed, or one structure is taken away. The table shows means over seeds that were
not used to choose the constants. The work is that of a search with default arguments, so the results do not
depend on the speed of the computer.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from exact import (
    block_design,
    blocked_factorial,
    compile_kernels,
    efficiency,
    full_grid,
    is_final,
    two_level,
    value,
)
from harness import show

import optdesign as od
from optdesign.runs import exact as search_of_runs
from optdesign.runs import lists, main_effects, search, structure
from optdesign.runs.blocks import BlockMoves
from optdesign.runs.levels import LevelMoves, ListedLevelMoves


def variants() -> Iterator[tuple[str, Any, str, Any]]:
    """Return constants and structures of the search: description, owner, name, other value."""
    yield "default", search, "HEAT", search.HEAT
    for factor in (0.2, 0.4, 2, 4):
        yield f"temperature x {factor:g}", search, "HEAT", search.HEAT * factor
    yield "levels: restart after 100 idle perturbations", LevelMoves, "patience", 100
    yield "levels: no restart", LevelMoves, "patience", 10**9
    yield "blocks: restart after 20 idle perturbations", BlockMoves, "patience", 20
    yield "blocks: no restart", BlockMoves, "patience", 10**9
    yield "lists: 1 run moves in a perturbation", lists, "PERTURBATION", 1
    yield "lists: 8 runs move in a perturbation", lists, "PERTURBATION", 8
    yield "no changes of levels on listed grids", search_of_runs, "find_grid", nothing
    yield "no moves between blocks", structure.BlockMoves, "fit", nothing
    yield "no Hadamard matrices", main_effects, "hadamard", nothing
    yield "no exchanges between all candidates at the end", search_of_runs, "POLISH", 0
    yield "levels: starts that ignore the marginal optima", ListedLevelMoves, "start", uniform_start


def nothing(*_: Any) -> None:
    """Return None in place of a structure."""


def uniform_start(moves: ListedLevelMoves, rng: np.random.Generator) -> Any:
    rows = rng.integers(0, len(moves.grid.settings), moves.runs)
    return moves.state(moves.grid.settings[rows], 1e-2)


def ablation(seeds: int, first: int, words: list[str]) -> None:
    """Mean D or efficiency at the default work."""
    rng = np.random.default_rng(0)
    problems: dict[str, tuple[Any, Callable[[od.Runs], float]]] = {
        "3^8, 50": (full_grid(3, 8, 50), value),
        "3^6, 56": (full_grid(3, 6, 56), efficiency),
        "16^4, 100": (full_grid(16, 4, 100), value),
        "5^4 additive, 140": (full_grid_of_categories(4, 140), efficiency),
        "BIB 19, 9, 19": (block_design(19, 9, 19), is_final),
        "2^7 in 4 x 8": (blocked_factorial(), value),
        "list 2,000 x 12, 30": (od.DesignProblem(rng.normal(size=(2000, 12)), budgets=30), efficiency),
        "23 in 24": (two_level(23), efficiency),
    }
    rows: list[list[object]] = []
    for text, owner, name, other in variants():
        if not any(word in text for word in words):
            continue
        before = vars(owner)[name]
        setattr(owner, name, other)
        try:
            means = [
                np.mean([measure(od.exact(problem, seed=first + s)) for s in range(seeds)])
                for problem, measure in problems.values()
            ]
        finally:
            setattr(owner, name, before)
        rows.append([text, *(f"{mean:.5f}" for mean in means)])
        print(*rows[-1], sep=" | ", flush=True)
    show(f"Mean of {seeds} seeds at the default work: D, efficiency, or share proved", ["", *problems], rows)


def full_grid_of_categories(factors: int, runs: int) -> od.DesignProblem:
    levels: dict[str, Any] = {f"f{j}": list("abcde") for j in range(factors)}
    return od.DesignProblem(od.candidates(levels, model="~ " + " + ".join(levels)), budgets=runs)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=2000)
    parser.add_argument("--only", nargs="+", default=[""], help="words of the variants to measure")
    args = parser.parse_args()
    compile_kernels()
    ablation(args.seeds, args.first, args.only)


if __name__ == "__main__":
    main()
