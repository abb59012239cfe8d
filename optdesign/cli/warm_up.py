"""The command ``optdesign warm-up``: compile every kernel in advance, for images of containers.

Kernels are compiled for types of arguments that only real use determines. So small problems are solved: every
structure by every method, with sizes at which the methods choose other kernels, and then everything that is
done with designs. Machine code goes to the directory in NUMBA_CACHE_DIR, by default beside the package.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numba import config

from optdesign.cli.pipes import ExitCode
from optdesign.design.certificate import certify
from optdesign.design.sparsify import sparsify
from optdesign.ellipsoid import min_volume_ellipsoid
from optdesign.problem.large import LargeProblem
from optdesign.problem.problem import DesignProblem
from optdesign.runs.exact import exact
from optdesign.runs.main_effects import MainEffects
from optdesign.runs.rounding import round as rounded
from optdesign.runtime import jit, tiers
from optdesign.runtime.progress import waiting
from optdesign.saving.files import load, save
from optdesign.solvers.solve import METHODS, solve
from optdesign.tables.files import pyarrow
from optdesign.verification.verify import verify

SIZES = [
    (60, 3, 1, 1), (60, 3, 3, 1), (60, 3, 3, 2), (100, 3, 20, 5), (2000, 10, 3, 2), (5000, 4, 5, 3),
    (5000, 4, 1, 1), (1000, 3, 50, 1), (400, 30, 3, 1), (300, 40, 150, 1), (6000, 3, 1500, 4),
    (200_000, 3, 1, 1), (200_000, 3, 4, 2),
]  # fmt: skip
"""Candidates, features, groups and parameter blocks of problems that use every kernel of the solvers."""


def warm_up() -> None:
    """Compile every kernel of this package, or load its machine code if it was compiled before."""
    before = tiers.enabled
    tiers.enabled = False
    try:
        for _ in _uses():
            pass
    finally:
        tiers.enabled = before


def _uses() -> Iterator[Any]:
    """Use the package in every way that has kernels of its own."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20, 5, 3))
    rows = np.arange(32)
    problems = [_problem(rng, *sizes) for sizes in SIZES]
    problems += [
        make(features.astype(dtype))
        for make in (DesignProblem.disjoint, DesignProblem.shared)
        for dtype in (np.float64, np.float32)
    ]
    problems.append(DesignProblem(rng.normal(size=(32, 3)), np.minimum(rows, 20), rows % 3))
    for problem in problems:
        for method in METHODS:
            yield solve(problem, method=method, tol=1e-8, max_iter=50)
    rows = np.arange(5000)
    for dtype in (np.float64, np.float32):
        x = rng.normal(size=(5000, 4)).astype(dtype)
        yield solve(LargeProblem(x, rows % 3, rows % 2))
        yield from _columns(x)
    problem = _problem(rng, 40, 3, 2, 2, budgets=[6, 9])
    result = solve(problem, start=problem.uniform(), time_limit=60.0)
    yield certify(problem, np.array(result.weights))
    for exchange in (False, True):
        yield rounded(result, exchange=exchange)
    yield exact(problem, tries=2)
    grid = np.array(np.meshgrid([-1, 0, 1], [-1, 0, 1])).reshape(2, -1).T
    yield exact(DesignProblem(np.column_stack([np.ones(9), grid, grid**2]), budgets=7), tries=2, prove=True)
    # 5 treatments in 4 blocks of 3: no symmetry proves an optimum before runs are perturbed.
    treatments = np.column_stack([np.repeat(np.eye(4), 5, axis=0), np.tile(np.eye(5), (4, 1))])
    yield exact(DesignProblem(treatments, np.repeat(np.arange(4), 5), budgets=[3, 3, 3, 3]), tries=2)
    levels: dict[str, list[Any]] = {"a": [-1, 0, 1], "b": ["x", "y", "z"], "c": [0, 1]}
    yield exact(MainEffects(levels, runs=9, degree=2), tries=2)
    yield sparsify(solve(_problem(rng, 40, 2, 1, 1)))
    yield sparsify(result, cost=np.ones(40))
    yield min_volume_ellipsoid(rng.normal(size=(50, 3)))
    dependent = np.column_stack([np.ones(30), np.arange(30.0), np.arange(30.0)])
    yield verify(solve(DesignProblem(dependent)))
    far = np.vander(np.linspace(1000.0, 1001.0, 200), 4)  # coordinates need compensated products
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    ill_conditioned = rng.normal(size=(32, 3)) * np.logspace(0, -6, 3) @ rotation
    for candidates in (far, ill_conditioned):
        yield sparsify(solve(DesignProblem(candidates)))
    with tempfile.TemporaryDirectory() as folder:
        save(result, Path(folder) / "design.json")
        yield load(Path(folder) / "design.json")


def _columns(x: np.ndarray) -> Iterator[Any]:
    """Solve a problem whose rows are read column by column from Parquet files, if pyarrow is installed."""
    try:
        arrow = pyarrow()
    except ImportError:
        return
    with tempfile.TemporaryDirectory() as folder:
        table = arrow.table({f"x{j}": column for j, column in enumerate(x.T)})
        arrow.parquet.write_table(table, Path(folder) / "x.parquet")
        yield solve(LargeProblem(folder))


def _problem(
    rng: np.random.Generator, n: int, d: int, groups: int, blocks: int, budgets: Any = None
) -> DesignProblem:
    """Return a problem with random candidates."""
    rows = np.arange(n)
    return DesignProblem(rng.normal(size=(n, d)), rows % groups, rows * 7 // 5 % blocks, budgets)


def warm_up_command() -> None:
    """Compile every kernel in advance, so that no later process compiles: for images of containers.

    Machine code goes to the directory in NUMBA_CACHE_DIR, by default beside the package. Later processes must
    have the same variable, package and type of processor. Exit code 1 if a kernel was not compiled, 2 if
    machine code cannot be kept.
    """
    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        _refuse("NUMBA_DISABLE_JIT must not be set: nothing is compiled then. Unset it.")
    if tiers.account.path is None:
        _refuse("no directory for machine code can be written to. Set NUMBA_CACHE_DIR to one that can.")
    began = time.perf_counter()
    with waiting("compiling every kernel, about a minute"):
        warm_up()
    kernels = [k for k in jit.kernels if k.py_func.__module__.startswith("optdesign.")]
    versions = {f"{k.py_func.__module__}.{k.__name__}": k._cache.count() for k in kernels}
    missing = sorted(name for name, count in versions.items() if count == 0)
    compiled = sum(sum(k.stats.cache_misses.values()) for k in kernels)
    typer.echo(
        f"{len(kernels) - len(missing)} kernels in {sum(versions.values())} versions are ready; {compiled} "
        f"versions were compiled in {time.perf_counter() - began:.1f} s"
    )
    if missing:
        typer.echo(f"optdesign: not compiled: {', '.join(missing)}", err=True)
        raise typer.Exit(ExitCode.NOT_CONVERGED)


def _refuse(message: str) -> None:
    typer.echo(f"optdesign: {message}", err=True)
    raise typer.Exit(ExitCode.BAD_INPUT)
