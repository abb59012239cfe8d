"""What problems of every structure come to, to the last digit, with kernels compiled or as plain Python.

    python tests/optdesign/digests.py compiled
    python tests/optdesign/digests.py interpreted

A line for each computation, with a hash of its numbers. Nothing is compiled where plain Python is asked for.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator

import numpy as np
from numba.core import event

import optdesign as od
from optdesign.problem import exact_rank as modular
from optdesign.problem.coordinates import Rows
from optdesign.runtime import jit as _kernel
from optdesign.solvers import newton
from optdesign.solvers.systems import AtOnce
from optdesign.solvers.systems.by_difference import ByDifference
from optdesign.solvers.systems.by_group import ByGroup
from optdesign.solvers.systems.by_information import ByInformation

SWEEPS = 60
"""Sweeps by which a difference in the last digit shows."""


def digest(*values: object) -> str:
    """Hash of arrays and numbers, bit by bit."""
    return hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in values)).hexdigest()[:16]


def numbers(rows: Rows) -> tuple[np.ndarray, ...]:
    return rows.source.whole(), rows.maps, rows.rounding


def computations() -> Iterator[tuple[str, str]]:
    """Every structure by every method, then what else kernels are for."""
    from structures import STRUCTURES  # only now, as kernels make them

    for name, given in STRUCTURES.items():
        for dtype in (np.float64, np.float32):
            p = od.DesignProblem(
                given.candidates.astype(dtype), given.groups, given.parameter_blocks, given.budgets
            )
            yield (
                f"{name}, {dtype.__name__}",
                digest(*p.span[:4], *numbers(p.rows), *numbers(p.refined), p.log_volume),
            )
            c = od.certify(p, p.uniform())
            yield "certificate", digest(c.gap, c.log_det, c.rounding, c.variances)
            verdicts = modular.compare_ranks(p.source, p.parameter_blocks, p.basis, p.ranks)
            yield "exact ranks", digest(verdicts)
        for method in od.METHODS:
            r = od.solve(given, tol=1e-9, method=method, max_iter=SWEEPS)
            yield method, digest(r.weights, r.gap, r.log_det, r.variances, r.history.gaps)
        yield "sparsified", digest(od.sparsify(r).weights)
    rng = np.random.default_rng(0)
    several = od.DesignProblem.shared(rng.normal(size=(8, 4, 3)))
    ways = {
        "by difference": ByDifference,
        "by group": ByGroup,
        "by information": ByInformation,
        "candidates at once": lambda _: AtOnce(None),
        "information at once": lambda layout: AtOnce(layout.offsets),
    }
    for name, system in ways.items():
        newton.cheapest_system = system  # type: ignore[assignment]
        r = od.solve(several, method="newton", tol=1e-9)
        yield name, digest(r.weights, r.gap, r.history.gaps)
    x = np.linspace(-1, 1, 21)
    curve = od.DesignProblem(np.column_stack([np.ones(21), x, x**2]), budgets=7)
    half = np.repeat([0, 1], 20), np.tile([0, 1], 20)
    plants = od.DesignProblem(rng.normal(size=(40, 3)), *half, budgets=[6, 9])
    blocks = np.arange(30) % 3, np.arange(30) % 10
    many = od.DesignProblem(rng.normal(size=(30, 2)), *blocks, budgets=[12, 12, 12])
    for p in (curve, plants, many):
        for exchange in (False, True):
            runs = od.round(od.solve(p, tol=1e-9), exchange=exchange)
            yield "rounded", digest(runs.counts, runs.efficiency)
        runs = od.exact(p, seed=0, tries=1)
        yield "exact", digest(runs.counts, runs.efficiency)
    model = od.MainEffects({"a": [-1, 0, 1], "b": ["x", "y", "z"], "c": [0, 1]}, runs=9, degree=2)
    runs = od.exact(model, seed=0, tries=1)
    yield "levels", digest(runs.counts, runs.efficiency)


class _Compiled(event.Listener):
    """Notes what is compiled."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: event.Event) -> None:
        self.names.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, _: event.Event) -> None:
        pass


if __name__ == "__main__":
    interpreted = sys.argv[1] == "interpreted"
    _kernel.ALLOWANCE = _kernel.TOGETHER = _kernel.SMALL = math.inf if interpreted else 0.0  # type: ignore[assignment]
    noted = _Compiled()
    event.register("numba:compile", noted)
    for line in computations():
        print(*line)
    assert not (interpreted and noted.names), noted.names
