"""The problem as solvers see it: sorted by group, unit budgets, full-rank coordinates.

With z_n = sqrt(f_i) t_n and u_n = w_n / f_i every budget is one, information matrices are unchanged,
and the variances become f_i g_n, so that G is a plain sum of maxima. Solvers need no other case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign._kernel import kernel
from optdesign.passes import coordinates
from optdesign.problem import DesignProblem, read_only


class Reduced(NamedTuple):
    """Arrays handed to kernels; row n belongs to candidate ``order[n]``."""

    z: np.ndarray
    """Scaled coordinates, (N, largest rank), rows of a group adjacent."""
    blocks: np.ndarray
    starts: np.ndarray
    """Group i has the rows starts[i] .. starts[i + 1] - 1."""
    ranks: np.ndarray
    order: np.ndarray | None
    """Candidate of every row; None when rows are candidates in order."""

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
        if self.order is None:
            return weights / problem.budgets[problem.groups]
        return weights[self.order] / problem.budgets[problem.groups[self.order]]

    def extend(self, u: np.ndarray, problem: DesignProblem, weights: np.ndarray) -> None:
        """Overwrite weights with those of the shares u; candidates without a row get zero."""
        if self.order is None:
            np.multiply(u, problem.budgets[problem.groups], out=weights)
        else:
            # One assignment, so that an interrupt finds either the old weights or the new.
            new = np.zeros(problem.n_candidates)
            new[self.order] = u * problem.budgets[problem.groups[self.order]]
            weights[:] = new


def reduce(problem: DesignProblem, rows: np.ndarray | None = None) -> Reduced:
    """Reduce a problem, or the part of it made of some candidates (sorted, one or more a group)."""
    groups = problem.groups if rows is None else problem.groups[rows]
    order = rows
    if not _is_sorted(groups):
        by_group = np.argsort(groups, kind="stable")
        order = by_group if rows is None else rows[by_group]
    starts = np.zeros(problem.n_groups + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=problem.n_groups), out=starts[1:])
    some = np.arange(len(groups)) if order is None else order
    z = coordinates(problem, some, problem.rows)
    _scale_rows(z, groups if order is rows else problem.groups[some], np.sqrt(problem.budgets))
    blocks = problem.blocks if order is None else read_only(problem.blocks[order])
    return Reduced(z, blocks, starts, problem.ranks, order)


@kernel
def _scale_rows(z, groups, root):
    """Multiply every row by the root of its group's budget. Overwrites z."""
    for n in range(len(z)):
        scale = root[groups[n]]
        for k in range(z.shape[1]):
            z[n, k] *= scale


@kernel
def _is_sorted(values):
    """Tell whether no value is below the one before."""
    descents = 0
    for n in range(1, len(values)):
        descents += values[n] < values[n - 1]
    return descents == 0
