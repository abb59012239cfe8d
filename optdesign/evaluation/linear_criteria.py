"""Lower bounds on A- and I-efficiency, which need no trust in a solver.

A and I minimise phi(w) = sum_b tr(K_b' U_b^-1 K_b), with U_b the information of parameter block b. K_b is the
identity for A. For I, K_b K_b' is the sum of x x' over the rows of the region in the block, divided by the
number of all rows. For any matrices H_b, (K - U H)' U^-1 (K - U H) is positive semidefinite, so

    phi(w) >= sum_b 2 tr(K_b' H_b) - tr(H_b' U_b H_b) = 2 a - sum_n w_n |H'x_n|^2 >= 2 a - G,
    a = sum_b tr(K_b' H_b),   G = sum_i f_i max_{n in i} |H_b' x_n|^2,

for every design w with budgets f_i. The best multiple of H gives phi(w) >= a^2 / G. With H = U(v)^-1 K of a
design v, a is phi(v), and the bound is phi(v) itself if v is optimal: the equivalence theorem. The bound
holds for any H, so H may be computed with rounding errors.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from optdesign.numbers.roundoff import gamma

BOUND_RTOL = 1e-3
"""Relative distance between the criterion and its bound at which the search for a better H ends."""

MOST_STEPS, MOST_WORK = 1000, 2e9
"""Limits of that search: steps, and multiplications."""


class Block(NamedTuple):
    """A parameter block: its candidates with their groups, and a root K of the criterion."""

    rows: np.ndarray
    groups: np.ndarray
    root: np.ndarray


def largest_of_groups(values: list[np.ndarray], blocks: list[Block], n_groups: int) -> np.ndarray:
    """Return the largest value in every group."""
    out = np.zeros(n_groups)
    for block, own in zip(blocks, values, strict=True):
        np.maximum.at(out, block.groups, own)
    return out


def lower_bound(blocks: list[Block], h: list[np.ndarray], budgets: np.ndarray) -> float:
    """Return a^2 / G for matrices H, less rounding: a lower bound on the criterion of every design."""
    a = slack = 0.0
    lengths = []
    for block, own in zip(blocks, h, strict=True):
        a += float(np.sum(block.root * own))
        slack += gamma(2 * own.size + 4) * float(np.sum(np.abs(block.root * own)))
        parts = np.abs(block.rows @ own) + gamma(len(own) + 2) * (np.abs(block.rows) @ np.abs(own))
        lengths.append(np.sum(parts**2, axis=1))
    g = float(budgets @ largest_of_groups(lengths, blocks, len(budgets)))
    terms = max(own.shape[1] for own in h) + len(budgets) + 16
    a = max(a - slack, 0.0)
    return a * (a / g) * (1 - gamma(terms)) if g > 0 else 0.0  # the square of a could overflow


def criterion(block: Block, weights: np.ndarray, inverse_root: np.ndarray) -> float:
    """Return tr(K' U^-1 K) of weights, plus rounding: an upper bound, inf if none is proved.

    ``inverse_root`` is any matrix A whose S = A'UA is nearly the identity, S = I + E. The criterion is
    tr(K'A S^-1 A'K), at most |A'K|^2 / (1 - |E|).
    """
    used = np.flatnonzero(weights)
    x, w, p = block.rows[used], weights[used], len(inverse_root)
    y, size = x @ inverse_root, np.abs(x) @ np.abs(inverse_root)
    error = np.abs(y.T @ (w[:, None] * y) - np.eye(inverse_root.shape[1]))
    error += gamma(2 * p + len(used) + 8) * (size.T @ (w[:, None] * size) + 1)
    off = float(np.linalg.norm(error))
    if not off < 0.5:
        return math.inf
    part = np.abs(inverse_root.T @ block.root)
    part += gamma(p + 2) * (np.abs(inverse_root.T) @ np.abs(block.root))
    return float(np.sum(part**2)) * (1 + gamma(part.size + 16)) / (1 - off)


def best_lower_bound(blocks: list[Block], budgets: np.ndarray) -> float:
    """Return a lower bound on the criterion of every design, from the multiplicative algorithm.

    It multiplies weights by the root of their derivative |H'x_n|^2 and restores the budgets. The largest
    bound on the way is returned.
    """
    sizes = np.bincount(np.concatenate([b.groups for b in blocks]), minlength=len(budgets))
    share = budgets / np.maximum(sizes, 1)
    weights = [share[b.groups] for b in blocks]
    work = sum(b.rows.shape[0] * b.rows.shape[1] ** 2 for b in blocks)
    # Steps in coordinates of which the information of equal weights is the identity.
    scaled = [np.sqrt(w)[:, None] * b.rows for b, w in zip(blocks, weights, strict=True)]
    maps = [np.asarray(np.linalg.qr(x, mode="r")) for x in scaled]
    rows = [np.linalg.solve(m.T, b.rows.T).T for b, m in zip(blocks, maps, strict=True)]
    roots = [np.linalg.solve(m.T, b.root) for b, m in zip(blocks, maps, strict=True)]
    reached, found = 0.0, None
    for _ in range(int(min(MOST_STEPS, max(20, MOST_WORK / max(work, 1))))):
        try:
            u = [x.T @ (w[:, None] * x) for x, w in zip(rows, weights, strict=True)]
            h = [np.linalg.solve(one, k) for one, k in zip(u, roots, strict=True)]
        except np.linalg.LinAlgError:
            break
        slopes = [np.sum((x @ own) ** 2, axis=1) for x, own in zip(rows, h, strict=True)]
        value = sum(float(np.sum(k * own)) for k, own in zip(roots, h, strict=True))
        bound = value * (value / float(budgets @ largest_of_groups(slopes, blocks, len(budgets))))
        if bound > reached:
            reached, found = bound, h
        if bound >= (1 - BOUND_RTOL) * value:
            break
        weights = [w * np.sqrt(s) for w, s in zip(weights, slopes, strict=True)]
        totals = sum(np.bincount(b.groups, w, len(budgets)) for b, w in zip(blocks, weights, strict=True))
        scale = budgets / np.where(totals > 0, totals, 1.0)
        weights = [w * scale[b.groups] for b, w in zip(blocks, weights, strict=True)]
    if found is None:
        return 0.0
    own = [np.linalg.solve(m, h) for m, h in zip(maps, found, strict=True)]
    return lower_bound(blocks, own, budgets)


def efficiency_bound(
    blocks: list[Block], weights: list[np.ndarray], inverse_roots: list[np.ndarray], budgets: np.ndarray
) -> float:
    """Return a lower bound on phi of the best design on the candidates / phi of the weights.

    Parameters
    ----------
    blocks : list of Block
        Candidates and roots of the criterion.
    weights : list of ndarray
        Weights of the candidates of every block.
    inverse_roots : list of ndarray
        Matrices A with A'UA nearly the identity, one for each block.
    budgets : ndarray
        Sums of the weights of the groups.

    Returns
    -------
    float
        Number between 0 and 1.

    Examples
    --------
    >>> x, w = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([0.5, 0.5])
    >>> block = Block(x, np.zeros(2, int), np.eye(2))
    >>> round(efficiency_bound([block], [w], [np.eye(2)], np.ones(1)), 9)
    1.0
    """
    own = sum(criterion(b, w, a) for b, w, a in zip(blocks, weights, inverse_roots, strict=True))
    if not math.isfinite(own):
        return 0.0
    if own == 0:
        return 1.0
    alone = lower_bound(
        blocks, [a @ (a.T @ b.root) for a, b in zip(inverse_roots, blocks, strict=True)], budgets
    )
    best = alone if alone >= (1 - BOUND_RTOL) * own else max(alone, best_lower_bound(blocks, budgets))
    return min(1.0, best / own * (1 - gamma(8)))
