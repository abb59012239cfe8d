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
from optdesign.testing import families
from optdesign.testing.families import gaussian, labelled

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


def adversarial_start(rng: np.random.Generator) -> Prey:
    """Weights of any size, in the worst places."""
    problem = labelled(np.vstack([np.eye(3), gaussian(rng)[:, [0, 1, 0]]]), rng)
    start = 10.0 ** rng.uniform(-40, 0, size=problem.n_candidates)
    start[rng.random(size=len(start)) < 0.5] = 0.0
    return Prey(problem, start)


FAMILIES: dict[str, Callable[[np.random.Generator], Prey]] = {
    **{name: lambda rng, make=make: Prey(make(rng)) for name, make in families.FAMILIES.items()},
    "adversarial_start": adversarial_start,
}


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
