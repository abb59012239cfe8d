"""Changes of single levels of runs, if the candidates are combinations of levels of some factors.

If the level of one factor of a run changes, its row x becomes x + d, and d is zero outside the columns that
depend on this factor. All levels of a factor are compared at the cost of a few products
(:mod:`optdesign.runs.rank_two`; Meyer and Nachtsheim, Technometrics 37, 1995).

Work is counted in pairs of multiplications, since loops over contiguous entries take half of the time.
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
"""Multiple of the identity that is added while a start is not of full rank."""


class State(NamedTuple):
    """Levels of the runs by number, their rows, the inverse information, the position, and log det."""

    settings: np.ndarray
    z: np.ndarray
    inverse: np.ndarray
    place: np.ndarray
    log_det: np.ndarray


class LevelMoves:
    """Changes of single levels of runs; a perturbation replaces a whole run.

    ``shares`` are those of the levels in random starts, by factor.
    """

    name, bound, patience = "exchange of levels", math.inf, 1000

    def __init__(self, levels: Levels, runs: int, reach: float, shares: Sequence[np.ndarray]) -> None:
        self.levels, self.runs, self.reach, self.shares = levels, runs, reach, shares

    def state(self, settings: np.ndarray, ridge: float = 0.0) -> State:
        """Return the state of runs."""
        inverse = np.zeros((self.levels.rank, self.levels.rank))
        state = State(settings, self.levels.rows(settings), inverse, np.zeros(3, np.int64), np.zeros(1))
        self.refresh(state, ridge)
        return state

    def start(self, rng: np.random.Generator) -> State:
        """Return random runs, with a ridge."""
        levels = [rng.choice(len(share), size=self.runs, p=share) for share in self.shares]
        return self.state(np.column_stack(levels), RIDGE)

    def spanning(self) -> State:
        """Return runs of an additive model that differ from the first in one level, again and again."""
        factor = np.repeat(np.arange(len(self.levels.widths)), self.levels.widths)
        ones = np.zeros((1 + len(factor), len(self.levels.sizes)), np.int64)
        ones[np.arange(1, len(ones)), factor] = np.arange(1, len(ones)) - np.searchsorted(factor, factor)
        return self.state(ones[np.arange(self.runs) % len(ones)])

    def refresh(self, state: State, ridge: float = 0.0) -> float:
        """Recompute the inverse from the runs. Returns log det, -inf if the runs lose rank."""
        state.log_det[0], inverse = inverted(state.z.T @ state.z + ridge * np.eye(len(state.inverse)))
        state.place[CHANGES] = 0
        if inverse is not None:
            state.inverse[:] = inverse
        return float(state.log_det[0])

    def climb(self, state: State, most: float) -> tuple[float, float, bool]:
        """Change levels until none gains, or for some work. Returns log det, the work, True if complete."""
        work = 0.0
        while work <= most and state.place[IDLE] < self.runs:
            if state.place[CHANGES] >= REFRESH:
                self.refresh(state)
            work += _climb(*self.levels, *state, most - work)
        return float(state.log_det[0]), work, bool(state.place[IDLE] >= self.runs)

    def perturb(self, state: State, rng: np.random.Generator) -> None:
        """Replace a run by another at random."""
        _perturb(*self.levels, *state, rng.random((5, 1 + len(self.levels.sizes))))

    def found(self, state: State) -> np.ndarray:
        """Return the levels of the runs by number."""
        return state.settings.copy()


class ListedLevelMoves(LevelMoves):
    """The same for listed candidates."""

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
        """Return random runs, with a ridge."""
        if self.shares:
            return super().start(rng)
        rows = rng.integers(0, len(self.grid.settings), self.runs)
        return self.state(self.grid.settings[rows], RIDGE)

    def spanning(self) -> State:
        """Return runs of full rank."""
        return self.of(self.counts())

    def of(self, counts: np.ndarray) -> State:
        """Return the state of given runs."""
        return self.state(np.repeat(self.grid.settings, counts, axis=0))

    def found(self, state: State) -> np.ndarray:
        """Return the runs of every candidate."""
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
    """Overwrite at with the places of the entries of a run in their tables."""
    for c in range(len(offset)):
        at[c] = offset[c]
    for j in range(len(widths)):
        for i in range(widths[j]):
            at[columns[j, i]] += step[j, i] * settings[j]


@kernel
def _price(d, block, y, size, old, b, c, t):
    """Overwrite b with x'V d and c with d'V d for every column d but the old, from y = V x. Overwrites t."""
    width = len(y)
    if size > width:  # the longer loop is the inner one
        for level in range(size):
            b[level] = 0.0
            c[level] = 0.0
        for i in range(width):
            for level in range(size):
                b[level] += y[i] * d[i, level]
            for k in range(i + 1):
                v = block[i, k] if i == k else 2.0 * block[i, k]
                for level in range(size):
                    c[level] += v * (d[i, level] * d[k, level])
        return
    for level in range(size):
        b[level] = 0.0
        c[level] = 0.0
        if level == old:
            continue
        for k in range(width):
            t[k] = 0.0
        for i in range(width):
            x = d[i, level]
            b[level] += y[i] * x
            for k in range(width):
                t[k] += x * block[i, k]
        for i in range(width):
            c[level] += t[i] * d[i, level]


@kernel
def _climb(
    entries, offset, step, columns, widths, sizes, strides, allowed, settings, z, v, place, log_det, most
):  # fmt: skip
    """Change single levels until none gains, or for some work, or until a refresh is due.

    Returns the work; overwrites the state.
    """
    n, factors = settings.shape
    r, widest, longest = z.shape[1], columns.shape[1], 0
    for j in range(factors):
        longest = max(longest, sizes[j])
    y, u, full, at = np.empty(r), np.empty(r), np.zeros(r), np.empty(r, np.int64)
    d, blocks, own, t = (
        np.empty((widest, longest)), np.empty((factors, widest, widest)), np.empty(widest), np.empty(widest),
    )  # fmt: skip
    b, c = np.empty(longest), np.empty(longest)
    has_block = np.zeros(factors, np.int64)
    work = 0.0
    while place[IDLE] < n and place[CHANGES] < REFRESH and work <= most:
        run = place[ROW]
        place[ROW] = run + 1 if run + 1 < n else 0
        place[IDLE] += 1
        _entries_of(offset, step, columns, widths, settings[run], at)
        a = _product(v, z[run], y)
        work += 0.5 * r * r
        base = 0
        for j in range(factors):
            base += strides[j] * settings[run, j]
        for j in range(factors):
            width, size, old = widths[j], sizes[j], settings[run, j]
            if has_block[j] == 0:
                has_block[j] = 1
                for i in range(width):
                    for k in range(width):
                        blocks[j, i, k] = v[columns[j, i], columns[j, k]]
            for i in range(width):
                column, s = columns[j, i], step[j, i]
                own[i] = y[column]
                first = at[column] - s * old
                for level in range(size):
                    d[i, level] = entries[first + level * s] - z[run, column]
            _price(d, blocks[j], own[:width], size, old, b, c, t)
            work += 0.5 * size * width * (width + 4)
            best, gain = -1, 1.0
            for level in range(size):
                ratio = det_ratio(a, b[level], c[level], 1.0)
                is_allowed = len(allowed) == 0 or allowed[base + strides[j] * (level - old)]
                if ratio > gain + MOVE_GAIN and is_allowed and level != old:
                    best, gain = level, ratio
            if best >= 0:
                base += strides[j] * (best - old)
                for i in range(width):
                    column = columns[j, i]
                    at[column] += step[j, i] * (best - old)
                    full[column] = d[i, best]
                    z[run, column] = entries[at[column]]
                _product(v, full, u)
                for i in range(width):
                    full[columns[j, i]] = 0.0
                update(v, y, u, a, b[best], c[best], 1.0)
                settings[run, j] = best
                log_det[0] += math.log(gain)
                a = _product(v, z[run], y)
                place[CHANGES] += 1
                place[IDLE] = 0
                has_block[:] = 0
                work += 3.0 * r * r
    return work


@kernel
def _perturb(
    entries, offset, step, columns, widths, sizes, strides, allowed, settings, z, v, place, log_det, draws
):  # fmt: skip
    """Replace a run by the first row of draws that keeps the rank. Overwrites the state.

    The first draw from [0, 1) of a row is the run, the others are its new levels.
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
