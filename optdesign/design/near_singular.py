"""Coordinates for weights whose information is nearly singular although their support has full rank.

The information squares the condition of the weighted candidates, so its Cholesky factor exists in double
precision for conditions up to about 1e7. Weights of a larger condition are mapped to coordinates in which
their candidates are nearly orthonormal: A_1 = A_0 R^-1, with R from a QR factorisation of the weighted
coordinates x_n' A_0. Any A_1 is valid in a certificate, so the rounding of R does not matter. The coordinates
x_n' A_1 are computed by compensated products, and so each attempt resolves a condition that is larger by a
factor of 2^53, up to about 1e30, the limit of compensated products (the method of Rump, Japan J. Indust.
Appl. Math. 26, 2009, for inverses of ill-conditioned matrices).

The determinant of such a map needs more digits than the coordinates: with P the pivots of a block, the
condition of P A_k is that of the weighted candidates. It is computed in decimal arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, localcontext
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from optdesign.numbers.roundoff import UNIT, gamma
from optdesign.problem.coordinates import write_refined
from optdesign.problem.decimals import decimals, log_abs_det
from optdesign.problem.exact_rank import rank_of
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only


class Maps(NamedTuple):
    """Number of the maps that are tried, and accuracy of their determinants."""

    most: int = 4
    """Maps that are tried before weights are taken to be singular."""
    products: int = 2_000_000
    """Products of decimals of the determinants, about 1 s, up to which a block is tried more than once. The
    determinant after one map is accurate in twice the precision as well."""
    digits: int = 150
    """Decimal digits of determinants; conditions of maps are below 1e70."""


MAPS = Maps()


def attempts(problem: DesignProblem) -> int:
    """Return the number of maps to try."""
    return MAPS.most if problem.dim * int(problem.ranks @ problem.ranks) <= MAPS.products else 1


def spans(problem: DesignProblem, support: np.ndarray) -> bool:
    """Return True if some candidates have the rank of every block in exact arithmetic."""
    blocks, few = problem.parameter_blocks[support], 2 * problem.dim
    return all(
        any(rank_of(problem.source.take(own[:n])) >= problem.ranks[b] for n in (few, len(own)))
        for b, own in ((b, support[blocks == b]) for b in np.flatnonzero(problem.ranks))
    )


def nearly_white(problem: DesignProblem, maps: np.ndarray, support: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return maps under which the weighted candidates of a support are orthonormal but for round-off."""
    maps = maps.copy()
    for b, _, own in _weighted(problem, maps, support, w):
        r = own.shape[1]
        scale = np.abs(own).max(axis=0, initial=0.0)
        if not np.all((scale > 0.0) & (scale < np.inf)):
            continue
        own /= scale
        # With long rows first and columns pivoted, errors are relative to every row (Cox and Higham, 1998).
        own = own[np.argsort(-np.abs(own).max(axis=1), kind="stable")]
        factor, pivots = qr(own, mode="r", pivoting=True)
        factor = factor[:r]
        diagonal = np.diag_indices(r)
        factor[diagonal] = np.where(factor[diagonal] < 0, -1, 1) * np.maximum(np.abs(factor[diagonal]), UNIT)
        whole = maps[b, :, pivots] / scale[pivots, None]
        maps[b, :, :r] = solve_triangular(factor, whole, trans="T").T
    return maps


def log_det_change(problem: DesignProblem, maps: np.ndarray) -> float:
    """Return log det in the coordinates of the problem less that in coordinates of other maps.

    For the pivots P of a block and maps A and B this is log |det(P A)|^2 - log |det(P B)|^2.
    """
    total = 0.0
    with localcontext(Context(prec=MAPS.digits)):
        for b in np.flatnonzero(problem.ranks):
            p, r = decimals(problem.pivots_of(int(b))), problem.ranks[b]
            one, other = (p @ decimals(t[b, :, :r]) for t in (problem.span.maps, maps))
            total += 2.0 * (log_abs_det(one) - log_abs_det(other))
    return total


def rounding_of(problem: DesignProblem, maps: np.ndarray, support: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return bounds on the root of sum_n w_n e_nk^2, e_nk the error of a coordinate, by block and column.

    The coordinates are those of :func:`optdesign.problem.coordinates.refined_rows`, and products with them
    are included. By Minkowski's inequality the bounds of columns add up, as those of ``Rows.rounding`` do.
    """
    out = np.zeros((len(maps), maps.shape[2]))
    for b, x, own in _weighted(problem, maps, support, w):
        r = own.shape[1]
        reach, terms = (np.linalg.norm(part, axis=0) for part in (own, np.abs(x) @ np.abs(maps[b, :, :r])))
        lost = 2 * UNIT * reach + gamma(problem.dim + 1) ** 2 * terms
        out[b, :r] = (1 + gamma(len(own) + 16)) * (lost + gamma(maps.shape[2] + 8) * (reach + lost))
    return out


def _weighted(
    problem: DesignProblem, maps: np.ndarray, support: np.ndarray, w: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield the blocks, with candidates and coordinates of the support times the roots of their weights."""
    blocks, root = problem.parameter_blocks[support], np.sqrt(w)[:, None]
    x = problem.source.take(support)
    t = np.empty((len(support), maps.shape[2]))
    write_refined(read_only(x), read_only(blocks), read_only(maps.copy()), t)
    for b in np.flatnonzero(problem.ranks):
        own = blocks == b
        yield int(b), root[own] * x[own], root[own] * t[own, : problem.ranks[b]]
