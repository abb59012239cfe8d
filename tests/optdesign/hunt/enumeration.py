"""Whole runs by full enumeration: which numbers of runs keep the rank, and the best count vector."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from math import comb

import numpy as np
from flint import arb, fmpz, fmpz_mat

from hunt.truth import Instance, Truth, pivots, rank

MOST = 3000
"""Count vectors that are enumerated, at most."""


def largest_rank(problem: Instance) -> int:
    """Return the largest rank that runs within the budgets can have.

    Independent rows and rows within the budgets are the independent sets of two matroids. By Edmonds' theorem
    the largest common one has as many elements as the minimum, over sets S of groups, of the rank of the
    candidates in S plus the runs of the other groups.
    """
    groups = range(len(problem.budgets))
    best = np.inf
    for size in range(len(groups) + 1):
        for chosen in combinations(groups, size):
            inside = np.isin(problem.groups, chosen)
            spanned = sum(
                rank(problem.x[inside & (problem.blocks == b)]) for b in set(problem.blocks.tolist())
            )
            others = sum(problem.budgets[i] for i in groups if i not in chosen)
            best = min(best, spanned + others)
    return int(best)


def n_counts(problem: Instance) -> int:
    """Return the number of count vectors that meet the budgets."""
    total = 1
    for i, runs in enumerate(problem.budgets):
        n = int(np.sum(problem.groups == i))
        total *= comb(n + int(runs) - 1, int(runs))
    return total


def best_gain(truth: Truth, counts: np.ndarray) -> arb:
    """Return log det of the best count vector less that of the given counts, over all count vectors."""
    problem = truth.problem
    rows, blocks = _integers(truth), []
    for b, r in enumerate(truth.ranks):
        if r:
            own = np.flatnonzero(problem.blocks == b).tolist()
            columns = pivots([rows[n] for n in own])
            blocks.append((own, [[rows[n][j] for j in columns] for n in own]))

    def determinant(c: list[int]) -> fmpz:
        value = fmpz(1)
        for own, x in blocks:
            r = len(x[0])
            u = [[0] * r for _ in range(r)]
            for n, row in zip(own, x, strict=True):
                if c[n]:
                    for i in range(r):
                        for j in range(r):
                            u[i][j] += c[n] * row[i] * row[j]
            value *= fmpz_mat(u).det()
        return value

    best = max(determinant(c) for c in _all_counts(problem))
    return arb(best).log() - arb(determinant(counts.tolist())).log()


def _integers(truth: Truth) -> list[list[int]]:
    """Return the candidates times one power of 2, as integers."""
    ratios = [[float(v).as_integer_ratio() for v in row] for row in truth.problem.x]
    common = max(denominator for row in ratios for _, denominator in row)
    return [[a * (common // b) for a, b in row] for row in ratios]


def _all_counts(problem: Instance) -> Iterator[list[int]]:
    members = [np.flatnonzero(problem.groups == i).tolist() for i in range(len(problem.budgets))]
    parts = [list(_compositions(int(f), len(m))) for f, m in zip(problem.budgets, members, strict=True)]
    for chosen in product(*parts):
        out = [0] * len(problem.x)
        for rows, part in zip(members, chosen, strict=True):
            for n, c in zip(rows, part, strict=True):
                out[n] = c
        yield out


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
