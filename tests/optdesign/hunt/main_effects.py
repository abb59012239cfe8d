"""Hunt for false claims of :func:`optdesign.exact` on :class:`optdesign.MainEffects`.

Claims: there are as many runs as asked for, of listed levels, with full rank; ``log_det`` is that of the
powers of the levels; ``efficiency`` is a lower bound against all designs on all combinations of levels; the
status "nothing left to gain" is true; no valid model is refused; the time limit is kept.

*Truth.* With M_j the moments of (1, f_j), Fischer's inequality for the covariance of all columns gives
log det(M / n) <= sum_j log det M_j, with equality for independent factors. So the optimum over all
combinations is the sum of the optima of single factors. These are bracketed in ball arithmetic by weights of
any origin. Determinants do not change if levels are shifted, so differences of levels are used, as rationals.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import flint
import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat

import optdesign as od
from hunt.claims import LOG_DET_RTOL, Found, Stopwatch, call
from hunt.exact import LEAST
from hunt.truth import Bracket, Truth, instance, number

WARM_UP = "coded"

SIZES = (1e-60, 1e60)
"""Sizes of entries that are accepted; others are refused with the advice to change the units."""

BITS = 400
STEPS = 500
"""Steps of the multiplicative algorithm for the weights of a single factor."""


class Model(NamedTuple):
    """Arguments of the model and of the search."""

    factors: dict[str, list[Any]]
    runs: int
    degree: int
    options: dict[str, Any]


def _coded(rng: np.random.Generator) -> list[Any]:
    return list(np.linspace(-1, 1, int(rng.integers(2, 6))))


def _years(rng: np.random.Generator) -> list[Any]:
    first = int(rng.choice([1990, 2018, 2020]))
    return list(range(first, first + int(rng.integers(2, 6))))


def _decimals(rng: np.random.Generator) -> list[Any]:
    first, step = float(rng.choice([0.1, 300.0, 1000.3, 98.6])), float(rng.choice([0.1, 0.01, 0.25]))
    return [first + k * step for k in range(int(rng.integers(2, 6)))]


def _large(rng: np.random.Generator) -> list[Any]:
    first = float(rng.choice([1e6, 1e9, -1e6, 1e12]))
    return [first + k for k in range(int(rng.integers(2, 5)))]


def _units(rng: np.random.Generator) -> list[Any]:
    return (np.arange(1, int(rng.integers(3, 6))) * 10.0 ** int(rng.integers(-30, 31))).tolist()


def _uneven(rng: np.random.Generator) -> list[Any]:
    levels: list[list[Any]] = [[0, 1, 100], [1, 10, 100, 1000], [0, 1e-3, 1], [-5.5, 2, 2.25, 40]]
    return levels[int(rng.integers(0, 4))]


def _random(rng: np.random.Generator) -> list[Any]:
    return rng.normal(size=int(rng.integers(2, 6))).tolist()


def _text(rng: np.random.Generator) -> list[Any]:
    return list("abcdef"[: int(rng.integers(2, 6))])


LEVELS: dict[str, Callable[[np.random.Generator], list[Any]]] = {
    "coded": _coded, "years": _years, "decimals": _decimals, "large": _large, "units": _units,
    "uneven": _uneven, "random": _random, "text": _text,
}  # fmt: skip
FAMILIES = [*LEVELS, "mixed", "many"]


def case(family: str, seed: int) -> Found:
    """Draw a model and options, and examine the runs."""
    rng = np.random.default_rng([seed, 4, FAMILIES.index(family)])
    names, count = {"mixed": (list(LEVELS), 5), "many": (["coded", "text"], 25)}.get(family, ([family], 5))
    factors = {f"f{j}": LEVELS[str(rng.choice(names))](rng) for j in range(int(rng.integers(1, count)))}
    degree = int(rng.integers(1, 5 if family != "many" else 3))
    parameters = 1 + sum(_width(levels, degree) for levels in factors.values())
    limit = None if rng.random() < 0.7 and family != "many" else float(rng.choice([1e-6, 0.01, 0.1]))
    options = {"seed": seed, "tries": int(rng.integers(1, 3)), "time_limit": limit}
    return examine(Model(factors, parameters + int(rng.integers(0, 12)), degree, options))


def examine(model: Model) -> Found:
    """Search for runs, and compare every claim with the truth."""
    runs: od.Runs | None = None
    made, refusal = call(od.MainEffects, model.factors, model.runs, degree=model.degree)
    with Stopwatch() as watch:
        if made is not None:
            runs, refusal = call(od.exact, made, **model.options)
    limit = model.options["time_limit"]
    overrun = np.nan if limit is None else watch.seconds - limit
    if runs is None:
        # Runs that change one level of one factor at a time have full rank, so only units may be refused.
        wrong = "" if "Change the unit" in refusal and _is_extreme(model) else f"refused: {refusal}"
        return Found("refused", wrong, overrun=overrun)
    return _examine_runs(model, runs)._replace(overrun=overrun)


def _is_extreme(model: Model) -> bool:
    """Return True if a power of a level is outside the range of sizes that the package documents."""
    sizes = [
        abs(float(v)) ** k
        for levels in model.factors.values()
        if not isinstance(levels[0], str)
        for v in levels
        for k in (1, _width(levels, model.degree))
    ]
    return any(v > SIZES[1] or 0 < v < SIZES[0] for v in sizes)


def _examine_runs(model: Model, runs: od.Runs) -> Found:
    status, table = runs.status.name, runs.table()
    rows = [[fmpq(1)] for _ in range(len(table))]
    bracket = Bracket(arb(0), arb(0))
    flint.ctx.prec = BITS
    for name, levels in model.factors.items():
        features = _features(levels, model.degree)
        for row, value in zip(rows, table[name].tolist(), strict=True):
            if value not in levels:
                return Found(status, f"level {value!r} of factor {name!r} is not listed")
            row.extend(features[levels.index(value)][1:])
        low, high = marginal(features)
        bracket = Bracket(bracket.low + low, bracket.high + high)
    if len(rows) != model.runs or int(runs.counts.sum()) != model.runs:
        return Found(status, f"{len(rows)} runs where {model.runs} were asked for")
    x = fmpq_mat(rows)
    det = (x.transpose() * x).det()
    if det == 0:
        return Found(status, f"the runs lose rank, and the rank claimed is {runs.rank}")
    if runs.rank != len(rows[0]):
        return Found(status, f"rank {runs.rank}, exactly {len(rows[0])}")
    log_det, d = arb(det).log(), len(rows[0])
    if wrong := _wrong_log_det(runs, log_det):
        return Found(status, wrong)
    normalised = log_det - d * arb(model.runs).log()
    most, sure = (((normalised - end) / d).exp() for end in bracket)
    slack = float(most.mid()) - runs.efficiency
    if number(runs.efficiency) > most:
        return Found(status, f"efficiency {runs.efficiency!r}, truly at most {most.str(12, radius=False)}")
    if runs.status is od.RunStatus.BOUND and most < arb(LEAST):
        return Found(status, f"nothing left to gain claimed at {most.str(12, radius=False)}")
    return Found(status, undecided=not number(runs.efficiency) <= sure, slack=slack)


def _wrong_log_det(runs: od.Runs, true: arb) -> str:
    """Return a description of a log det that is neither that of the model nor that of its stored numbers."""
    problem = instance(runs.problem.candidates, budgets=runs.problem.budgets)
    allowed = LOG_DET_RTOL * max(1.0, abs(float(true.mid())))
    if np.isfinite(runs.log_det):
        if abs(number(runs.log_det) - true) <= arb(allowed):
            return ""
        stored = Truth(problem).measure(runs.counts, scale=False)
        if stored is not None and abs(number(runs.log_det) - stored.log_det) <= arb(allowed):
            return ""
    return f"log det {runs.log_det!r}, truly {true.str(15, radius=False)}"


def _width(levels: list[Any], degree: int) -> int:
    return len(levels) - 1 if isinstance(levels[0], str) else min(degree, len(levels) - 1)


def _features(levels: list[Any], degree: int) -> list[list[fmpq]]:
    """Return (1, f) of every level: powers of the difference from the first level, or effects."""
    width = _width(levels, degree)
    if isinstance(levels[0], str):
        rows = [[int(i == j) for j in range(width)] for i in range(width)] + [[-1] * width]
        return [[fmpq(1), *map(fmpq, row)] for row in rows]
    exact = [Fraction(v) - Fraction(levels[0]) for v in levels]
    return [[fmpq(*(t**k).as_integer_ratio()) for k in range(width + 1)] for t in exact]


def marginal(features: list[list[fmpq]]) -> Bracket:
    """Return bounds on the largest log det of the moments of one factor, over all weights of sum 1."""
    n, d = len(features), len(features[0])
    x = arb_mat([[arb(v) for v in row] for row in features])
    brackets = []
    for weights in _proposals(features):
        total = sum((number(w) for w in weights), arb(0))
        scaled = [[number(w) / total * x[i, j] for j in range(d)] for i, w in enumerate(weights)]
        moments = x.transpose() * arb_mat(scaled)
        solved = moments.solve(x.transpose())
        top = arb(0)
        for i in range(n):
            top = top.max(sum((x[i, j] * solved[j, i] for j in range(d)), arb(0)))
        log_det = moments.det().log()
        brackets.append(Bracket(log_det, log_det + d * (top / d).log()))
    low, high = brackets[0]
    for other in brackets[1:]:
        low, high = low.max(other.low), high.min(other.high)
    return Bracket(low, high)


def _proposals(features: list[list[fmpq]]) -> list[np.ndarray]:
    """Return weights that may be optimal: equal ones, and those of two algorithms."""
    n, d = len(features), len(features[0])
    if n == d:
        return [np.full(n, 1.0 / n)]
    levels = [row[1] / max(abs(r[1]) for r in features) for row in features]
    coded = np.array([int(v.p) / int(v.q) for v in levels])
    coded = 2 * (coded - coded.min()) / (coded.max() - coded.min()) - 1
    x = np.linalg.qr(np.polynomial.chebyshev.chebvander(coded, d - 1))[0]
    subsets = [list(chosen) for chosen in combinations(range(n), d)]
    best = max(subsets, key=lambda chosen: np.linalg.slogdet(x[chosen])[1])
    w = np.full(n, 1.0 / n)
    for _ in range(STEPS):
        w = w * np.sum(x * np.linalg.solve((x.T * w) @ x, x.T).T, axis=1) / d
    equal = np.zeros(n)
    equal[best] = 1.0 / d
    return [w, equal, od.solve(od.DesignProblem(x), tol=1e-13).weights]
