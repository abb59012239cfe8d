"""The problem as solvers see it: sorted by group, unit budgets, full-rank coordinates.

With z_n = sqrt(f_i) t_n and u_n = w_n / f_i every budget is one, information matrices are unchanged,
and the variances become f_i g_n, so that G is a plain sum of maxima. Solvers need no other case.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from optdesign.algebra.passes import coordinates
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.runtime import threads
from optdesign.runtime.jit import kernel
from optdesign.runtime.limits import undisturbed


class Reduced(NamedTuple):
    """Arrays handed to kernels; row n belongs to candidate ``order[n]``."""

    z: np.ndarray
    """Scaled coordinates, (N, largest rank), rows of a group adjacent."""
    blocks: np.ndarray
    starts: np.ndarray
    """Group i has the rows starts[i] .. starts[i + 1] - 1."""
    ranks: np.ndarray
    order: np.ndarray
    """Candidate of every row."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.starts) - 1

    @property
    def rank(self) -> int:
        """D, the sum of the ranks."""
        return int(self.ranks.sum())

    def restrict(self, weights: np.ndarray, problem: DesignProblem) -> np.ndarray:
        """Shares u of the rows from the weights of the candidates."""
        out = np.empty(len(self.order))
        self._each(lambda i, j: _restrict(self.order, self.starts, problem.budgets, weights, out, i, j))
        return out

    def extend(self, u: np.ndarray, problem: DesignProblem, weights: np.ndarray) -> None:
        """Overwrite the weights of the rows with those of the shares u; others are left as they are."""
        with undisturbed():  # an interrupt finds either the old weights or the new
            self._each(lambda i, j: _extend(self.order, self.starts, problem.budgets, u, weights, i, j))

    def _each(self, work: Callable[[int, int], None]) -> None:
        """Work on the groups first .. last - 1, in pieces."""
        threads.each(work, self.n_groups, max(1, threads.PIECE * self.n_groups // len(self.order)))


def reduce(problem: DesignProblem, rows: np.ndarray | None = None) -> Reduced:
    """Reduce a problem, or the part of it made of some candidates (sorted, one or more a group)."""
    order = np.arange(problem.n_candidates) if rows is None else rows
    groups = problem.groups if rows is None else problem.groups[rows]
    starts = np.zeros(problem.n_groups + 1, np.int64)
    in_order = _write_starts(groups, starts)
    if not in_order:
        order = order[np.argsort(groups, kind="stable")]
    z = coordinates(problem, order, problem.rows)
    _scale_rows(z, starts, problem.budgets)
    blocks = (
        problem.parameter_blocks if rows is None and in_order else read_only(problem.parameter_blocks[order])
    )
    return Reduced(z, blocks, starts, problem.ranks, order)


@kernel
def _scale_rows(z, starts, budgets):
    """Multiply every row by the root of its group's budget. Overwrites z."""
    for i in range(len(budgets)):
        root = math.sqrt(budgets[i])
        if root != 1.0:
            for n in range(starts[i], starts[i + 1]):
                for k in range(z.shape[1]):
                    z[n, k] *= root


@kernel
def _restrict(order, starts, budgets, weights, out, first, last):
    """Overwrite out with the shares of the rows of the groups first .. last - 1."""
    for i in range(first, last):
        for n in range(starts[i], starts[i + 1]):
            out[n] = weights[order[n]] / budgets[i]


@kernel
def _extend(order, starts, budgets, u, weights, first, last):
    """Overwrite the weights of the rows of the groups first .. last - 1."""
    for i in range(first, last):
        for n in range(starts[i], starts[i + 1]):
            weights[order[n]] = u[n] * budgets[i]


@kernel
def _write_starts(groups, starts):
    """Overwrite starts, given as zeros, with those of the groups' rows, once they are sorted by group.

    Returns whether they are already.
    """
    descents, before = 0, 0
    for n in range(len(groups)):
        i = groups[n]
        starts[i + 1] += 1
        descents += i < before
        before = i
    for i in range(1, len(starts)):
        starts[i] += starts[i - 1]
    return descents == 0
