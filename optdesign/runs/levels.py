"""Coordinate exchange: change the level of one factor of one run at a time.

The candidates are combinations of levels of some factors. A change of one factor replaces the row x of a run
by x + d. The change d is zero outside the columns that depend on this factor. All levels of a factor are
compared at the cost of a few products (:mod:`optdesign.runs.rank_two`; Meyer and Nachtsheim, Technometrics
37, 1995). The runs are compared in batches, because loops over the runs of a batch are fast for any number of
levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from optdesign.runs.grid import Grid, Levels
from optdesign.runs.rank_two import CHANGES, IDLE, MOVE_GAIN, REFRESH, ROW, SAFE, det_ratio, inverted, update
from optdesign.runtime.jit import kernel

RIDGE = 1e-2
"""Multiple of the identity that is added to the information of a random start, which may be singular."""

BATCH = 64
"""Number of runs in a batch. Their changes are priced together, in loops over contiguous entries."""

FACTOR = CHANGES + 1
"""Entry of ``place`` with the next factor to price. It follows the entries that all searches have."""

LANES = 4.0
"""Number of multiplications in a loop over a batch that take as long as 1 multiplication elsewhere."""


class State(NamedTuple):
    """State of a search.

    The fields are the level numbers of the runs, the rows of the runs, the inverse of the information matrix,
    the position and counters of the search, and log det.
    """

    settings: np.ndarray
    z: np.ndarray
    inverse: np.ndarray
    place: np.ndarray
    log_det: np.ndarray


class LevelMoves:
    """Changes of single levels of runs; a perturbation replaces a whole run.

    ``shares[j]`` has the probabilities of the levels of factor j in random starts.
    """

    name, bound, patience = "exchange of levels", math.inf, 1000

    def __init__(self, levels: Levels, runs: int, reach: float, shares: Sequence[np.ndarray]) -> None:
        self.levels, self.runs, self.reach, self.shares = levels, runs, reach, shares

    def state(self, settings: np.ndarray, ridge: float = 0.0) -> State:
        """Return the state of the search for runs with the level numbers ``settings``."""
        inverse = np.zeros((self.levels.rank, self.levels.rank))
        state = State(settings, self.levels.rows(settings), inverse, np.zeros(4, np.int64), np.zeros(1))
        self.refresh(state, ridge)
        return state

    def start(self, rng: np.random.Generator) -> State:
        """Return the state of random runs, with RIDGE added to the information."""
        levels = [rng.choice(len(share), size=self.runs, p=share) for share in self.shares]
        return self.state(np.column_stack(levels), RIDGE)

    def spanning(self) -> State:
        """Return the state of runs that span an additive model.

        Each run differs from the first in at most 1 level. The list is repeated up to the number of runs.
        """
        factor = np.repeat(np.arange(len(self.levels.widths)), self.levels.widths)
        ones = np.zeros((1 + len(factor), len(self.levels.sizes)), np.int64)
        ones[np.arange(1, len(ones)), factor] = np.arange(1, len(ones)) - np.searchsorted(factor, factor)
        return self.state(ones[np.arange(self.runs) % len(ones)])

    def refresh(self, state: State, ridge: float = 0.0) -> float:
        """Recompute the inverse from the runs. Returns log det, or -inf if the runs lose rank."""
        state.log_det[0], inverse = inverted(state.z.T @ state.z + ridge * np.eye(len(state.inverse)))
        state.place[CHANGES] = 0
        if inverse is not None:
            state.inverse[:] = inverse
        return float(state.log_det[0])

    def climb(self, state: State, most: float) -> tuple[float, float, bool]:
        """Change levels until no change increases det, or until the work exceeds ``most``.

        Returns log det, the work, and True if no change increases det.
        """
        work = 0.0
        while work <= most and state.place[IDLE] < self.runs:
            if state.place[CHANGES] >= REFRESH:
                self.refresh(state)
            work += _climb(*self.levels, *state, most - work)
        return float(state.log_det[0]), work, bool(state.place[IDLE] >= self.runs)

    def perturb(self, state: State, rng: np.random.Generator) -> None:
        """Replace a random run by a random combination of levels."""
        _perturb(*self.levels, *state, rng.random((5, 1 + len(self.levels.sizes))))

    def found(self, state: State) -> np.ndarray:
        """Return the level numbers of the runs."""
        return state.settings.copy()


class ListedLevelMoves(LevelMoves):
    """Changes of single levels of runs, for candidates that are given as a list."""

    def __init__(
        self,
        grid: Grid,
        weights: np.ndarray,
        runs: int,
        counts: Callable[[], np.ndarray],
    ) -> None:
        support = np.flatnonzero(weights)
        z = grid.levels.rows(grid.settings[support])
        super().__init__(grid.levels, runs, inverted((z.T * weights[support]) @ z)[0], grid.shares)
        self.grid, self.counts = grid, counts

    def start(self, rng: np.random.Generator) -> State:
        """Return the state of random runs, with RIDGE added to the information."""
        if self.shares:
            return super().start(rng)
        rows = rng.integers(0, len(self.grid.settings), self.runs)
        return self.state(self.grid.settings[rows], RIDGE)

    def spanning(self) -> State:
        """Return the state of runs of full rank."""
        return self.of(self.counts())

    def of(self, counts: np.ndarray) -> State:
        """Return the state of ``counts[k]`` runs of each candidate k."""
        return self.state(np.repeat(self.grid.settings, counts, axis=0))

    def found(self, state: State) -> np.ndarray:
        """Return the number of runs of every candidate."""
        rows = self.grid.row_of[np.ravel_multi_index(tuple(state.settings.T), tuple(self.levels.sizes))]
        return np.bincount(rows, minlength=len(self.grid.settings))


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
def _entries_of(offset, step, columns, widths, settings, at):
    """Overwrite at[c] with the place in ``entries`` of column c of a run."""
    for c in range(len(offset)):
        at[c] = offset[c]
    for j in range(len(widths)):
        for i in range(widths[j]):
            at[columns[j, i]] += step[j, i] * settings[j]


@kernel
def _differences(entries, step, columns, widths, sizes, own, x, places, lo, hi, d):
    """Overwrite d[j, l, i, m] with the change of column i of factor j if run m gets level l of factor j.

    The runs are lo .. hi - 1. Run m has level own[j, m] of factor j. Column c of its row is x[c, m], which is
    at places[c, m] in ``entries``.
    """
    for j in range(len(widths)):
        for i in range(widths[j]):
            column, s = columns[j, i], step[j, i]
            place, row, levels = places[column], x[column], own[j]
            for level in range(sizes[j]):
                out = d[j, level, i]
                for m in range(lo, hi):
                    out[m] = entries[place[m] + s * (level - levels[m])] - row[m]


@kernel
def _best_change(d, levels, v, columns, y, a, own, stride, base, allowed, b, c):
    """Return the run and the level of the best change of one factor, or -1 and -1 if no change increases det.

    Run m has level own[m] of the factor. Its combination of levels is at base[m] in ``allowed``. Overwrites b
    and c.
    """
    width = len(columns)
    # d'Vd needs the lower triangle of V, with off-diagonal entries doubled. Columns of zeros follow
    # the triangle, because the loop below adds 4 columns at a time.
    triangle = np.zeros((width, width + 3))
    for i in range(width):
        for k in range(i):
            triangle[i, k] = 2.0 * v[columns[i], columns[k]]
        triangle[i, i] = v[columns[i], columns[i]]
    best, to, gain = -1, -1, 1.0
    for level in range(levels):
        b[:] = 0.0
        c[:] = 0.0
        for i in range(width):
            x, row = d[level, i], y[columns[i]]
            for m in range(len(a)):
                b[m] += row[m] * x[m]
            for k in range(0, i + 1, 4):
                v0, v1, v2, v3 = triangle[i, k], triangle[i, k + 1], triangle[i, k + 2], triangle[i, k + 3]
                x0, x1 = d[level, k], d[level, min(k + 1, i)]
                x2, x3 = d[level, min(k + 2, i)], d[level, min(k + 3, i)]
                for m in range(len(a)):
                    c[m] += x[m] * ((v0 * x0[m] + v1 * x1[m]) + (v2 * x2[m] + v3 * x3[m]))
        for m in range(len(a)):
            ratio = det_ratio(a[m], b[m], c[m], 1.0)
            if ratio > gain + MOVE_GAIN and (
                len(allowed) == 0 or allowed[base[m] + stride * (level - own[m])]
            ):
                best, to, gain = m, level, ratio
    return best, to


@kernel
def _change(change, columns, m, x, y, a, v, u, sums):
    """Change some columns of run m of a batch. Returns the factor by which det changes.

    The rows of the runs are the columns of x, y is V x, and ``a`` has the variances of the runs. Overwrites
    x, y, a, v, u and sums.
    """
    e = y[:, m].copy()
    ee, ed, dd = a[m], 0.0, 0.0
    u[:] = 0.0
    for i in range(len(columns)):
        for k in range(len(u)):
            u[k] += v[columns[i], k] * change[i]
    for i in range(len(columns)):
        ed += e[columns[i]] * change[i]
        dd += u[columns[i]] * change[i]
    update(v, e, u, ee, ed, dd, 1.0)
    of_e, of_u = sums[0], sums[1]
    sums[:] = 0.0
    for k in range(len(u)):
        row = x[k]
        for n in range(len(a)):
            of_e[n] += row[n] * e[k]
            of_u[n] += row[n] * u[k]
    q = 1.0 + ed
    scale = 1.0 / (dd * (ee - 1.0) - q * q)
    for n in range(len(a)):
        ce, cu = scale * (dd * of_e[n] - q * of_u[n]), scale * ((ee - 1.0) * of_u[n] - q * of_e[n])
        a[n] -= ce * of_e[n] + cu * of_u[n]
        of_e[n], of_u[n] = ce, cu
    for k in range(len(u)):
        row = y[k]
        for n in range(len(a)):
            row[n] -= of_e[n] * e[k] + of_u[n] * u[k]
    for i in range(len(columns)):
        x[columns[i], m] += change[i]
    a[m] = _product(v, x[:, m].copy(), e)
    y[:, m] = e
    return q * q + dd * (1.0 - ee)


@kernel
def _climb(
    entries, offset, step, columns, widths, sizes, strides, allowed, settings, z, v, place, log_det, most
):  # fmt: skip
    """Change single levels until no change increases det, the work exceeds ``most`` or a refresh is due.

    Batches of runs are improved one after the other. In a batch, the factors are visited in turn. The best
    change of the visited factor is made if it increases det. The batch is left when no factor has such a
    change. The changes do not depend on the limit of work of a call. Returns the work. Overwrites the state.
    """
    n, factors = settings.shape
    r, u, work = z.shape[1], np.empty(z.shape[1]), 0.0
    while place[IDLE] < n and place[CHANGES] < REFRESH and work <= most:
        first = place[ROW] - place[ROW] % BATCH
        count = min(BATCH, n - first)
        own, x = settings[first : first + count].T.copy(), z[first : first + count].T.copy()
        y, a, base = v @ x, np.zeros(count), np.zeros(count, np.int64)
        d, places = np.empty((factors, sizes.max(), columns.shape[1], count)), np.empty((r, count), np.int64)
        sums, b, c = np.empty((2, count)), np.empty(count), np.empty(count)
        for k in range(r):
            places[k] = offset[k]
            a += x[k] * y[k]
        for j in range(factors):
            base += strides[j] * own[j]
            for i in range(widths[j]):
                places[columns[j, i]] += step[j, i] * own[j]
        _differences(entries, step, columns, widths, sizes, own, x, places, 0, count, d)
        work += count * r * r / LANES
        idle, j, before = 0, place[FACTOR], place[CHANGES]
        # A call makes at least 1 change in the batch, or prices all factors and finds no change.
        while (
            idle < factors
            and place[CHANGES] < REFRESH
            and (work <= most or idle > 0 or place[CHANGES] == before)
        ):
            used = columns[j, : widths[j]]
            m, level = _best_change(
                d[j], sizes[j], v, used, y, a, own[j], strides[j], base, allowed, b, c
            )  # fmt: skip
            work += count * sizes[j] * widths[j] * (widths[j] + 4) / LANES
            if level >= 0:
                change = d[j, level, : widths[j], m].copy()
                log_det[0] += math.log(_change(change, used, m, x, y, a, v, u, sums))
                base[m] += strides[j] * (level - own[j, m])
                for i in range(widths[j]):
                    k = used[i]
                    places[k, m] += step[j, i] * (level - own[j, m])
                    x[k, m] = entries[places[k, m]]
                    z[first + m, k] = x[k, m]
                own[j, m] = level
                settings[first + m, j] = level
                _differences(entries, step, columns, widths, sizes, own, x, places, m, m + 1, d)
                place[CHANGES] += 1
                idle = -1
                work += 4 * r * (r + count) / LANES
            idle, j = idle + 1, j + 1 if j + 1 < factors else 0
        if idle == factors:
            place[IDLE] = count if place[CHANGES] > before else place[IDLE] + count
            place[ROW] = first + count if first + count < n else 0
            place[FACTOR] = 0
        else:
            place[IDLE], place[FACTOR] = 0, j
    return work


@kernel
def _perturb(
    entries, offset, step, columns, widths, sizes, strides, allowed, settings, z, v, place, log_det, draws
):  # fmt: skip
    """Replace a run, as given by the first row of ``draws`` that keeps the rank. Overwrites the state.

    The draws are numbers in [0, 1). The first draw of a row selects the run. The other draws select its new
    levels.
    """
    n, factors = settings.shape
    r = z.shape[1]
    y, u, d, at = np.empty(r), np.empty(r), np.empty(r), np.empty(r, np.int64)
    levels = np.empty(factors, np.int64)
    place[IDLE] = 0
    for k in range(len(draws)):
        run, base = min(int(draws[k, 0] * n), n - 1), 0
        for j in range(factors):
            levels[j] = min(int(draws[k, 1 + j] * sizes[j]), sizes[j] - 1)
            base += strides[j] * levels[j]
        if len(allowed) > 0 and not allowed[base]:
            continue
        _entries_of(offset, step, columns, widths, levels, at)
        for i in range(r):
            d[i] = entries[at[i]] - z[run, i]
        a, c = _product(v, z[run], y), _product(v, d, u)
        b = 0.0
        for i in range(r):
            b += y[i] * d[i]
        ratio = det_ratio(a, b, c, 1.0)
        if ratio > SAFE:
            update(v, y, u, a, b, c, 1.0)
            for i in range(r):
                z[run, i] = entries[at[i]]
            for j in range(factors):
                settings[run, j] = levels[j]
            log_det[0] += math.log(ratio)
            place[CHANGES] += 1
            place[ROW] = run
            return
