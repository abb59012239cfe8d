"""Families of design problems with whole numbers of runs, on which naive code breaks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

from hunt.truth import Instance, Truth, instance
from optdesign.testing import families

Family = Callable[[np.random.Generator], Instance]


def structured(x: np.ndarray, rng: np.random.Generator) -> Instance:
    """Return candidates in 1 to 3 groups and 1 or 2 parameter blocks, with whole numbers of runs."""
    n = len(x)
    if rng.random() < 0.5:
        groups, blocks = np.zeros(n, np.int64), np.zeros(n, np.int64)
    else:
        groups = rng.permutation(np.arange(n) % min(n, int(rng.integers(1, 4))))
        blocks = np.unique(rng.integers(0, int(rng.integers(1, 3)), size=n), return_inverse=True)[1]
    return with_runs(x, groups, blocks, rng)


def with_runs(x: np.ndarray, groups: np.ndarray, blocks: np.ndarray, rng: np.random.Generator) -> Instance:
    """Return an instance whose budgets are whole: about the number of parameters, or many, or too few."""
    m = int(groups.max()) + 1
    plain = instance(x, groups, blocks)
    needed = Truth(plain).rank
    kind = rng.random()
    if kind < 0.1:
        total = int(rng.integers(1, needed + 1))
    elif kind < 0.85:
        total = needed + int(rng.integers(0, needed + 3))
    else:
        total = int(rng.choice([20, 50, 1000, 10**6]))
    budgets = 1 + rng.multinomial(max(total - m, 0), rng.dirichlet(np.full(m, 2.0)))
    return plain._replace(budgets=budgets.astype(float))


def small_integers(rng: np.random.Generator) -> Instance:
    """Few small integers: all count vectors can be enumerated."""
    n, d = int(rng.integers(3, 7)), int(rng.integers(1, 4))
    x = rng.integers(-3, 4, size=(n, d)).astype(float)
    x[0, 0] = 1.0
    groups = np.arange(n) % int(rng.integers(1, 3))
    blocks = np.arange(n) // 2 % int(rng.integers(1, 3))
    plain = instance(x, groups, blocks)
    budgets = rng.integers(1, 5, size=len(plain.budgets)).astype(float)
    return plain._replace(budgets=budgets)


def factorial(rng: np.random.Generator) -> Instance:
    """A small factorial in the units of an experiment, with all terms up to degree 2 or none of them."""
    levels = [
        [-1.0, 0.0, 1.0], [2018.0, 2019.0, 2020.0, 2021.0], [300.1, 300.2, 300.3], [1e6, 1e6 + 1, 1e6 + 2],
        [1e-9, 2e-9, 4e-9], [0.1, 0.2, 0.3, 0.5], [0.0, 1e9], [-1e-3, 3 * 0.1 - 0.3, 1e-3],
    ]  # fmt: skip
    chosen = [levels[k] for k in rng.integers(0, len(levels), size=int(rng.integers(1, 3)))]
    grid = np.array(list(product(*chosen)))
    columns = [np.ones(len(grid)), *grid.T]
    if rng.random() < 0.7:
        k = grid.shape[1]
        columns += [grid[:, i] * grid[:, j] for i in range(k) for j in range(i, k)]
    return structured(np.column_stack(columns), rng)


def logistic(rng: np.random.Generator) -> Instance:
    """A logistic model at given parameters: rows whose sizes differ by many orders of magnitude."""
    n = int(rng.integers(5, 25))
    point = np.linspace(0, rng.choice([4.0, 40.0, 200.0]), n)
    x = np.column_stack([np.ones(n), point, point**2][: int(rng.integers(2, 4))])
    parameters = np.array([rng.normal(), -rng.uniform(0.2, 2.0), 0.0])[: x.shape[1]]
    eta = x @ parameters
    return structured(x * np.exp(-np.abs(eta) / 2 - np.log1p(np.exp(-np.abs(eta))))[:, None], rng)


def near_copies(rng: np.random.Generator) -> Instance:
    """Rows that agree with others up to relative differences between 1e-16 and 1e-8."""
    x = rng.normal(size=(int(rng.integers(4, 9)), int(rng.integers(2, 5))))
    x = x if rng.random() < 0.5 else np.round(2 * x)
    x[0, 0] = 1.0
    copies = x * (1 + 10.0 ** rng.uniform(-16, -8) * rng.normal(size=x.shape))
    return structured(np.vstack([x, copies]), rng)


def deficient(rng: np.random.Generator) -> Instance:
    """Integer rows of a rank below the number of columns, exactly."""
    d = int(rng.integers(2, 6))
    r = int(rng.integers(1, d))
    n = int(rng.integers(r + 1, 16))
    x = (rng.integers(-3, 4, size=(n, r)) @ rng.integers(-3, 4, size=(r, d))).astype(float)
    x[0, 0] += not x.any()
    return structured(x, rng)


def units(rng: np.random.Generator) -> Instance:
    """Columns in units from 1e-30 to 1e30."""
    x = rng.normal(size=(int(rng.integers(4, 20)), int(rng.integers(2, 5))))
    return structured(x * 10.0 ** rng.uniform(-30, 30, size=x.shape[1]), rng)


def row_sizes(rng: np.random.Generator) -> Instance:
    """Rows whose sizes range over up to 40 orders of magnitude."""
    x = rng.normal(size=(int(rng.integers(4, 20)), int(rng.integers(2, 5))))
    span = rng.choice([3.0, 8.0, 20.0])
    return structured(x * 10.0 ** rng.uniform(-span, span, size=(len(x), 1)), rng)


def clients_and_arms(rng: np.random.Generator) -> Instance:
    """Every client is a group and every arm a parameter block; a client pulls each arm with one feature."""
    m, k, d = (int(v) for v in rng.integers([2, 1, 1], [5, 4, 4]))
    x = rng.normal(size=(m * k, d)) if rng.random() < 0.5 else rng.integers(-2, 3, size=(m * k, d))
    x = x.astype(float)
    x[0, 0] = 1.0
    return with_runs(x, np.repeat(np.arange(m), k), np.tile(np.arange(k), m), rng)


def jumble(rng: np.random.Generator) -> Instance:
    """Several of these at a time, with copies, zero rows, up to 5 groups and up to 3 parameter blocks."""
    n, d = int(rng.integers(5, 25)), int(rng.integers(1, 5))
    x = np.round(rng.normal(size=(n, d)) * 2, int(rng.integers(0, 3)))
    x[rng.integers(0, n, size=n // 4)] = x[rng.integers(0, n, size=n // 4)]
    x[rng.integers(1, n, size=n // 8)] = 0.0
    x[0, 0] = 1.0
    if rng.random() < 0.5:
        x *= 2.0 ** rng.integers(-80, 81, size=(n, 1)) if rng.random() < 0.3 else 2.0 ** rng.integers(-9, 10)
    if rng.random() < 0.5:
        x *= 10.0 ** rng.integers(-20, 21, size=d)
    groups, blocks = (
        np.unique(rng.integers(0, int(rng.integers(1, most)), size=n), return_inverse=True)[1]
        for most in (6, 4)
    )
    return with_runs(x, groups, blocks, rng)


def _whole(name: str) -> Family:
    def make(rng: np.random.Generator) -> Instance:
        p = families.FAMILIES[name](rng)
        x = p.candidates.astype(np.float32) if name == "single_precision" else np.array(p.candidates)
        return with_runs(x, np.array(p.groups), np.array(p.parameter_blocks), rng)

    return make


FAMILIES: dict[str, Family] = {
    **{
        f.__name__: f
        for f in (
            small_integers, factorial, logistic, near_copies, deficient, units, row_sizes, clients_and_arms,
            jumble,
        )
    },
    **{
        name: _whole(name)
        for name in families.FAMILIES
        if name not in ("clustered_pool", "column_scales", "budgets")
    },
}  # fmt: skip
"""By name, functions that draw an instance. Other families repeat these with other budgets."""
