"""Moves of the search on any list of candidates: exchange of whole runs within groups."""

from __future__ import annotations

import math

import numpy as np

from optdesign.design.result import DesignResult
from optdesign.runs.exchange import (
    PASS,
    State,
    climb,
    lay_out,
    passes_of,
    perturb,
    promising,
    refreshed,
    state_of,
)
from optdesign.runs.rank_basis import basis
from optdesign.runs.rank_two import IDLE

PERTURBATION = 3
"""Runs that a perturbation moves."""


class ListMoves:
    """Exchanges of single runs of listed candidates."""

    name, bound = "exchange", math.inf

    def __init__(self, best: DesignResult, runs: np.ndarray, first: np.ndarray | None) -> None:
        problem = best.problem
        kept = np.zeros(problem.n_candidates, np.int64)
        kept[basis(problem, runs, best.weights, proved=not best.gap < np.inf)] = 1
        used = kept if first is None else kept + first
        self.board, self.order = lay_out(problem, promising(problem, best.variances, used, best.weights))
        self.weights, self.runs, self.n_candidates = best.weights[self.order], runs, problem.n_candidates
        self.kept = kept[self.order]
        self.reach = float(state_of(self.board, self.weights).log_det[0])
        # Perturbations in a row without a gain that end a try; fewer if they are expensive.
        work = len(self.order) * self.board.z.shape[1] * float(runs.sum())
        self.patience = int(np.clip(2e9 / (work + 1), 1, 200))

    def start(self, rng: np.random.Generator) -> State:
        """Return runs drawn from the weights: a basis, whole parts, and the rest by chance."""
        counts, at = self.kept.copy(), self.board.at
        for i, (lo, hi) in enumerate(zip(at[:, 0], at[:, -1], strict=True)):
            counts[lo:hi] += _drawn(self.weights[lo:hi], counts[lo:hi], int(self.runs[i]), rng)
        return state_of(self.board, counts)

    def spanning(self) -> State:
        """Return a start without chance."""
        return self.start(np.random.default_rng(0))

    def of(self, counts: np.ndarray) -> State:
        """Return the state of given runs."""
        return state_of(self.board, counts[self.order])

    def refresh(self, state: State) -> float:
        """Recompute a state. Returns log det."""
        return refreshed(self.board, state)

    def climb(self, state: State, most: float) -> tuple[float, float, bool]:
        """Exchange until none gains, or for some work. Returns log det, the work, and True if complete."""
        used = climb(*self.board, *state, passes_of(self.board, most))
        rows, width = self.board.z.shape
        return float(state.log_det[0]), used * (rows * width + PASS), bool(state.place[IDLE] >= rows)

    def perturb(self, state: State, rng: np.random.Generator) -> None:
        """Move some runs at random."""
        perturb(*self.board, *state[:4], *state[5:], rng.random(2 * PERTURBATION))

    def found(self, state: State) -> np.ndarray:
        """Return the runs of every candidate."""
        counts = np.zeros(self.n_candidates, np.int64)
        counts[self.order] = state.counts
        return counts


def _drawn(weights: np.ndarray, kept: np.ndarray, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Return runs of one group beyond those kept, by systematic sampling from the weights."""
    left = runs - int(kept.sum())
    wanted = np.maximum(weights - kept, 0.0)
    order = rng.permutation(len(weights))
    edges = np.cumsum(wanted[order])
    edges *= left / edges[-1] if edges[-1] > 0 else 0.0
    marks = np.floor(edges + rng.random())
    marks[-1] = left
    marks = np.minimum(marks, left)
    out = np.zeros(len(weights), np.int64)
    out[order] = np.diff(marks, prepend=0.0).astype(np.int64)
    return out
