"""Vertices of the designs with the information and budgets of a given one.

By Caratheodory's argument: as long as more than n_groups + Q candidates have weight, some direction changes
neither information nor budgets; a step along it until a weight is zero leaves one candidate less. For very
many candidates this is done with clusters of them first (Maalouf, Jubran and Feldman, 2019): candidates of a
group are merged, clusters take the place of candidates, and those that keep weight are split again. The
change of the information by round-off is corrected at the end by least squares on the remaining candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from optdesign.algebra.blocks import entries
from optdesign.algebra.passes import by_block, coordinates
from optdesign.errors import InputError
from optdesign.problem.coordinates import Rows
from optdesign.problem.problem import DesignProblem

NULL = 1e-11
"""A direction changes the information if a step of the size of the weights changes it by this fraction."""

SAME_RTOL = 1e-9
"""Largest change of the information (Frobenius norm) in the coordinates that make it the identity."""


class Columns(NamedTuple):
    """Columns of the equations that belong to some candidates."""

    phi: np.ndarray
    """Entries of y y', (n, Q); those off the diagonal times sqrt(2)."""
    groups: np.ndarray


def columns_of(problem: DesignProblem, white: Rows, rows: np.ndarray) -> Columns:
    """Return the columns of some candidates, in coordinates in which the information is the identity."""
    y = coordinates(problem, rows, white)
    first = np.concatenate([[0], np.cumsum(entries(problem.ranks))])
    phi = np.zeros((len(rows), int(first[-1])))
    for b, at in by_block(problem, rows):
        i, j = np.tril_indices(problem.ranks[b])
        products = np.where(i == j, 1.0, np.sqrt(2.0)) * y[np.ix_(at, i)] * y[np.ix_(at, j)]
        phi[at, first[b] : first[b + 1]] = products
    return Columns(phi, problem.groups[rows])


def thin_out(problem: DesignProblem, white: Rows, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weights of the same information, zero for all but n_groups + Q of the rows.

    The weights given are returned if round-off leaves no other with that information.
    """
    columns = columns_of(problem, white, rows)
    live = np.argsort(columns.groups, kind="stable")
    phi, groups, w = columns.phi[live], columns.groups[live], weights[live]
    clusters = 3  # clusters per round, as a multiple of Q: a third of them keep weight
    while True:
        start, size = _clusters(groups, clusters * phi.shape[1])
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
    budgets = np.bincount(columns.groups, weights=weights)
    thin = corrected(columns, out, weights @ columns.phi, budgets)
    return weights if thin is None else thin


def _clusters(groups: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the starts and sizes of clusters of candidates, whose groups are sorted.

    A cluster has candidates of one group. A group has as many clusters as its share of the candidates that
    may be dropped, and one at least. If there are few candidates, each is a cluster.
    """
    first = np.flatnonzero(np.diff(groups, prepend=-1))
    size = np.diff(np.append(first, len(groups)))
    spare = np.cumsum(size - 1)
    parts = 1 + np.diff(spare * min(most, spare[-1]) // max(spare[-1], 1), prepend=0)
    place = np.arange(len(groups)) - np.repeat(first, size)
    label = place * np.repeat(parts, size) // np.repeat(size, size)
    start = np.flatnonzero((np.diff(label, prepend=-1) != 0) | (np.diff(groups, prepend=-1) != 0))
    return start, np.diff(np.append(start, len(groups)))


def heaviest_first(groups: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the heaviest candidate of every group, the others, and the heaviest in the group of each other.

    Weight moves within groups if the heaviest candidate takes the opposite of the changes of the others.
    """
    order = np.lexsort((-w, groups))
    starts = np.diff(groups[order], prepend=-1) != 0
    heaviest, others = order[starts], np.sort(order[~starts])
    return heaviest, others, heaviest[np.searchsorted(groups[heaviest], groups[others])]


def _vertex(phi: np.ndarray, groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return weights with the same sums of phi and of every group, as many zero as these equations allow.

    Directions are relative to the weights: an entry z_n changes w_n by the fraction z_n. So the size of a row
    does not matter, and a direction that changes the information by less than NULL counts as one that does
    not change it.
    """
    several = np.bincount(groups)[groups] > 1
    if several.any() and not several.all():
        out = weights.copy()
        out[several] = _vertex(phi[several], groups[several], weights[several])
        return out
    _, others, at = heaviest_first(groups, weights)
    q, r, _ = qr(weights[others, None] * (phi[others] - phi[at]), pivoting=True)
    rank = int(np.sum(np.abs(np.diag(r)) > NULL))
    z = np.zeros((len(groups), q.shape[1] - rank))
    z[others] = q[:, rank:]
    np.subtract.at(z, at, (weights[others] / weights[at])[:, None] * q[:, rank:])
    x = np.ones(len(groups))
    while z.shape[1]:
        direction = z[:, 0]
        gone, step = _blocking(x, direction)
        x += step * direction
        x[gone] = 0.0
        np.maximum(x, 0.0, out=x)
        # A reflection of the columns leaves all but the first without an entry at the candidate that is gone.
        v = z[gone].copy()
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        z = (z - np.outer(z @ v, 2.0 * v / (v @ v)))[:, 1:]
        z[gone] = 0.0
    return weights * x


def _blocking(w: np.ndarray, direction: np.ndarray) -> tuple[int, float]:
    """Return the candidate whose weight is first zero along a direction, and the step to it.

    A step forwards and a step backwards each end at one candidate. The candidate with the larger entry of the
    direction is taken.
    """
    live = np.flatnonzero((w > 0) & (np.abs(direction) > NULL * np.abs(direction).max()))
    ratio = w[live] / direction[live]
    sides = [np.flatnonzero(side) for side in (ratio > 0, ratio < 0)]
    found = [live[side[np.argmin(np.abs(ratio[side]))]] for side in sides if len(side)]
    if not found:
        value, remedy = "no step changes them in double precision", "Keep the weights as they are."
        raise InputError("result", "must have weights that can be changed", value, remedy)
    at = max(found, key=lambda n: abs(direction[n]))
    return int(at), float(-w[at] / direction[at])


def corrected(columns: Columns, w: np.ndarray, target: np.ndarray, budgets: np.ndarray) -> np.ndarray | None:
    """Return weights w with the target information and budgets restored by least squares.

    No zero weight becomes positive. Returned is None if information or budgets differ by more than SAME_RTOL.
    """
    live = np.flatnonzero(w)
    phi, groups, w = columns.phi[live], columns.groups[live], w[live]
    corrections = 3  # least-squares steps that correct round-off
    for _ in range(corrections):
        heaviest, others, at = heaviest_first(groups, w)
        missing = budgets - np.bincount(groups, weights=w, minlength=len(budgets))
        w[heaviest] += missing[groups[heaviest]]
        relative = w[others, None] * (phi[others] - phi[at])
        step = w[others] * np.linalg.lstsq(relative.T, target - w @ phi, rcond=None)[0]
        w[others] += step
        np.subtract.at(w, at, step)
        w = np.maximum(w, 0.0)
    missing = budgets - np.bincount(groups, weights=w, minlength=len(budgets))
    if not (np.linalg.norm(target - w @ phi) <= SAME_RTOL and np.all(np.abs(missing) <= SAME_RTOL * budgets)):
        return None
    out = np.zeros(len(columns.groups))
    out[live] = w
    return out
