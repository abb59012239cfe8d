"""Hunt for false ranks of :class:`optdesign.DesignProblem` on factors whose levels carry round-off.

Claim: the rank is that of the design in exact decimals. A level that should be 0 may be 3 * 0.1 - 0.3 or
1e-17, and a share of a mixture may be 1 - 0.7 - 0.3. The designs are well conditioned in their decimals, so
that the rank is no close decision: a note does not excuse another one, and ``solve`` must converge.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat

import optdesign as od
from hunt.claims import Found

WARM_UP = "factorial"

Exact = list[list[Fraction]]


class Design(NamedTuple):
    """Features in floats with round-off, and the decimals that they stand for."""

    features: np.ndarray
    exact: Exact


def noisy(value: Fraction, rng: np.random.Generator) -> float:
    """Return a double that stands for a decimal, off by a few roundings of numbers of size 1."""
    if rng.random() < 0.4:
        return float(value)
    if rng.random() < 0.5:
        return float(value) + float(rng.choice([2.0**-54, 2.0**-53, 1e-17, 1e-19, 0.1 * 3 - 0.3, 1e-30]))
    return float(value) + float(rng.choice([-1.0, 1.0])) * 10.0 ** rng.uniform(-25, -16)


def _features(points: list[list[float]], exact: Exact, powers: list[tuple[int, ...]]) -> Design:
    """Return the monomials of the points with the given powers, in floats and in decimals."""
    x = np.array(points)
    columns = [np.prod([x[:, j] ** k for j, k in enumerate(p)], axis=0) for p in powers]
    rows = []
    for point in exact:
        row = []
        for p in powers:
            value = Fraction(1)
            for v, k in zip(point, p, strict=True):
                value *= v**k
            row.append(value)
        rows.append(row)
    return Design(np.column_stack(columns), rows)


def factorial(rng: np.random.Generator) -> Design:
    """A factorial with polynomials of every factor, all products or up to a total degree."""
    k = int(rng.integers(1, 4))
    levels = [[Fraction(-1), Fraction(0), Fraction(1)]] * k
    if k < 3:
        size = int(rng.integers(3, 6))
        levels = [[Fraction(2 * i, size - 1) - 1 for i in range(size)]] * k
    values = [[noisy(v, rng) for v in own] for own in levels]
    degree = int(rng.integers(1, 4 if k < 3 else 3))
    powers = list(product(range(degree + 1), repeat=k))
    if rng.random() < 0.4:
        powers = [p for p in powers if sum(p) <= degree]
    return _features([list(p) for p in product(*values)], [list(p) for p in product(*levels)], powers)


def rows_apart(rng: np.random.Generator) -> Design:
    """A factorial in which the round-off differs from row to row."""
    k = int(rng.integers(1, 3))
    size = int(rng.integers(3, 6))
    exact = [list(p) for p in product([Fraction(2 * i, size - 1) - 1 for i in range(size)], repeat=k)]
    degree = int(rng.integers(1, 4))
    powers = list(product(range(degree + 1), repeat=k))
    return _features([[noisy(v, rng) for v in row] for row in exact], exact, powers)


def mixture(rng: np.random.Generator) -> Design:
    """A simplex lattice whose last share is 1 minus the others, with Scheffe's polynomials."""
    q, m = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    exact = [[Fraction(v, m) for v in p] for p in product(range(m + 1), repeat=q) if sum(p) == m]
    points = []
    for row in exact:
        shares = [noisy(v, rng) if rng.random() < 0.3 else float(v) for v in row[:-1]]
        last = 1.0
        for v in shares:
            last -= v
        points.append([*shares, last])
    degree = int(rng.integers(1, min(m, 3) + 1))
    powers = []
    for size in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(q), size):
            if len(set(chosen)) == len(chosen):
                powers.append(tuple(chosen.count(j) for j in range(q)))
    if degree == 3 and rng.random() < 0.5:
        powers = [p for p in product(range(4), repeat=q) if sum(p) == 3]  # a full cubic
    return _features(points, exact, powers)


def redundant(rng: np.random.Generator) -> Design:
    """A mixture with an intercept, or a factorial with more powers than levels: dependent columns."""
    if rng.random() < 0.5:
        made = mixture(rng)
        ones = np.ones((len(made.features), 1))
        return Design(np.hstack([ones, made.features]), [[Fraction(1), *row] for row in made.exact])
    size = int(rng.integers(2, 4))
    levels = [Fraction(2 * i, size - 1) - 1 for i in range(size)]
    values = [float(v) for v in levels]
    powers = list(product(range(size + 1), repeat=2))
    return _features(
        [list(p) for p in product(values, repeat=2)], [list(p) for p in product(levels, repeat=2)], powers
    )


def formula(rng: np.random.Generator) -> Design:
    """A factorial of which a formula makes the features."""
    size, degree = int(rng.integers(3, 6)), int(rng.integers(2, 4))
    levels = [Fraction(2 * i, size - 1) - 1 for i in range(size)]
    values = [noisy(v, rng) for v in levels]
    one = " + ".join(f"I({{0}}**{k})" for k in range(1, degree + 1))
    model = f"~ ({one.format('a')}) * ({one.format('b')})"
    made = od.candidates({"a": values, "b": values}, model)
    exact = [[Fraction(levels[values.index(v)]) for v in pair] for pair in _pairs(made)]
    powers = list(product(range(degree + 1), repeat=2))
    return Design(made.features, _features([[0.0, 0.0]] * len(exact), exact, powers).exact)


def _pairs(made: od.Candidates) -> list[tuple[float, float]]:
    return list(zip(made.settings["a"].tolist(), made.settings["b"].tolist(), strict=True))


FAMILIES: dict[str, Callable[[np.random.Generator], Design]] = {
    f.__name__: f for f in (factorial, rows_apart, mixture, redundant, formula)
}


def case(family: str, seed: int) -> Found:
    """Draw a design, and examine its rank."""
    return examine(FAMILIES[family](np.random.default_rng([seed, 7, list(FAMILIES).index(family)])))


def examine(design: Design) -> Found:
    """Compare the rank of a problem with the exact one of its decimals."""
    rows = [[fmpq(*v.as_integer_ratio()) for v in row] for row in design.exact]
    true = int(fmpq_mat(rows).rank())
    made = od.DesignProblem(design.features)
    noted = bool(made.rank_note)
    if made.rank != true:
        return Found("rank", f"rank {made.rank}, and {true} in decimals", noted)
    result = od.solve(made, tol=1e-6)
    if not result.converged:
        return Found(result.status.name, f"{result.status.name} at a gap of {result.gap:.3g}", noted)
    return Found(result.status.name, "", noted)
