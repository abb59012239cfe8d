"""Grids: candidates that are the combinations of levels of some factors.

*Finding a grid.* The columns are read in order. A column that is a function of the factors found so far is
none; a column that is independent of them is a factor; any other is merged with the factors that it depends
on. The list is searched as a grid if at least half of the combinations of levels are candidates.

*Tables.* An entry of a row depends on the levels of few factors. So it is looked up in a table with an axis
for each of them. The tables of a quadratic in 4 factors at 16 levels have 1,665 entries, its rows 983,040.

*Coordinates.* Columns are replaced by their residuals after a regression on columns that depend on no other
factors. This keeps the factors on which they depend, spans the same space, and on full grids gives
well-conditioned rows in any units of the factors.

*Additive models* with an intercept: independent factors at their marginal optima are optimal among all
weights. The relaxed problem starts there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from optdesign.problem.problem import DesignProblem
from optdesign.solvers.solve import solve_many

MOST_GRID_ENTRIES, MOST_GRID_RUNS = 3e7, 10_000
"""Largest number of entries of candidates, and of runs, that are searched as a grid."""

DEPENDENT, DOUBTFUL = 1e-12, 1e-9
"""Relative residuals of a column that is dependent on others, and of a column that may be."""

LARGEST_CONDITION = 1e5
"""Largest condition number of the information of all rows that are searched as a grid."""


class Levels(NamedTuple):
    """Rows of all combinations of levels, as kernels read them."""

    entries: np.ndarray
    """Tables of the columns, one after the other."""
    offset: np.ndarray
    """First entry of the table of every column."""
    step: np.ndarray
    """Distance in the table of ``columns[j, i]`` from a level of factor j to the next."""
    columns: np.ndarray
    """Columns that depend on factor j: the first widths[j] of row j."""
    widths: np.ndarray
    sizes: np.ndarray
    """Numbers of levels."""
    strides: np.ndarray
    """Combination l is at strides @ l of ``allowed``."""
    allowed: np.ndarray
    """True for combinations that are candidates; empty if all are."""

    @classmethod
    def of(
        cls, tables: Sequence[np.ndarray], depends: np.ndarray, sizes: np.ndarray, allowed: np.ndarray
    ) -> Levels:
        """Return the rows whose column c has a table over the levels of the factors depends[:, c]."""
        widths = depends.sum(axis=1)
        columns = np.zeros((len(sizes), widths.max()), np.int64)
        step = np.zeros_like(columns)
        for j, own in enumerate(depends):
            columns[j, : widths[j]] = np.flatnonzero(own)
            after = np.where(depends[j + 1 :, own], sizes[j + 1 :, None], 1)
            step[j, : widths[j]] = after.prod(axis=0)
        ends = np.cumsum([table.size for table in tables])
        strides = np.zeros_like(sizes) if len(allowed) == 0 else _strides(sizes)
        entries = np.concatenate([table.ravel() for table in tables])
        return cls(entries, ends - [t.size for t in tables], step, columns, widths, sizes, strides, allowed)

    @property
    def rank(self) -> int:
        """Number of columns."""
        return len(self.offset)

    def rows(self, settings: np.ndarray) -> np.ndarray:
        """Return the rows of runs, given by the levels of their factors."""
        at = np.tile(self.offset, (len(settings), 1))
        for j, width in enumerate(self.widths):
            at[:, self.columns[j, :width]] += settings[:, j, None] * self.step[j, :width]
        return self.entries[at]


class Grid(NamedTuple):
    """Levels of listed candidates."""

    levels: Levels
    row_of: np.ndarray
    """Candidate of every combination of levels, or -1."""
    settings: np.ndarray
    """Levels of every candidate."""
    shares: list[np.ndarray]
    """Optimal shares of the levels of every factor, if the model is additive and the grid is full."""

    def product_weights(self, runs: float) -> np.ndarray:
        """Return weights whose factors are independent and have their shares; 0 for repeated candidates."""
        listed = self.row_of[self.settings @ _strides(self.levels.sizes)]
        weights = np.where(listed == np.arange(len(listed)), runs, 0.0)
        for j, share in enumerate(self.shares):
            weights *= share[self.settings[:, j]]
        return weights


def _strides(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([np.cumprod(sizes[:0:-1])[::-1], [1]]).astype(np.int64)


def find_grid(problem: DesignProblem) -> Grid | None:
    """Return the grid of a problem, or None if it is none."""
    x = problem.source.whole()
    if (
        problem.n_groups > 1
        or problem.n_parameter_blocks > 1
        or x.size > MOST_GRID_ENTRIES
        or problem.budgets[0] > MOST_GRID_RUNS
    ):
        return None
    settings = _factors(x)
    if settings is None:
        return None
    sizes = settings.max(axis=0) + 1
    row_of = np.full(math.prod(sizes.tolist()), -1)
    row_of[settings @ _strides(sizes)] = np.arange(len(x))
    tables = _tables(x, row_of.reshape(sizes))
    if len(tables) != problem.rank:
        return None
    missing = row_of < 0
    z = np.array([np.broadcast_to(table, sizes).ravel() for table in tables])
    z[:, missing] = 0.0
    if not np.linalg.cond(z @ z.T) < LARGEST_CONDITION:
        return None
    depends = np.array([table.shape for table in tables]).T > 1
    allowed = ~missing if missing.any() else np.zeros(0, np.bool_)
    levels = Levels.of([np.nan_to_num(t) for t in tables], depends, sizes, allowed)
    is_additive = len(allowed) == 0 and depends.sum() == len(tables) - 1
    return Grid(levels, row_of, settings, _marginal_shares(levels) if is_additive else [])


def _factors(x: np.ndarray) -> np.ndarray | None:
    """Return the levels of two or more factors by number, (N, factors), or None if they are no grid."""
    factors: list[np.ndarray] = []
    joint, first = np.zeros(len(x), np.int64), np.zeros(1, np.int64)
    for column in x.T:
        if np.array_equal(column, column[first[joint]]):
            continue
        values = np.unique(column)
        own = np.searchsorted(values, column)
        merged = own
        for f in [f for f in factors if _are_related(f, own, len(values))]:
            merged = np.unique(f * (merged.max() + 1) + merged, return_inverse=True)[1]
            factors = [g for g in factors if g is not f]
        factors.append(merged)
        combinations = math.prod(int(f.max()) + 1 for f in factors)
        if combinations > 2 * len(x):
            return None
        joint = np.zeros(len(x), np.int64)
        for f in factors:
            joint = joint * (f.max() + 1) + f
        first = np.zeros(combinations, np.int64)
        first[joint] = np.arange(len(x))
    there = np.count_nonzero(np.bincount(joint))
    return np.column_stack(factors) if len(factors) > 1 and len(first) <= 2 * there else None


def _are_related(f: np.ndarray, own: np.ndarray, size: int) -> bool:
    """Return True if some combination of the levels of two columns does not occur."""
    combinations = (int(f.max()) + 1) * size
    return combinations > 2 * len(f) or int(np.count_nonzero(np.bincount(f * size + own))) < combinations


def _tables(x: np.ndarray, row_of: np.ndarray) -> list[np.ndarray]:
    """Return independent, well-conditioned columns, or none if there is doubt.

    A table has an axis for every factor, of length 1 if the column does not depend on it, and NaN for
    combinations that do not occur.
    """
    missing = row_of < 0
    found = []
    for column in x.T:
        whole = np.where(missing, np.nan, column[row_of])
        for j in range(whole.ndim):
            low, high = np.fmin.reduce(whole, axis=j), np.fmax.reduce(whole, axis=j)
            if np.array_equal(low, high, equal_nan=True):
                whole = np.expand_dims(low, j)
        found.append(whole / max(np.nanmax(np.abs(whole)), np.finfo(float).tiny))
    kept = list[np.ndarray]()
    for table in sorted(found, key=lambda table: sum(size > 1 for size in table.shape)):
        occurs = ~np.isnan(table)
        size = math.sqrt(np.nansum(table * table))
        inside = [t for t in kept if all(a <= b for a, b in zip(t.shape, table.shape, strict=True))]
        left = table[occurs]
        if inside:
            others = np.column_stack([np.broadcast_to(t, table.shape)[occurs] for t in inside])
            for _ in range(2):
                left = left - others @ np.linalg.lstsq(others, left)[0]
        length = math.sqrt(float(left @ left))
        if length > DOUBTFUL * size:
            out = np.full(table.shape, np.nan)
            out[occurs] = left * (math.sqrt(len(left)) / length)
            kept.append(out)
        elif length > DEPENDENT * size:
            return []
    return kept


def _marginal_shares(levels: Levels) -> list[np.ndarray]:
    """Return the optimal shares of the levels of every factor of an additive model by itself."""
    problems = []
    for j, size in enumerate(levels.sizes):
        settings = np.zeros((size, len(levels.sizes)), np.int64)
        settings[:, j] = np.arange(size)
        own = levels.rows(settings)[:, levels.columns[j, : levels.widths[j]]]
        problems.append(DesignProblem(np.column_stack([np.ones(size), own])))
    return [found.weights / found.weights.sum() for found in solve_many(problems, tol=1e-10)]
