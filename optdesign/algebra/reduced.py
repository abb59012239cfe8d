"""The problem as solvers see it: sorted by group, unit budgets, full-rank coordinates.

With z_n = sqrt(f_i) t_n and u_n = w_n / f_i every budget is one, information matrices are unchanged,
and the variances become f_i g_n, so that G is a plain sum of maxima. Solvers need no other case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.algebra.passes import coordinates
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only


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
    budgets: np.ndarray
    """Budget of the group of every row."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.starts) - 1

    @property
    def rank(self) -> int:
        """D, the sum of the ranks."""
        return int(self.ranks.sum())

    def restrict(self, weights: np.ndarray) -> np.ndarray:
        """Return the shares u of the rows from the weights of the candidates."""
        return weights[self.order] / self.budgets

    def extend(self, u: np.ndarray, weights: np.ndarray) -> None:
        """Overwrite the weights of the rows with those of the shares u; others are left as they are."""
        weights[self.order] = u * self.budgets


def reduce(problem: DesignProblem, rows: np.ndarray | None = None) -> Reduced:
    """Reduce a problem, or the part of it made of some candidates (sorted, one or more a group)."""
    order = np.arange(problem.n_candidates) if rows is None else rows
    groups = problem.groups[order]
    if (groups[1:] < groups[:-1]).any():
        order = order[np.argsort(groups, kind="stable")]
    starts = np.zeros(problem.n_groups + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=problem.n_groups), out=starts[1:])
    z, budgets = coordinates(problem, order, problem.rows), problem.budgets[problem.groups[order]]
    z *= np.sqrt(budgets)[:, None]
    return Reduced(z, read_only(problem.parameter_blocks[order]), starts, problem.ranks, order, budgets)
