"""Changes of single levels of runs, if the candidates are a grid of the levels of some factors.

If the level of one factor of a run changes, its row x becomes x + d, and d is zero outside the columns that
depend on this factor. All levels of a factor are compared at the cost of a few products
(:mod:`optdesign.runs.rank_two`; Meyer and Nachtsheim, Technometrics 37, 1995).

*Finding a grid.* The columns are read in order. A column that is a function of the factors found so far is
none; a column that is independent of them is a factor; any other is merged with the factors that it depends
on. The list is searched as a grid if at least half of the combinations of levels are candidates.

*Coordinates.* Columns are replaced by their residuals after a regression on columns that depend on no other
factors. This keeps the zeros of d, spans the same space, and on full grids gives well-conditioned rows in any
units of the factors.

*Additive models* with an intercept: independent factors at their marginal optima are optimal among all
weights. The relaxed problem starts there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optdesign.design.result import DesignResult
from optdesign.problem.problem import DesignProblem
from optdesign.runs.rank_two import GAIN, REFRESH, SAFE, det_ratio, inverted, update
from optdesign.runtime.jit import kernel
from optdesign.solvers.solve import solve

MOST_RUNS, MOST_ENTRIES = 10_000, 1e7
"""Largest number of runs, and of entries of the candidates, that are searched as a grid."""

DEPENDENT, DOUBTFUL = 1e-12, 1e-9
"""Relative residuals of a column that is dependent on others, and of a column that may be."""

LARGEST_CONDITION = 1e5
"""Largest condition number of rows that are searched as a grid."""

RIDGE = 1e-2
"""Multiple of the identity that is added while a start is not of full rank."""

ROW, IDLE, CHANGES = range(3)
"""Entries of ``place``: next run to visit, runs visited since the last gain, moves since the last refresh."""


class Grid(NamedTuple):
    """Rows of all combinations of levels, as kernels read them."""

    table: np.ndarray
    """Rows of listed candidates, (N, r); empty if the model is additive and unlisted."""
    row_of: np.ndarray
    """Candidate of every combination of levels, or -1; empty if unlisted."""
    strides: np.ndarray
    """Combination l is at strides @ l of ``row_of``."""
    values: np.ndarray
    """Entries of the rows that depend on factor j if it is at level l, (factors, levels, width); unlisted."""
    sizes: np.ndarray
    """Numbers of levels."""
    columns: np.ndarray
    """Columns that depend on factor j: the first widths[j] of row j."""
    widths: np.ndarray

    @property
    def is_additive(self) -> bool:
        """Return True if every column but one depends on one factor."""
        return bool(1 + self.widths.sum() == self.columns.max() + 1)


def find_grid(problem: DesignProblem) -> Grid | None:
    """Return the grid of a problem, or None if it is none."""
    x = problem.source.whole()
    if problem.n_groups > 1 or problem.n_parameter_blocks > 1 or x.size > MOST_ENTRIES:
        return None
    codes = _factors(x)
    if codes is None:
        return None
    sizes = codes.max(axis=1) + 1
    strides = np.concatenate([np.cumprod(sizes[::-1])[-2::-1], [1]])
    depends = np.array([_varies(x, strides @ codes - strides[j] * codes[j]) for j in range(len(sizes))])
    z, kept = _coordinates(x, depends)
    if z is None or z.shape[1] != problem.rank:
        return None
    depends = depends[:, kept]
    row_of = np.full(math.prod(sizes.tolist()), -1)
    row_of[strides @ codes] = np.arange(len(x))
    widths = depends.sum(axis=1)
    columns = np.zeros((len(sizes), widths.max()), np.int64)
    for j, own in enumerate(depends):
        columns[j, : widths[j]] = np.flatnonzero(own)
    return Grid(z, row_of, strides, np.zeros((1, 1, 1)), sizes, columns, widths)


def _factors(x: np.ndarray) -> np.ndarray | None:
    """Return the levels of two or more factors by number, (factors, N), or None if they are no grid."""
    factors: list[np.ndarray] = []
    joint, first = np.zeros(len(x), np.int64), np.zeros(1, np.int64)
    for column in x.T:
        if np.array_equal(column, column[first[joint]]):
            continue
        own = np.unique(column, return_inverse=True)[1]
        size = own.max() + 1
        related = [f for f in factors if len(np.unique(f * size + own)) < (f.max() + 1) * size]
        for f in related:
            own = np.unique(f * (own.max() + 1) + own, return_inverse=True)[1]
        factors = [f for f in factors if not any(f is g for g in related)] + [own]
        combinations = math.prod(int(f.max()) + 1 for f in factors)
        if combinations > 2 * len(x):
            return None
        joint = np.zeros(len(x), np.int64)
        for f in factors:
            joint = joint * (f.max() + 1) + f
        first = np.zeros(combinations, np.int64)
        first[joint] = np.arange(len(x))
    return np.array(factors) if len(factors) > 1 and len(first) <= 2 * len(np.unique(joint)) else None


def _varies(x: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return True for the columns that are no function of a combination of levels, given by number."""
    first = np.zeros(others.max() + 1, np.int64)
    first[others] = np.arange(len(x))
    return np.any(x != x[first[others]], axis=0)


def _coordinates(x: np.ndarray, depends: np.ndarray) -> tuple[np.ndarray | None, list[int]]:
    """Return well-conditioned columns that depend on the same factors, and the columns that are kept."""
    z, kept = np.empty_like(x, dtype=np.float64), list[int]()
    for c in np.argsort(depends.sum(axis=0), kind="stable"):
        column = x[:, c] / max(np.abs(x[:, c]).max(), np.finfo(float).tiny)
        size = math.sqrt(float(column @ column))
        inside = [k for k, other in enumerate(kept) if not np.any(depends[:, other] & ~depends[:, c])]
        for _ in range(2 if inside else 0):
            column = column - z[:, inside] @ np.linalg.lstsq(z[:, inside], column)[0]
        left = math.sqrt(float(column @ column))
        if left > DOUBTFUL * size:
            z[:, len(kept)] = column * (math.sqrt(len(x)) / left)
            kept.append(int(c))
        elif left > DEPENDENT * size:
            return None, []
    z = np.ascontiguousarray(z[:, : len(kept)])
    return (z if np.linalg.cond(z.T @ z) < LARGEST_CONDITION else None), kept


def product_weights(grid: Grid, runs: float) -> np.ndarray | None:
    """Return the optimal weights of an additive model on a full grid, or None for other models."""
    if not grid.is_additive or np.any(grid.row_of < 0) or len(grid.row_of) != len(grid.table):
        return None
    weights = np.full(len(grid.row_of), float(runs))
    for j, size in enumerate(grid.sizes):
        levels = np.arange(len(grid.row_of)) // grid.strides[j] % size
        rows = grid.row_of[np.arange(size) * grid.strides[j]]
        own = np.column_stack([np.ones(size), grid.table[rows][:, grid.columns[j, : grid.widths[j]]]])
        weights *= solve(DesignProblem(own), tol=1e-10).weights[levels]
    out = np.empty(len(weights))
    out[grid.row_of] = weights
    return out


class State(NamedTuple):
    """Levels of the runs by number, their rows, the inverse information, the position, and log det."""

    settings: np.ndarray
    z: np.ndarray
    inverse: np.ndarray
    place: np.ndarray
    log_det: np.ndarray


class GridMoves:
    """Changes of single levels of runs; a perturbation replaces a whole run."""

    name, bound, patience = "exchange of levels", math.inf, 1000

    def __init__(self, grid: Grid, runs: int, reach: float) -> None:
        self.grid, self.runs, self.reach = grid, runs, reach
        self.r = int(grid.columns.max()) + 1
        # Work of a visit of a run without a change.
        self.visit = float(self.r**2 + grid.sizes @ grid.widths**2)

    def state(self, settings: np.ndarray, ridge: float = 0.0) -> State:
        """Return the state of runs."""
        inverse = np.zeros((self.r, self.r))
        state = State(settings, self.rows(settings), inverse, np.zeros(3, np.int64), np.zeros(1))
        self.refresh(state, ridge)
        return state

    def rows(self, settings: np.ndarray) -> np.ndarray:
        """Return the rows of runs."""
        return self.grid.table[self.grid.row_of[settings @ self.grid.strides]]

    def refresh(self, state: State, ridge: float = 0.0) -> float:
        """Recompute the inverse from the runs. Returns log det, -inf if the runs lose rank."""
        state.log_det[0], inverse = inverted(state.z.T @ state.z + ridge * np.eye(self.r))
        state.place[CHANGES] = 0
        if inverse is not None:
            state.inverse[:] = inverse
        return float(state.log_det[0])

    def climb(self, state: State, most: float) -> tuple[float, float, bool]:
        """Change levels until none gains, or for some work. Returns log det, the work, True if complete."""
        if state.place[CHANGES] >= REFRESH:
            self.refresh(state)
        used = _climb(*self.grid, *state, most)
        return float(state.log_det[0]), used, bool(state.place[IDLE] >= self.runs)

    def perturb(self, state: State, rng: np.random.Generator) -> None:
        """Replace a run by another at random."""
        _perturb(*self.grid, *state, rng.random((5, 1 + len(self.grid.sizes))))

    def found(self, state: State) -> np.ndarray:
        """Return the levels of the runs by number."""
        return state.settings.copy()


class ListedGridMoves(GridMoves):
    """The same for listed candidates."""

    def __init__(self, grid: Grid, best: DesignResult, runs: int, counts: Callable[[], np.ndarray]) -> None:
        support = best.support
        z = grid.table[support]
        super().__init__(grid, runs, inverted((z.T * best.weights[support]) @ z)[0])
        self.codes = np.zeros((len(grid.table), len(grid.sizes)), np.int64)
        here = np.flatnonzero(grid.row_of >= 0)
        self.codes[grid.row_of[here]] = here[:, None] // grid.strides % grid.sizes
        self.spanning = lambda: self.of(counts())

    def start(self, rng: np.random.Generator) -> State:
        """Return random runs, with a ridge."""
        return self.state(self.codes[rng.integers(0, len(self.codes), self.runs)], RIDGE)

    def of(self, counts: np.ndarray) -> State:
        """Return the state of given runs."""
        return self.state(self.codes[np.repeat(np.arange(len(counts)), counts)])

    def found(self, state: State) -> np.ndarray:
        """Return the runs of every candidate."""
        rows = self.grid.row_of[state.settings @ self.grid.strides]
        return np.bincount(rows, minlength=len(self.codes))


@kernel
def _step(table, row_of, values, columns, widths, z, r, j, level, at, d):
    """Overwrite d with the change of run r if factor j goes to a level, combination ``at``.

    Returns False if this is no candidate.
    """
    if len(row_of) > 0:
        row = row_of[at]
        if row < 0:
            return False
        for i in range(widths[j]):
            d[i] = table[row, columns[j, i]] - z[r, columns[j, i]]
    else:
        for i in range(widths[j]):
            d[i] = values[j, level, i] - z[r, columns[j, i]]
    return True


@kernel
def _product(v, x, y):
    """Overwrite y with V x, for a symmetric V. Returns x'V x."""
    y[:] = 0.0
    for i in range(len(x)):
        c = x[i]
        for j in range(len(x)):
            y[j] += c * v[i, j]
    square = 0.0
    for i in range(len(x)):
        square += x[i] * y[i]
    return square


@kernel
def _climb(table, row_of, strides, values, sizes, columns, widths, settings, z, v, place, log_det, most):
    """Change single levels until none gains, or for some work. Returns the work; overwrites the state."""
    n, factors = settings.shape
    r = z.shape[1]
    y, u, d = np.empty(r), np.empty(r), np.empty(columns.shape[1])
    full = np.zeros(r)
    work, moves = 0.0, 0
    while place[IDLE] < n and moves < 20 * n:
        run = place[ROW]
        place[IDLE] += 1
        base = 0
        for j in range(factors):
            base += strides[j] * settings[run, j]
        a = _product(v, z[run], y)
        work += r * r
        for j in range(factors):
            width, old = widths[j], settings[run, j]
            best, gain = -1, 1.0 + GAIN
            for level in range(sizes[j]):
                at = base + strides[j] * (level - old)
                if level == old or not _step(table, row_of, values, columns, widths, z, run, j, level, at, d):
                    continue
                b, c = 0.0, 0.0
                for i in range(width):
                    ci = columns[j, i]
                    b += y[ci] * d[i]
                    s = 0.0
                    for k in range(i):
                        s += v[ci, columns[j, k]] * d[k]
                    c += d[i] * (2.0 * s + v[ci, ci] * d[i])
                ratio = det_ratio(a, b, c, 1.0)
                if ratio > gain:
                    best, gain = level, ratio
            work += sizes[j] * width * width
            if best >= 0:
                at = base + strides[j] * (best - old)
                _step(table, row_of, values, columns, widths, z, run, j, best, at, d)
                base = at
                for i in range(width):
                    full[columns[j, i]] = d[i]
                c = _product(v, full, u)
                b = 0.0
                for i in range(width):
                    b += y[columns[j, i]] * d[i]
                    full[columns[j, i]] = 0.0
                    z[run, columns[j, i]] += d[i]
                update(v, y, u, a, b, c, 1.0)
                settings[run, j] = best
                log_det[0] += math.log(gain)
                a = _product(v, z[run], y)
                place[CHANGES] += 1
                place[IDLE] = 0
                moves += 1
                work += 6.0 * r * r
        place[ROW] = run + 1 if run + 1 < n else 0
        if work > most:
            break
    return work


@kernel
def _perturb(table, row_of, strides, values, sizes, columns, widths, settings, z, v, place, log_det, draws):
    """Replace a run by the first row of draws that keeps the rank. Overwrites the state.

    The first draw from [0, 1) of a row is the run, the others are its new levels.
    """
    n, factors = settings.shape
    r = z.shape[1]
    y, u, step, d = np.empty(r), np.empty(r), np.zeros(r), np.empty(columns.shape[1])
    levels = np.empty(factors, np.int64)
    place[IDLE] = 0
    for k in range(len(draws)):
        run, at = min(int(draws[k, 0] * n), n - 1), 0
        for j in range(factors):
            levels[j] = min(int(draws[k, 1 + j] * sizes[j]), sizes[j] - 1)
            at += strides[j] * levels[j]
        is_candidate = True
        for j in range(factors):
            is_candidate = _step(table, row_of, values, columns, widths, z, run, j, levels[j], at, d)
            if not is_candidate:
                break
            for i in range(widths[j]):
                step[columns[j, i]] = d[i]
        if not is_candidate:
            continue
        a, c = _product(v, z[run], y), _product(v, step, u)
        b = 0.0
        for i in range(r):
            b += y[i] * step[i]
        ratio = det_ratio(a, b, c, 1.0)
        if ratio > SAFE:
            update(v, y, u, a, b, c, 1.0)
            for i in range(r):
                z[run, i] += step[i]
            for j in range(factors):
                settings[run, j] = levels[j]
            log_det[0] += math.log(ratio)
            place[CHANGES] += 1
            place[ROW] = run
            return
