"""A hunt for false certificates: families of ugly problems, and the truth in exact and ball arithmetic.

    python tests/optdesign/hunt.py --solves 20000

Whatever the data, three things must hold: the rank is the exact one or a note says that it may not be; the
exact gap of the weights, as floats, is at most the gap that is claimed; and a status CONVERGED means that it
is at most tol * rank.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import flint
import numpy as np
from flint import arb, arb_mat, fmpz, fmpz_mat, nmod_mat

import optdesign as od

PRIME = 18446744073709551557
"""The largest prime below 2^64: not the one of the package."""

BITS = 700
MOST_BITS = 12_000
"""Ball arithmetic starts with so many bits and doubles them until the answer is conclusive."""

TOLERANCES = (1e-6, 1e-9)


# ----------------------------------------------------------------------------------------------- the truth


def integers(x: np.ndarray) -> list[list[int]]:
    """Rows times powers of two, each its own, so that all entries are integers."""
    out = []
    for row in x:
        fractions = [float(v).as_integer_ratio() for v in row]
        common = max(denominator for _, denominator in fractions)
        out.append([numerator * (common // denominator) for numerator, denominator in fractions])
    return out


def exact_rank(x: np.ndarray) -> int:
    return int(fmpz_mat(integers(x)).rank())


def pivot_columns(x: np.ndarray, rank: int) -> list[int]:
    """Columns that carry the rank, by elimination modulo a prime."""
    reduced, found = nmod_mat([[v % PRIME for v in row] for row in integers(x)], PRIME).rref()
    assert found == rank
    columns: list[int] = []
    for i in range(rank):
        columns.append(next(j for j in range(x.shape[1]) if int(reduced[i, j]) != 0))
    return columns


def exact_number(v: float) -> arb:
    m, e = np.frexp(v)
    return arb((fmpz(int(m * 2.0**53)), fmpz(int(e) - 53)))


def true_g(problem: od.DesignProblem, weights: np.ndarray, ranks: list[int]) -> arb | None:
    """G of the weights as a ball no wider than a millionth of a rounding; None if the weights lose rank."""
    bits = BITS
    while bits <= MOST_BITS:
        flint.ctx.prec = bits  # by its module: a copy of the context, in another process, would set nothing
        g = _ball(problem, weights, ranks)
        if g is not None and g.rel_accuracy_bits() > 70:
            return g
        bits *= 2
    return None


def _ball(problem: od.DesignProblem, weights: np.ndarray, ranks: list[int]) -> arb | None:
    top: list[arb] = [arb(0)] * problem.n_groups
    for b in range(problem.n_blocks):
        if ranks[b] == 0:
            continue
        rows = np.flatnonzero(problem.blocks == b)
        x = np.asarray(problem.candidates[rows], dtype=float)
        x = x[:, pivot_columns(x, ranks[b])]
        t = arb_mat([[exact_number(v) for v in row] for row in x])
        w = [exact_number(weights[n]) for n in rows]
        weighted = arb_mat([[w[i] * t[i, j] for j in range(ranks[b])] for i in range(len(rows))])
        try:
            solved = (t.transpose() * weighted).solve(t.transpose())
        except ZeroDivisionError:
            return None
        for i, n in enumerate(rows):
            g = sum((t[i, j] * solved[j, i] for j in range(ranks[b])), arb(0))
            k = problem.groups[n]
            top[k] = top[k].max(g)
    return sum((exact_number(f) * g for f, g in zip(problem.budgets, top, strict=True)), arb(0))


# ---------------------------------------------------------------------------------------------- the families


class Prey(NamedTuple):
    problem: od.DesignProblem
    start: np.ndarray | None = None


def labelled(
    x: np.ndarray, rng: np.random.Generator, budgets: tuple[float, float] = (0.0, 0.0)
) -> od.DesignProblem:
    """Candidates in a structure drawn at random: classical, strata, several blocks."""
    n = len(x)
    groups, blocks = min(n, int(rng.integers(1, 4))), int(rng.integers(1, 3))
    labels = np.sort(rng.permutation(np.arange(n) % groups)), rng.integers(0, blocks, size=n)
    if rng.random() < 0.4:
        return od.DesignProblem(x)
    return od.DesignProblem(x, *labels, 10.0 ** rng.uniform(*budgets, size=groups))


def gaussian(rng: np.random.Generator) -> np.ndarray:
    d = int(rng.integers(2, 5))
    return rng.normal(size=(int(rng.integers(d + 1, 30)), d))


def clustered_pool(rng: np.random.Generator) -> Prey:
    """Nearly all rows alike, a few elsewhere that a sample misses."""
    d, n = int(rng.integers(2, 5)), int(rng.integers(80, 200))
    x = 1 + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=(n, d))
    few = rng.choice(n, size=d + 1, replace=False)
    x[few] = rng.uniform(size=(d + 1, d))
    x[:, 0] = 1.0
    return Prey(od.DesignProblem(x, groups=np.arange(n) % int(rng.integers(1, 3))))


def plane_with_small_rows(rng: np.random.Generator) -> Prey:
    """Integer rows in a plane, exactly, and rows outside that are smaller by many orders of magnitude."""
    d = int(rng.integers(2, 5))
    basis = rng.integers(-9, 10, size=(d - 1, d)).astype(float)
    plane = rng.integers(-9, 10, size=(int(rng.integers(3, 12)), d - 1)) @ basis
    small = 10.0 ** rng.uniform(-30, -8) * rng.normal(size=(int(rng.integers(1, 4)), d))
    return Prey(labelled(np.vstack([plane, small]), rng))


def tiny_budget_carrier(rng: np.random.Generator) -> Prey:
    """A direction that only a group of a tiny budget informs."""
    d = int(rng.integers(2, 5))
    basis = rng.normal(size=(d - 1, d)) if rng.random() < 0.5 else rng.integers(-9, 10, size=(d - 1, d))
    plane = rng.integers(-9, 10, size=(int(rng.integers(4, 12)), d - 1)) @ basis
    carriers = rng.normal(size=(int(rng.integers(1, 4)), d))
    groups = np.repeat([0, 1], [len(plane), len(carriers)])
    budgets = [1.0, 10.0 ** rng.uniform(-10, -3)]
    return Prey(od.DesignProblem(np.vstack([plane, carriers]), groups, budgets=budgets))


def near_parallel(rng: np.random.Generator) -> Prey:
    d = int(rng.integers(2, 5))
    x = rng.normal(size=(1, d)) + 10.0 ** rng.uniform(-13, -4) * rng.normal(
        size=(int(rng.integers(d, 14)), d)
    )
    return Prey(labelled(x * 10.0 ** rng.uniform(-6, 6, size=(len(x), 1)), rng))


def vandermonde(rng: np.random.Generator) -> Prey:
    low = rng.choice([-1.0, 0.0, 1.0, 10.0, 1990.0])
    points = np.sort(rng.uniform(low, low + rng.choice([1.0, 2.0, 30.0]), size=int(rng.integers(13, 20))))
    return Prey(labelled(np.vander(points, int(rng.integers(2, 13))), rng))


def hilbert(rng: np.random.Generator) -> Prey:
    d = int(rng.integers(2, 13))
    i, j = np.meshgrid(np.arange(d + int(rng.integers(0, 5))), np.arange(d), indexing="ij")
    return Prey(labelled(1.0 / (i + j + 1.0), rng))


def column_scales(rng: np.random.Generator) -> Prey:
    x = gaussian(rng)
    return Prey(labelled(x * 10.0 ** rng.uniform(-50, 50, size=x.shape[1]), rng))


def row_scales(rng: np.random.Generator) -> Prey:
    x = gaussian(rng)
    rows, columns = (
        10.0 ** rng.uniform(-20, 20, size=(len(x), 1)),
        10.0 ** rng.uniform(-20, 20, size=x.shape[1]),
    )
    return Prey(labelled(x * rows * columns, rng))


def budgets(rng: np.random.Generator) -> Prey:
    return Prey(labelled(gaussian(rng), rng, budgets=(-10.0, 10.0)))


def single_precision(rng: np.random.Generator) -> Prey:
    x = gaussian(rng) if rng.random() < 0.5 else near_parallel(rng).problem.candidates
    return Prey(od.DesignProblem(x.astype(np.float32)))


def rounded_dependence(rng: np.random.Generator) -> Prey:
    """Columns that are combinations of others, up to rounding, or exactly."""
    x = gaussian(rng)
    x = np.round(8 * x) if rng.random() < 0.5 else x
    return Prey(labelled(np.column_stack([x, x @ rng.integers(-3, 4, size=(x.shape[1], 2))]), rng))


def adversarial_start(rng: np.random.Generator) -> Prey:
    """Weights of any size, in the worst places."""
    problem = labelled(np.vstack([np.eye(3), gaussian(rng)[:, [0, 1, 0]]]), rng)
    start = 10.0 ** rng.uniform(-40, 0, size=problem.n_candidates)
    start[rng.random(size=len(start)) < 0.5] = 0.0
    return Prey(problem, start)


FAMILIES: dict[str, Callable[[np.random.Generator], Prey]] = {
    f.__name__: f
    for f in (
        clustered_pool, plane_with_small_rows, tiny_budget_carrier, near_parallel, vandermonde, hilbert,
        column_scales, row_scales, budgets, single_precision, rounded_dependence, adversarial_start,
    )
}  # fmt: skip


# -------------------------------------------------------------------------------------------------- the hunt


class Found(NamedTuple):
    """What one solve was, and what is wrong with it, if anything."""

    status: str
    noted: bool
    excess: float
    """Claimed less true gap, as a fraction of the rank."""
    wrong: str


def examine(prey: Prey, tol: float, method: str) -> Found:
    """Solve, and compare every claim with the truth."""
    problem = prey.problem
    result = od.solve(problem, tol=tol, method=method, start=prey.start, time_limit=20)
    status, noted = result.status.name, bool(problem.rank_note)
    ranks = [exact_rank(problem.candidates[problem.blocks == b]) for b in range(problem.n_blocks)]
    if ranks != problem.ranks.tolist():
        wrong = "" if noted else f"rank {problem.ranks.tolist()}, exactly {ranks}, and no note"
        return Found(status, noted, 0.0, wrong)
    if not np.isfinite(result.gap):
        return Found(status, noted, np.inf, "" if not result.converged else "converged without a gap")
    g = true_g(problem, result.weights, ranks)
    if g is None:
        return Found(status, noted, 0.0, f"gap {result.gap:.3g} claimed, and no precision shows a finite one")
    gap = g - sum(ranks)
    excess = float((exact_number(result.gap) - gap).mid()) / sum(ranks)
    if not gap <= exact_number(result.gap):
        return Found(status, noted, excess, f"gap {result.gap:.3g} claimed, truly {gap.str(6)}")
    if not sum(ranks) >= exact_number(result.efficiency) * g:
        return Found(status, noted, excess, f"efficiency {result.efficiency!r} is more than D / G")
    if result.converged and not gap <= arb(tol) * sum(ranks):
        return Found(status, noted, excess, f"converged at a gap of {gap.str(6)}")
    return Found(status, noted, excess, "")


def hunt(name: str, first: int, count: int) -> list[tuple[int, Found]]:
    """Examine problems of a family, seeds first, first + 1, ...; methods and tolerances in turn."""
    out = []
    for seed in range(first, first + count):
        prey = FAMILIES[name](np.random.default_rng([seed, list(FAMILIES).index(name)]))
        methods = ("auto", "auto", *od.METHODS)
        out.append((seed, examine(prey, TOLERANCES[seed % 2], methods[seed % len(methods)])))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--solves", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1)
    args = parser.parse_args()
    from joblib import Parallel, delayed

    each, part = -(-args.solves // len(FAMILIES)), 50
    false = 0
    print(f"{'family':<24}{'solves':>8}{'converged':>11}{'precision':>11}{'other':>7}{'notes':>7}{'false':>7}"
          "  claimed - true gap, median / rank")  # fmt: skip
    for name in FAMILIES:
        jobs = [(args.first + i, min(part, each - i)) for i in range(0, each, part)]
        found = [f for fs in Parallel(args.jobs)(delayed(hunt)(name, *job) for job in jobs) for f in fs]
        count = Counter(f.status for _, f in found)
        wrong = [(seed, f) for seed, f in found if f.wrong]
        other = len(found) - count["CONVERGED"] - count["PRECISION"]
        excess = float(np.median([f.excess for _, f in found]))
        print(f"{name:<24}{len(found):>8}{count['CONVERGED']:>11}{count['PRECISION']:>11}{other:>7}"
              f"{sum(f.noted for _, f in found):>7}{len(wrong):>7}  {excess:.1e}", flush=True)  # fmt: skip
        for seed, f in wrong[:5]:
            print(f"    seed {seed}: {f.status}, {f.wrong}")
        false += len(wrong)
    print(f"{false} false claims in {each * len(FAMILIES)} solves")
    sys.exit(false > 0)


if __name__ == "__main__":
    main()
