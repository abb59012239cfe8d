"""The same information on few candidates.

Information and budgets are linear in the weights. So the designs that have the information matrices of a
given one, and its budgets, are the polytope

    { w >= 0 :  sum_{n in b} w_n y_n y_n' = U_b  for every block,   sum_{n in i} w_n = f_i  for every group },

with M + Q equations, Q = sum of r_b (r_b + 1) / 2. A vertex of it has at most M + Q candidates with weight;
all its points have the same log Det, variances and gap. Coordinates are those in which U_b is the identity.

*A vertex*, by Caratheodory's argument: as long as more candidates have weight, some direction changes neither
information nor budgets; going along it until a weight is zero leaves one candidate less. For very many
candidates that is done with clusters of them first (Maalouf, Jubran and Feldman, 2019): candidates of a group
are put together, clusters take the part of candidates, and those that keep weight are split again. What
rounding has moved is put right at the end by least squares on the candidates that are left.

*The cheapest design*, for a cost per candidate, is a linear program over the same polytope, by the dual
simplex method of HiGHS. It starts with such a vertex; the dual prices all other candidates, and those that
are worth it enter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import qr
from scipy.optimize import linprog

from optdesign import clock
from optdesign._kernel import kernel
from optdesign.certificate import settled
from optdesign.information import entries
from optdesign.passes import coordinates
from optdesign.problem import DesignProblem, floats, read_only
from optdesign.result import DesignResult, Status
from optdesign.whitening import whitened

NULL = 1e-11
"""A direction changes the information if it does so by this fraction."""

SAME = 1e-9
"""Largest relative change of the information, in the coordinates that make it the identity."""

CORRECTIONS = 3
"""Least-squares steps that put right what rounding has moved."""

CLUSTERS = 3
"""Clusters a round, as a multiple of Q: a third of them keep weight."""

ENTERING = 2000
"""Most candidates that enter the linear program at a time."""

WORTH = 1e-8
"""And by how much each must be worth it, as a fraction of the largest cost."""


class _Columns(NamedTuple):
    """What the equations say about some candidates."""

    phi: np.ndarray
    """Entries of y y', (n, Q); those off the diagonal times sqrt(2)."""
    groups: np.ndarray


def sparsify(result: DesignResult, cost: ArrayLike | None = None) -> DesignResult:
    """A design with the same information and budgets on at most n_groups + Q candidates.

    Parameters
    ----------
    result : DesignResult
    cost : (N,) array, optional
        Cost of a unit of weight of every candidate. The result is then the cheapest design with the same
        information, among all candidates.

    Returns
    -------
    DesignResult
        With a certificate of its own. Information matrices are equal to 1e-9 of their size.

    Examples
    --------
    >>> import numpy as np, optdesign as od
    >>> angle = 2 * np.pi * np.arange(12) / 12
    >>> p = od.DesignProblem(np.column_stack([np.cos(angle), np.sin(angle)]))
    >>> r = od.solve(p, tol=1e-12)
    >>> s = od.sparsify(r)
    >>> len(s.support) <= p.enough, abs(s.log_det - r.log_det) < 1e-9
    (True, True)
    """
    began = clock.now()
    if not isinstance(result, DesignResult):
        raise TypeError(f"result must be a DesignResult; got {type(result).__name__}. Pass solve(problem).")
    problem = result.problem
    thin = thinned(problem, result.weights, None if cost is None else _checked(problem, cost))
    thin, certificate = settled(problem, thin)
    return replace(
        result,
        weights=read_only(thin),
        certificate=certificate,
        status=result.status if certificate.gap <= result.gap else Status.GIVEN,
        method=f"{result.method}, sparsified",
        seconds=result.seconds + clock.now() - began,
    )


def thinned(problem: DesignProblem, weights: np.ndarray, cost: np.ndarray | None = None) -> np.ndarray:
    """Weights with the same information, on few candidates or at the least cost."""
    support = np.flatnonzero(weights != 0)
    maps, _, log_det = whitened(problem, problem.rows, support, weights[support])
    if log_det.sum() == -np.inf:
        raise ValueError("result must have full rank; its weights lose some. Solve the problem first.")
    out = np.zeros_like(weights)
    if cost is None:
        out[support] = _thinned(problem, maps, support, weights[support])
    else:
        rows, cheap = _cheapest(problem, maps, support, weights[support], cost)
        out[rows] = cheap
    return out


def _checked(problem: DesignProblem, cost: ArrayLike) -> np.ndarray:
    """Costs, one finite number per candidate."""
    out = floats(cost, "cost")
    if out.shape != (problem.n_candidates,):
        raise ValueError(
            f"cost must have one entry per candidate, shape ({problem.n_candidates},); got {out.shape}. "
            "Pass them in the order of the candidates."
        )
    bad = np.flatnonzero(~np.isfinite(out))
    if len(bad):
        raise ValueError(
            f"cost must be finite; cost[{bad[0]}] = {out[bad[0]]}. Drop candidates that cannot be run."
        )
    return out


def _columns(problem: DesignProblem, maps: np.ndarray, rows: np.ndarray) -> _Columns:
    """The equations' columns of some candidates."""
    y = coordinates(problem, rows, problem.rows._replace(maps=maps))
    first = np.concatenate([[0], np.cumsum(entries(problem.ranks))])
    phi = np.zeros((len(rows), int(first[-1])))
    _write_products(y, problem.blocks[rows], problem.ranks, first, phi)
    return _Columns(phi, problem.groups[rows])


def _thinned(problem: DesignProblem, maps: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights of the same information, zero for all but n_groups + Q of the rows."""
    columns = _columns(problem, maps, rows)
    live = np.argsort(columns.groups, kind="stable")
    phi, groups, w = columns.phi[live], columns.groups[live], weights[live]
    while True:
        start, size = _clusters(groups, CLUSTERS * phi.shape[1])
        total = np.add.reduceat(w, start)
        mean = np.add.reduceat(w[:, None] * phi, start) / total[:, None]
        left = _vertex(mean, groups[start], total)
        if len(start) == len(w) or np.all(left > 0):
            break
        keep = np.repeat(left > 0, size)
        w = (w * np.repeat(left / total, size))[keep]
        phi, groups, live = phi[keep], groups[keep], live[keep]
    out = np.zeros_like(weights)
    out[live] = left if len(left) == len(live) else w
    return _corrected(columns, out, weights)


def _clusters(groups: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Where clusters begin, and their sizes; the groups are sorted, and no cluster has candidates of two.

    A group has as many clusters as its share of the candidates that may be left out, and one at least. If all
    of these can be clusters of their own, they are.
    """
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    size = np.diff(np.append(first, len(groups)))
    spare = np.cumsum(size - 1)
    parts = 1 + np.diff(spare * min(most, spare[-1]) // max(spare[-1], 1), prepend=0)
    place = np.arange(len(groups)) - np.repeat(first, size)
    label = place * np.repeat(parts, size) // np.repeat(size, size)
    start = np.flatnonzero((np.diff(label, prepend=-1) != 0) | (np.diff(groups, prepend=-1) != 0))
    return start, np.diff(np.append(start, len(groups)))


def _differences(phi: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first candidate of every group; for each of the others that first, and phi minus its phi."""
    _, first, member = np.unique(groups, return_index=True, return_inverse=True)
    at = np.delete(first[member], first)
    return first, at, np.delete(phi, first, axis=0) - phi[at]


def _vertex(phi: np.ndarray, groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights with the same sums of phi and of every group, as many of them zero as these equations allow."""
    several = np.bincount(groups)[groups] > 1
    if several.any() and not several.all():
        out = weights.copy()
        out[several] = _vertex(phi[several], groups[several], weights[several])
        return out
    first, at, difference = _differences(phi, groups)
    q, r, _ = qr(difference, pivoting=True)
    size = np.abs(np.diag(r))
    rank = int(np.sum(size > NULL * max(1.0, size.max(initial=0.0))))
    z = np.zeros((len(groups), q.shape[1] - rank))
    z[np.setdiff1d(np.arange(len(groups)), first)] = q[:, rank:]
    np.subtract.at(z, at, q[:, rank:])
    w = weights.copy()
    while z.shape[1]:
        direction = z[:, 0]
        gone, step = _blocking(w, direction)
        w += step * direction
        w[gone] = 0.0
        np.maximum(w, 0.0, out=w)
        z = z[:, 1:] - np.outer(direction / direction[gone], z[gone, 1:])
        z[gone] = 0.0
        norm = np.linalg.norm(z, axis=0)
        z = z[:, norm > 0] / norm[norm > 0]
    return w


def _blocking(w: np.ndarray, direction: np.ndarray) -> tuple[int, float]:
    """Where a step along the direction, or against it, first meets zero; of both the larger entry."""
    live = np.flatnonzero((w > 0) & (np.abs(direction) > NULL * np.abs(direction).max()))
    ratio = w[live] / direction[live]
    sides = [np.flatnonzero(side) for side in (ratio > 0, ratio < 0)]
    found = [live[side[np.argmin(np.abs(ratio[side]))]] for side in sides if len(side)]
    at = max(found, key=lambda n: abs(direction[n]))
    return int(at), float(-w[at] / direction[at])


def _corrected(columns: _Columns, w: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Thin weights with what rounding moved put right, or the given ones if that cannot be done."""
    live = np.flatnonzero(w)
    phi, w = columns.phi[live], w[live]
    first, at, difference = _differences(phi, columns.groups[live])
    target = weights @ columns.phi
    missing = np.bincount(columns.groups, weights=weights)
    for _ in range(CORRECTIONS):
        budget = missing - np.bincount(columns.groups[live], weights=w, minlength=len(missing))
        w[first] += budget[columns.groups[live[first]]]
        step = np.linalg.lstsq(difference.T, target - w @ phi, rcond=None)[0]
        w[np.setdiff1d(np.arange(len(w)), first)] += step
        np.subtract.at(w, at, step)
        w = np.maximum(w, 0.0)
    if np.abs(target - w @ phi).max(initial=0.0) > SAME:
        return weights
    out = np.zeros_like(weights)
    out[live] = w
    return out


def _cheapest(
    problem: DesignProblem, maps: np.ndarray, support: np.ndarray, weights: np.ndarray, cost: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Candidates and weights of the cheapest design with the same information."""
    thin = _thinned(problem, maps, support, weights)
    support, weights = support[thin > 0], thin[thin > 0]
    given = _columns(problem, maps, support)
    budgets = np.bincount(given.groups, weights=weights, minlength=problem.n_groups)
    target = np.concatenate([given.phi.T @ weights, budgets])
    rows = support
    while True:
        columns = _columns(problem, maps, rows)
        sums = np.zeros((problem.n_groups, len(rows)))
        sums[columns.groups, np.arange(len(rows))] = 1.0
        found = linprog(cost[rows], A_eq=np.vstack([columns.phi.T, sums]), b_eq=target, method="highs-ds")
        if found.x is None:
            return support, weights
        dual = found.eqlin.marginals
        worth = _prices(problem, maps, dual) - cost
        worth[rows] = -np.inf
        best = np.argsort(-worth)[:ENTERING]
        entering = best[worth[best] > WORTH * max(np.abs(cost).max(), 1e-300)]
        if not len(entering):
            break
        rows = np.union1d(rows, entering)
    full = np.zeros(len(rows))
    full[np.searchsorted(rows, support)] = weights
    return rows, _corrected(columns, np.where(found.x > 0, found.x, 0.0), full)


def _prices(problem: DesignProblem, maps: np.ndarray, dual: np.ndarray) -> np.ndarray:
    """What the equations' prices make of every candidate, a chunk at a time."""
    out = np.empty(problem.n_candidates)
    for start in range(0, problem.n_candidates, 1 << 14):
        rows = np.arange(start, min(start + (1 << 14), problem.n_candidates))
        columns = _columns(problem, maps, rows)
        q = columns.phi.shape[1]
        out[rows] = columns.phi @ dual[:q] + dual[q:][columns.groups]
    return out


@kernel
def _write_products(y, blocks, ranks, first, phi):
    """Overwrite phi, given as zeros, with the entries of y y' on and below the diagonal, block by block."""
    for n in range(len(y)):
        b = blocks[n]
        at = first[b]
        for i in range(ranks[b]):
            for j in range(i):
                phi[n, at] = np.sqrt(2.0) * y[n, i] * y[n, j]
                at += 1
            phi[n, at] = y[n, i] * y[n, i]
            at += 1
