"""Recompute the claims of a design from candidates, weights and budgets.

The arithmetic is that of :mod:`optdesign.verification.exact_arithmetic`.

Every claim of a certificate is compared with its own value: the ranks, log Det, the variances, and then what
follows from them. G, the sum over groups of budget times largest variance, must not exceed what was proved:
the claimed gap is at least G - D and the claimed efficiency at most D / G. The status "converged" requires
that G - D is at most tol * D. The variances of a full design satisfy sum_n w_n g_n = D.

The coordinates, maps and factors of the solvers are not used, and no tolerance is taken from the
design. The only exception is a note: if the problem reports that the rank of a block was taken to be lower
than it is in exact arithmetic, the claims about that block are compared up to the size of the part that was
left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from optdesign.design.feasible import FEASIBILITY_RTOL
from optdesign.design.result import DesignResult
from optdesign.numbers.roundoff import gamma
from optdesign.problem.problem import DesignProblem
from optdesign.verification.exact_arithmetic import Factor, exact_rank, factorise, information


class Limits(NamedTuple):
    """Accuracy and work of an audit."""

    rtol: float = 1e-9
    """Allowed error of doubles without a bound of their own, relative to max(1, size of the quantity)."""
    work: int = 20_000_000
    """Most products of integers for the information of a design, 2 s to 3 s, and as many for variances."""
    decimal: int = 4
    """Products of integers that take as long as one of decimals."""


LIMITS = Limits()

RowsOfBlocks = dict[int, np.ndarray]
"""Candidates by block."""

Factors = dict[int, Factor]
"""Factors of the information by block."""


@dataclass(frozen=True)
class Comparison:
    """One quantity computed in two ways: how far apart it is, and how far apart it may be."""

    name: str
    difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """True if the difference is within what is allowed."""
        return self.difference <= self.tolerance


@dataclass(frozen=True)
class Audit:
    """The claims of a design against exact arithmetic."""

    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]
    """Comparisons that were not possible, or only in part, with the reasons."""
    rows: RowsOfBlocks
    """Candidates of the blocks that were worked out."""
    factors: Factors
    """The information of these blocks."""
    missing: int = 0
    """Blocks for which there was no time."""
    noise: float = 0.0
    """Allowed relative error of claims because of noted ranks."""

    @property
    def wrong(self) -> list[str]:
        """Names of the claims that do not hold."""
        return [c.name for c in self.comparisons if not c.agrees]


def audit(result: DesignResult) -> Audit:
    """Compare every claim of a result with its value in exact arithmetic."""
    problem = result.problem
    w, missed = _weights(problem, result.weights)
    comparisons = [Comparison("weights", missed, FEASIBILITY_RTOL)]
    if result.variances.shape != w.shape:
        comparisons.append(Comparison("variances", np.inf, 0.0))
    if not all(c.agrees for c in comparisons):
        return Audit(tuple(comparisons), (), {}, {})
    rows = _rows_of_blocks(problem)
    ranks, lost, notes, noted = _ranks(problem, w, rows)
    rank = int(ranks.sum())
    comparisons.append(Comparison("rank of the candidates", abs(result.rank - rank), 0.0))
    comparisons.append(Comparison("rank of the design", lost, 0.0))
    if lost or result.gap == math.inf:
        return Audit(tuple(comparisons), tuple(notes), {}, {})
    if result.converged and result.tol is None:
        notes.append("the status was not compared: the design does not record its tolerance.")
    factors = _factors(problem, w, rows, ranks)
    chosen, note = _chosen(result, w, rows, factors)
    notes += note
    doubt = _doubt(problem, rows, factors, chosen)
    left = [_left_out(problem, rows[b], factors[b], chosen) for b in noted if b in factors]
    share, noise, plain = (max(sizes) for sizes in zip((0.0, 0.0, 0.0), *left, strict=True))
    # The part of a candidate outside a noted rank counts as round-off up to this share of its length.
    left_out = 1e-5
    if noted:
        comparisons.append(Comparison("what the noted ranks leave out", share, left_out))
        notes.append(f"that leaves room for relative differences of {noise:.1g} in what is compared.")
    missing = int(np.count_nonzero(ranks)) - len(factors)
    # If log Det may be off by more than this for each dimension, there is nothing to compare.
    log_det_noise = 1e-2
    if missing:
        notes.append(
            f"log Det and variances of {missing} of {np.count_nonzero(ranks)} parameter block(s) were not "
            "computed exactly: too many numbers."
        )
    elif plain > log_det_noise:
        notes.append("log Det was not compared: in these units, what the noted ranks leave out decides it.")
    else:
        log_det = math.fsum(float(f.log_det) for f in factors.values())
        allowed = LIMITS.rtol * max(1.0, abs(log_det)) + (plain + doubt) * rank
        comparisons.append(Comparison("log Det", abs(result.log_det - log_det), allowed))
    own = _variances(problem, rows, factors, chosen)
    comparisons += _compared_variances(result, w, rank, chosen, own, noise, doubt)
    return Audit(tuple(comparisons), tuple(notes), rows, factors, missing, noise)


def _doubt(problem: DesignProblem, rows: RowsOfBlocks, factors: Factors, chosen: np.ndarray) -> float:
    """Return the relative error that round-off of the candidates alone can make in G and log Det.

    If every entry x_nj is off by a relative error of gamma, the whitened vector y_n = A x_n is off by at most
    gamma times the length of |A| |x_n|. With eta the largest such error times sqrt(f_i), over M groups, G
    changes by a fraction of at most 2 eta sqrt(M / G) + 2 eta sqrt(M r) to first order, and r <= G. Nothing
    of this is taken from the design.
    """
    eta, rank = 0.0, 1
    for b, factor in factors.items():
        part = np.intersect1d(rows[b], chosen)
        terms = np.abs(problem.source.take(part)[:, factor.columns]) @ np.abs(factor.inverse())
        sizes = np.sqrt(problem.budgets[problem.groups[part]]) * np.linalg.norm(terms, axis=1)
        eta = max(eta, float(np.max(sizes, initial=0.0)))
        rank = max(rank, len(factor.columns))
    doubt = 4 * gamma(problem.dim + 8) * eta * math.sqrt(problem.n_groups * rank)
    # Largest relative error of log Det and variances that is allowed for round-off in ill-conditioned data.
    most_doubt = 1e-6
    return min(doubt, most_doubt)


def _compared_variances(
    result: DesignResult,
    w: np.ndarray,
    rank: int,
    chosen: np.ndarray,
    own: np.ndarray,
    noise: float,
    doubt: float,
) -> list[Comparison]:
    """Compare the claimed variances with those of the chosen candidates, and the numbers that follow."""
    problem = result.problem
    support = np.flatnonzero(w != 0)
    total = math.fsum(w[support] * result.variances[support])
    largest = np.zeros(problem.n_groups)
    np.maximum.at(largest, problem.groups[chosen], own[chosen])
    g_value = math.fsum(problem.budgets * largest)
    size = max(g_value, rank)
    error = problem.budgets[problem.groups[chosen]] * np.abs(result.variances[chosen] - own[chosen])
    claimed = np.min([result.gap, result.relative_gap * rank, result.g_value - rank])
    truth = rank / g_value if g_value > 0 else math.inf
    allowed = LIMITS.rtol + noise + doubt
    # Allowance where a bound is claimed, relative to its size: budgets are met, and numbers printed, to
    # rounding.
    sharp = 1e-14
    comparisons = [
        Comparison("sum of weight times variance", abs(total - rank), allowed * rank),
        Comparison("variances", float(np.max(error, initial=0.0)), allowed * size),
        Comparison("gap", excess_of(g_value - rank - claimed), (sharp + noise) * size),
        Comparison("efficiency", excess_of(result.efficiency - truth), sharp + noise),
    ]
    if result.converged and result.tol is not None:
        excess = excess_of(g_value - rank - result.tol * rank)
        comparisons.append(Comparison("status", excess, (sharp + noise) * size))
    return comparisons


def _left_out(
    problem: DesignProblem, members: np.ndarray, factor: Factor, chosen: np.ndarray
) -> tuple[float, float, float]:
    """Return the largest share of a candidate outside a claimed rank, and the errors that it allows.

    They are relative to the sizes of the claims: first for claims that do not depend on units, then for log
    Det.
    """
    part = np.intersect1d(members, chosen)
    x = problem.source.take(part)
    informs = x.any(axis=1)
    left = factor.left_out(x[informs])
    part = part[informs]
    root = np.sqrt(problem.budgets[problem.groups[part]])
    # Claims about a block with a noted rank may be off by this many times what is left out, over the shortest
    # axis.
    allowance = 10.0
    noise, plain = (allowance * float(np.max(root * size, initial=0.0)) for size in (left.ratio, left.plain))
    return float(np.max(left.share, initial=0.0)), noise, plain


def excess_of(value: float) -> float:
    """Return the positive part; not a number stays what it is."""
    return 0.0 if value <= 0 else float(value)


def _weights(problem: DesignProblem, weights: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the weights that are certified, and the largest fraction of a budget missed or negative."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (problem.n_candidates,) or not np.all(np.isfinite(w)):
        return w, np.inf
    order = np.argsort(problem.groups, kind="stable")
    ends = np.cumsum(np.bincount(problem.groups, minlength=problem.n_groups))
    negative, w = np.max(-w / problem.budgets[problem.groups]), np.maximum(w, 0.0)
    totals = np.array([math.fsum(part) for part in np.split(w[order], ends[:-1])])
    missed = max(0.0, float(negative), float(np.max(np.abs(totals - problem.budgets) / problem.budgets)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return w * (problem.budgets / totals)[problem.groups], missed


def _rows_of_blocks(problem: DesignProblem) -> RowsOfBlocks:
    """Return the candidates of every block that has any."""
    order = np.argsort(problem.parameter_blocks, kind="stable")
    ends = np.cumsum(np.bincount(problem.parameter_blocks, minlength=problem.n_parameter_blocks))
    parts = np.split(order, ends[:-1])
    return {b: part for b, part in enumerate(parts) if len(part)}


def _ranks(
    problem: DesignProblem, w: np.ndarray, rows: RowsOfBlocks
) -> tuple[np.ndarray, int, list[str], list[int]]:
    """Return the rank of every block, the ranks that the design lacks, notes, and the noted blocks.

    The rank is the exact one, or a lower one if the problem says that it is open to doubt.
    """
    ranks, lost, noted = np.zeros(problem.n_parameter_blocks, np.int64), 0, []
    doubtful = set(problem.doubtful_blocks.tolist())
    for b, members in rows.items():
        x = problem.source.take(members)
        design, ranks[b] = exact_rank(x, np.flatnonzero(w[members]))
        if b in doubtful and problem.ranks[b] < ranks[b]:
            noted.append(b)
            ranks[b] = problem.ranks[b]
        lost += max(0, int(ranks[b]) - design)
    notes = []
    if noted:
        notes.append(
            f"the exact rank of {len(noted)} parameter block(s), the first of them parameter block "
            f"{noted[0]}, is larger than claimed; the problem's rank_note says so, and what exceeds the "
            "claim is taken for rounding."
        )
    return ranks, lost, notes, noted


def _factors(problem: DesignProblem, w: np.ndarray, rows: RowsOfBlocks, ranks: np.ndarray) -> Factors:
    """Return the information of every block for which there is time."""
    factors, work = {}, 0
    for b in sorted(rows, key=lambda b: np.count_nonzero(w[rows[b]])):
        used = rows[b][w[rows[b]] > 0]
        cost = information_work(problem, len(used)) + 4 * LIMITS.decimal * problem.dim**2 * int(ranks[b])
        if ranks[b] == 0 or work + cost > LIMITS.work:
            continue
        work += cost
        if factor := factorise(information(problem.source.take(used), w[used]), int(ranks[b])):
            factors[b] = factor
    return factors


def information_work(problem: DesignProblem, n: int) -> int:
    """Products in the information of n candidates."""
    return n * problem.dim * (problem.dim + 1) // 2


def _chosen(
    result: DesignResult, w: np.ndarray, rows: RowsOfBlocks, factors: Factors
) -> tuple[np.ndarray, list[str]]:
    """Candidates whose variances are computed exactly: all, if there is time, and a note if there is not.

    Otherwise a quarter each is left to the largest variances as claimed, to the largest as computed here in
    doubles, to the support, and to candidates at equal distances. Those with the largest variance of a group
    come first.
    """
    problem = result.problem
    some = np.concatenate([np.empty(0, np.int64), *(rows[b] for b in factors)])
    rank = max([1, *(len(f.columns) for f in factors.values())])
    most = max(4, LIMITS.work // (LIMITS.decimal * (rank * (rank + 1) // 2 + 4 * rank)))
    if len(some) <= most:
        return some, []
    quarter = most // 4
    shares = problem.budgets[problem.groups]
    chosen = [some[:: -(-len(some) // quarter)]]
    used = some[w[some] > 0]
    chosen.append(used[:: max(1, -(-len(used) // quarter))])
    for g in (result.variances, _sketch(problem, rows, factors)):
        order = some[np.argsort(-g[some] * shares[some], kind="stable")]
        _, first = np.unique(problem.groups[order], return_index=True)
        chosen.append(np.concatenate([order[np.sort(first)], order])[:quarter])
    unique = np.unique(np.concatenate(chosen))
    return unique, [
        f"variances were computed exactly for {len(unique):,} of {len(some):,} candidates: of the support, "
        "those with the largest variances, and others at equal distances."
    ]


def _sketch(problem: DesignProblem, rows: RowsOfBlocks, factors: Factors) -> np.ndarray:
    """All variances in doubles, from our own factors."""
    g = np.zeros(problem.n_candidates)
    for b, factor in factors.items():
        y = problem.source.take(rows[b])[:, factor.columns] @ factor.inverse()
        g[rows[b]] = np.einsum("nk,nk->n", y, y)
    return g


def _variances(
    problem: DesignProblem, rows: RowsOfBlocks, factors: Factors, chosen: np.ndarray
) -> np.ndarray:
    """Variances of the chosen candidates, zero elsewhere."""
    g, wanted = np.zeros(problem.n_candidates), np.zeros(problem.n_candidates, bool)
    wanted[chosen] = True
    for b, factor in factors.items():
        part = rows[b][wanted[rows[b]]]
        g[part] = factor.variances(problem.source.take(part))
    return g
