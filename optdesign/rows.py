"""The numbers that solvers and certificates read: the candidates, or their coordinates where those lose
digits.

A coordinate x_n' T_k computed term by term has an error of gamma(d) |x_n|' |T_k|
(:mod:`optdesign.compensated`). Mostly that is nothing. But where candidates are nearly parallel, or where
large ones hide the direction that small ones or small budgets carry, the terms cancel, and the error would
count as information. There the coordinates of all candidates are computed once by compensated products and
kept: N x r numbers, each as good as if it had been computed in twice the precision.

Either way :class:`Rows` says how far its numbers may be from the exact ones, and that is all that a proof
needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optdesign._kernel import kernel
from optdesign.compensated import UNIT, gamma, two_product, two_sum

if TYPE_CHECKING:
    from optdesign.problem import DesignProblem

CANCELLATION = 2.0**-36
"""Errors of coordinates above this, where pivots are unit vectors, call for compensated products."""


class Rows(NamedTuple):
    """Numbers x and maps T: coordinates are ``x[n] @ maps[b]``. Bounds hold after times sqrt(budget)."""

    x: np.ndarray
    maps: np.ndarray
    reach: np.ndarray
    """Bound on |x_nj| in every block and column."""
    error: np.ndarray
    """Bound on how far x_nj may be from the exact number."""

    @property
    def rounding(self) -> np.ndarray:
        """Bound, by block and column j, so that any sum_j a_j x_nj is computed to sum_j |a_j| rounding_j."""
        # Two more roundings: of the entries of a that are products, and of the sum over j that uses this.
        return (1.0 + gamma(8)) * (self.error + gamma(self.x.shape[1] + 2) * self.reach)


def given_rows(problem: DesignProblem) -> Rows:
    """The candidates as they are."""
    reach = np.sqrt(problem.budgets.max()) * problem.peaks
    return Rows(problem.candidates, problem.span.maps, reach, np.zeros_like(reach))


def refined_rows(problem: DesignProblem) -> Rows:
    """The coordinates of all candidates by compensated products; their own map is the identity."""
    x, maps = problem.candidates, problem.span.maps
    n, width = len(x), maps.shape[2]
    t, reach = np.empty((n, width)), np.zeros((problem.n_blocks, width))
    root = np.sqrt(problem.budgets)
    write_refined(x, problem.blocks, np.arange(n), maps, t)
    _raise_reach(t, problem.blocks, problem.groups, root, reach)
    reach *= 1.0 + gamma(4)
    lost = gamma(x.shape[1] + 1) ** 2 * largest_terms(given_rows(problem))
    identity = np.broadcast_to(np.eye(width), (problem.n_blocks, width, width))
    return Rows(t, np.ascontiguousarray(identity), reach, 2 * UNIT * reach + lost)


def working_rows(problem: DesignProblem) -> Rows:
    """The candidates, or their coordinates where products with the maps would lose too much."""
    rows = given_rows(problem)
    lost = gamma(problem.dim) * largest_terms(rows).max()
    return rows if lost <= CANCELLATION else problem.refined


def largest_terms(rows: Rows) -> np.ndarray:
    """Bound on sum_j |x_nj| |T_jk| in every block and column k."""
    return np.einsum("bj,bjk->bk", rows.reach, np.abs(rows.maps))


def log_volume(problem: DesignProblem) -> float:
    """What turns log det in coordinates into log Det of the candidates, summed over blocks.

    With P the pivots of a block times the roots of their budgets, and U in the coordinates x @ T, the
    candidates' information is P' (P T)^-T U (P T)^-1 P. So log Det adds log det(P P') - 2 log |det(P T)|.
    """
    pivots, ranks, width = problem.span.pivots, problem.ranks, problem.span.maps.shape[2]
    root = np.sqrt(problem.budgets)
    total = _log_gram(problem.candidates, problem.groups, root, pivots, ranks)
    used = np.arange(width) < ranks[:, None]
    rows = pivots[:, :width][used]
    unit = np.zeros((problem.n_blocks, width, width))
    unit[:] = np.eye(width)
    z = np.empty((len(rows), width))
    write_refined(problem.candidates, problem.blocks, rows, problem.span.maps, z)
    unit[used] = z * root[problem.groups[rows]][:, None]
    return total - 2.0 * float(np.linalg.slogdet(unit)[1].sum())


@kernel
def write_coordinates(x, blocks, rows, maps, out):
    """Overwrite out with the coordinates ``x_n @ maps[block of n]`` of some candidates."""
    for i in range(len(rows)):
        n = rows[i]
        b = blocks[n]
        for k in range(maps.shape[2]):
            t = 0.0
            for j in range(x.shape[1]):
                t += x[n, j] * maps[b, j, k]
            out[i, k] = t


@kernel
def write_refined(x, blocks, rows, maps, out):
    """Overwrite out with the coordinates ``x_n @ maps[block of n]``, by compensated products."""
    for i in range(len(rows)):
        n = rows[i]
        b = blocks[n]
        for k in range(maps.shape[2]):
            t, low = 0.0, 0.0
            for j in range(x.shape[1]):
                p, e = two_product(np.float64(x[n, j]), maps[b, j, k])
                t, f = two_sum(t, p)
                low += e + f
            out[i, k] = t + low


@kernel
def _raise_reach(t, blocks, groups, root, reach):
    """Raise reach[b, k] to the largest root |t_nk| of block b."""
    for n in range(len(t)):
        for k in range(t.shape[1]):
            reach[blocks[n], k] = max(reach[blocks[n], k], root[groups[n]] * abs(t[n, k]))


@kernel
def _log_gram(x, groups, row_scale, pivots, ranks):
    """Sum over blocks of log det(P P'), P the pivots times their row scales.

    Gauss-Jordan elimination with pivots p_k on columns J gives P_J^-1 P = [I W], so that
    det(P P') = det(P_J)^2 det(I + W W'); the units of the columns cost no digits.
    """
    d = x.shape[1]
    total = 0.0
    for b in range(len(ranks)):
        r = ranks[b]
        p = np.empty((r, d))
        for k in range(r):
            for j in range(d):
                p[k, j] = x[pivots[b, k], j]
            total += 2.0 * np.log(row_scale[groups[pivots[b, k]]])
        used = np.zeros(d, np.bool_)
        for k in range(r):
            c = -1
            for j in range(d):
                if not used[j] and (c < 0 or abs(p[k, j]) > abs(p[k, c])):
                    c = j
            used[c] = True
            pivot = p[k, c]
            total += 2.0 * np.log(abs(pivot))
            for j in range(d):
                p[k, j] /= pivot
            for i in range(r):
                if i != k:
                    factor = p[i, c]
                    for j in range(d):
                        p[i, j] -= factor * p[k, j]
        gram = np.eye(r)
        for i in range(r):
            for m in range(i + 1):
                for j in range(d):
                    if not used[j]:
                        gram[i, m] += p[i, j] * p[m, j]
        # Plain elimination: the matrix is the identity plus a sum of squares.
        for k in range(r):
            total += np.log(gram[k, k])
            for i in range(k + 1, r):
                factor = gram[i, k] / gram[k, k]
                for m in range(k + 1, i + 1):
                    gram[i, m] -= factor * gram[m, k]
    return total
