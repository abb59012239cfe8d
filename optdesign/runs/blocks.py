"""Moves of runs between blocks, for models with an additive effect of every block.

The groups of a problem are blocks with additive effects if the indicator of every group is in the span of
the columns. If also every group has the same treatments, apart from these effects, then with w_t the row of
treatment t, m_b the mean of the rows of block b and k_b its number of runs,

    log det M = constant + log det C,    C = sum over runs of w_t w_t' - sum_b k_b m_b m_b'.

A run changes its treatment, or two runs of different blocks change places. With S = P C^-1 P' for the rows P
of all treatments and means, the price of a move is a sum of a few entries (:mod:`optdesign.runs.rank_two`).

*The bound.* Choose rows whose sum of w_t w_t' is the identity. Then det C <= (tr C / p)^p for p rows, and
tr C = sum_b sum_{r < s in b} |w_r - w_s|^2 / k_b. In block b at most (k_b^2 - sum_t n_t^2) / 2 pairs differ,
a number that is largest for equal n_t, and no pair is farther apart than the farthest. Balanced incomplete
block designs attain this bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optdesign.design.result import DesignResult
from optdesign.runs.rank_two import CHANGES, IDLE, MOVE_GAIN, REFRESH, ROW, SAFE, det_ratio, inverted, update
from optdesign.runtime.jit import kernel

MOST_TREATMENTS, MOST_BLOCK_RUNS = 1500, 10_000
"""Largest problems for which all entries of S are kept."""


PRICE = 8.0
"""Work of a price of a move."""


class State(NamedTuple):
    """Treatments of the runs, S, the position of the search, and log det C."""

    treatments: np.ndarray
    s: np.ndarray
    place: np.ndarray
    log_det: np.ndarray


class BlockMoves:
    """Runs in blocks: exchange within blocks, and interchange between them."""

    patience = 100
    """Perturbations in a row without a gain that end a try."""
    name = "exchange within blocks and interchange between blocks"

    def __init__(
        self,
        rows: np.ndarray,
        candidates: np.ndarray,
        best: DesignResult,
        runs: np.ndarray,
        spanning: Callable[[], np.ndarray],
    ) -> None:
        self.rows, self.candidates, self.sizes = rows, candidates, runs
        self.block = np.repeat(np.arange(len(runs)), runs)
        self.v, self.p = rows.shape
        self.bound = self._bound()
        self.reach = inverted(self._information(best.weights[candidates]))[0]
        self.spanning = lambda: self.of(spanning())

    @classmethod
    def fit(
        cls, best: DesignResult, runs: np.ndarray, spanning: Callable[[], np.ndarray]
    ) -> BlockMoves | None:
        """Return the moves of a problem whose groups are blocks with additive effects, or None."""
        problem = best.problem
        g, n = problem.n_groups, problem.n_candidates
        v = n // g
        fits = problem.n_parameter_blocks == 1 < g and v * g == n and v <= MOST_TREATMENTS
        if not fits or runs.sum() > MOST_BLOCK_RUNS or np.any(np.bincount(problem.groups) != v):
            return None
        if runs.sum() < problem.rank:  # other moves raise the error
            return None
        z = problem.coordinates(slice(None))
        q = np.linalg.qr(z)[0]
        sums = np.array([np.bincount(problem.groups, column) for column in q.T])
        if problem.rank <= g or np.any(np.sum(sums**2, axis=0) < v * (1 - NEARLY)):
            return None
        # Random projections sort the treatments of all groups alike.
        order = np.lexsort((z @ np.random.default_rng(0).random(z.shape[1]), problem.groups)).reshape(g, v)
        order = order[:, np.argsort(order[0])]
        centred = z[order] - z[order].mean(axis=1, keepdims=True)
        apart = np.abs(centred - centred[0]).max()
        if apart > NEARLY * np.abs(centred).max():
            return None
        u, size, _ = np.linalg.svd(centred[0], full_matrices=False)
        p = problem.rank - g
        if size[p - 1] < SMALLEST_SINGULAR * size[0] or np.any(size[p:] > NEARLY * size[0]):
            return None
        moves = cls(np.ascontiguousarray(u[:, :p]), order, best, runs, spanning)
        if max(apart, *size[p:]) > NEGLIGIBLE * size[p - 1]:
            moves.bound = math.inf
        return moves

    def _bound(self) -> float:
        squares = np.sum(self.rows**2, axis=1)
        farthest = np.max(squares[:, None] + squares - 2 * self.rows @ self.rows.T)
        each, more = self.sizes // self.v, self.sizes % self.v
        differ = self.sizes**2 - more * (each + 1) ** 2 - (self.v - more) * each**2
        trace = farthest / 2 * float(np.sum(differ / self.sizes))
        return self.p * math.log(trace / self.p)

    def _information(self, counts: np.ndarray) -> np.ndarray:
        """Return C from the counts of all treatments, by block."""
        means = counts @ self.rows / self.sizes[:, None]
        return (self.rows.T * counts.sum(axis=0)) @ self.rows - (means.T * self.sizes) @ means

    def start(self, rng: np.random.Generator) -> State:
        """Return a start in which treatments have nearly equal numbers of runs, with a ridge."""
        n = len(self.block)
        drawn = np.concatenate([rng.permutation(self.v) for _ in range(-(-n // self.v))])[:n]
        return self._state(drawn, ridge=1e-2)

    def of(self, counts: np.ndarray) -> State:
        """Return the state of given runs."""
        inside = counts[self.candidates]
        return self._state(np.repeat(np.nonzero(inside)[1], inside[inside > 0]))

    def _state(self, treatments: np.ndarray, ridge: float = 0.0) -> State:
        points = self.v + len(self.sizes)
        state = State(treatments, np.zeros((points, points)), np.zeros(3, np.int64), np.zeros(1))
        self.refresh(state, ridge)
        return state

    def refresh(self, state: State, ridge: float = 0.0) -> float:
        """Recompute S and log det C from the runs. Returns log det C, -inf if the runs lose rank."""
        counts = np.zeros((len(self.sizes), self.v))
        np.add.at(counts, (self.block, state.treatments), 1.0)
        c = self._information(counts) + ridge * np.eye(self.p)
        state.log_det[0], inverse = inverted(c)
        state.place[CHANGES] = 0
        if inverse is not None:
            points = np.vstack([self.rows, counts @ self.rows / self.sizes[:, None]])
            state.s[:] = points @ inverse @ points.T
        return float(state.log_det[0])

    def climb(self, state: State, most: float) -> tuple[float, float, bool]:
        """Move until no move gains or the work is done. Returns log det, the work, and True if complete."""
        work = 0.0
        while work <= most and state.place[IDLE] < len(self.block):
            if state.place[CHANGES] >= REFRESH:
                self.refresh(state)
            work += _climb(self.block, self.sizes, *state, most - work)
        return float(state.log_det[0]), work, bool(state.place[IDLE] >= len(self.block))

    def perturb(self, state: State, rng: np.random.Generator) -> None:
        """Let 1 to 4 pairs of runs of different blocks change places, or runs change treatment, at random."""
        draws = rng.random((int(rng.integers(1, 5)), 2))
        _perturb(self.block, self.sizes, *state, draws)

    def found(self, state: State) -> np.ndarray:
        """Return the runs of every candidate."""
        return np.bincount(self.candidates[self.block, state.treatments], minlength=self.candidates.size)


NEARLY, SMALLEST_SINGULAR = 1e-9, 1e-5
"""Relative differences that the search ignores, and smallest singular value of rows that are searched so."""

NEGLIGIBLE = 1e-12
"""Largest differences, relative to the smallest singular value, that the bound ignores. A proof is valid up
to 1e-8, and differences change log det by about 100 times their size in designs of 31 treatments."""


@kernel
def _rows_of_move(sizes, v, b, old, other):
    """Return the rows m and k of P whose difference is e, and a (:mod:`optdesign.runs.rank_two`)."""
    if other == b:
        return v + b, old, 1.0 - 1.0 / sizes[b]
    return v + b, v + other, -1.0 / sizes[b] - 1.0 / sizes[other]


@kernel
def _price(sizes, s, b, old, other, t):
    """Return the factor of det C if a run of block b goes from treatment old to t.

    If ``other`` is another block, one of its runs goes from t to old.
    """
    m, k, a = _rows_of_move(sizes, len(s) - len(sizes), b, old, other)
    ee = s[k, k] + s[m, m] - 2.0 * s[k, m]
    ed = s[k, t] - s[k, old] - s[m, t] + s[m, old]
    return det_ratio(ee, ed, s[t, t] + s[old, old] - 2.0 * s[t, old], a)


@kernel
def _shift(s, m, t, old, scale):
    """Add scale times the difference of the rows t and old to row m of P. Updates s in place."""
    for j in range(len(s)):
        s[m, j] += scale * (s[t, j] - s[old, j])
    for i in range(len(s)):
        s[i, m] += scale * (s[i, t] - s[i, old])


@kernel
def _move(sizes, s, b, old, other, t):
    """Apply the move that ``_price`` prices. Updates s in place."""
    m, k, a = _rows_of_move(sizes, len(s) - len(sizes), b, old, other)
    e, d = np.empty(len(s)), np.empty(len(s))
    for i in range(len(s)):
        e[i], d[i] = s[i, k] - s[i, m], s[i, t] - s[i, old]
    update(s, e, d, e[k] - e[m], e[t] - e[old], d[t] - d[old], a)
    _shift(s, m, t, old, 1.0 / sizes[b])
    if other != b:
        _shift(s, k, old, t, 1.0 / sizes[other])


@kernel
def _climb(block, sizes, treatments, s, place, log_det, most):
    """Visit runs until no move gains, or for some work, or until a refresh is due.

    Returns the work; overwrites the state.
    """
    n, v = len(treatments), len(s) - len(sizes)
    work = 0.0
    while place[IDLE] < n and place[CHANGES] < REFRESH and work <= most:
        r = place[ROW]
        b, old = block[r], treatments[r]
        best, to, gain = -1, -1, 1.0
        for t in range(v):
            value = _price(sizes, s, b, old, b, t)
            if value > gain + MOVE_GAIN:
                to, gain = t, value
        for q in range(n):
            if block[q] != b and treatments[q] != old:
                value = _price(sizes, s, b, old, block[q], treatments[q])
                if value > gain + MOVE_GAIN:
                    best, to, gain = q, treatments[q], value
        if to >= 0:
            _move(sizes, s, b, old, block[best] if best >= 0 else b, to)
            treatments[r] = to
            if best >= 0:
                treatments[best] = old
            log_det[0] += math.log(gain)
            place[CHANGES] += 1
            place[IDLE] = 0
            work += 4.0 * len(s) * len(s)
        else:
            place[IDLE] += 1
        place[ROW] = r + 1 if r + 1 < n else 0
        work += PRICE * (v + n)
    return work


@kernel
def _perturb(block, sizes, treatments, s, place, log_det, draws):
    """Move runs at random, by two draws from [0, 1) each. Overwrites the state.

    A run changes places with a run of another block, or changes its treatment if the other is of its block.
    """
    n, v = len(treatments), len(s) - len(sizes)
    for k in range(len(draws)):
        r, q = min(int(draws[k, 0] * n), n - 1), min(int(draws[k, 1] * (n + 1)), n)
        b, old = block[r], treatments[r]
        swap = q < n and block[q] != b
        t = treatments[q] if swap else min(int((draws[k, 1] * n - int(draws[k, 1] * n)) * v), v - 1)
        ratio = _price(sizes, s, b, old, block[q] if swap else b, t)
        if ratio > SAFE and t != old:
            _move(sizes, s, b, old, block[q] if swap else b, t)
            treatments[r] = t
            if swap:
                treatments[q] = old
            log_det[0] += math.log(ratio)
            place[CHANGES] += 1
    place[IDLE] = 0
