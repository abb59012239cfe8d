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

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.starts) - 1

    @property
    def rank(self) -> int:
        """D, the sum of the ranks."""
        return int(self.ranks.sum())

    def restrict(self, weights: np.ndarray, problem: DesignProblem) -> np.ndarray:
        """Return the shares u of the rows from the weights of the candidates."""
        return weights[self.order] / self._budgets(problem)

    def extend(self, u: np.ndarray, problem: DesignProblem, weights: np.ndarray) -> None:
        """Overwrite the weights of the rows with those of the shares u; others are left as they are."""
        weights[self.order] = u * self._budgets(problem)

    def _budgets(self, problem: DesignProblem) -> np.ndarray:
        """Return the budget of the group of every row."""
        return np.repeat(problem.budgets, np.diff(self.starts))


def reduce(problem: DesignProblem, rows: np.ndarray | None = None) -> Reduced:
    """Reduce a problem, or the part of it made of some candidates (sorted, one or more a group)."""
    order = np.arange(problem.n_candidates) if rows is None else rows
    order = order[np.argsort(problem.groups[order], kind="stable")]
    sizes = np.bincount(problem.groups[order], minlength=problem.n_groups)
    z = coordinates(problem, order, problem.rows)
    z *= np.sqrt(np.repeat(problem.budgets, sizes))[:, None]
    blocks = read_only(problem.parameter_blocks[order])
    return Reduced(z, blocks, np.append(0, np.cumsum(sizes)), problem.ranks, order)
