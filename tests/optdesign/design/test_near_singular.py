"""Certificates of weights whose information is nearly singular, against rational arithmetic."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from problems import exact_gap
from rationals import exactly

import optdesign as od
from optdesign.design import certificate
from optdesign.problem.exact_rank import rank_of


def exact_det(x: np.ndarray, w: np.ndarray) -> Fraction:
    """Return det of sum w x x' for a square matrix, by elimination in fractions."""
    rows, weights = [exactly(row) for row in x], exactly(w)
    d = range(x.shape[1])
    u = [
        [sum((v * r[i] * r[j] for v, r in zip(weights, rows, strict=True)), Fraction(0)) for j in d]
        for i in d
    ]
    det = Fraction(1)
    for k in d:
        if u[k][k] == 0:  # a positive semidefinite matrix then has a zero row
            return Fraction(0)
        det *= u[k][k]
        for i in d[k + 1 :]:
            factor = u[i][k] / u[k][k]
            u[i] = [a - factor * b for a, b in zip(u[i], u[k], strict=True)]
    return det


def log(value: Fraction) -> float:
    with localcontext(prec=60):
        return float((Decimal(value.numerator) / Decimal(value.denominator)).ln())


def case(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Candidates of which those with weight are nearly copies, or nearly on a plane; weights of any size."""
    rng = np.random.default_rng(seed)
    d, small = int(rng.integers(2, 5)), 10.0 ** -rng.uniform(5, 15)
    if seed % 3 == 0:
        near = rng.normal(size=(1, d)) + small * rng.normal(size=(d + 1, d))
    elif seed % 3 == 1:
        near = rng.normal(size=(d + 1, d - 1)) @ rng.normal(size=(d - 1, d))
        near += small * rng.normal(size=(d + 1, d))
    else:
        near = np.vander(1 + small * np.arange(d + 1), d)
    w = np.zeros(2 * d + 2)
    w[: d + 1] = rng.dirichlet(np.ones(d + 1)) * 10.0 ** rng.uniform(-6 * (seed % 2), 0, size=d + 1)
    return np.vstack([near, rng.normal(size=(d + 1, d))]), w / w.sum()


@pytest.mark.parametrize("seed", range(60))
def test_nearly_singular_weights_have_their_log_det_and_a_bound(seed: int) -> None:
    """Conditions up to 1e30; the last powers of 1 + 1e-15 are exactly dependent."""
    x, w = case(seed)
    problem = od.DesignProblem(x)
    assert problem.rank == x.shape[1]
    det, c = exact_det(x, w), od.certify(problem, w)
    if det == 0:
        assert (c.log_det, c.gap, c.efficiency) == (-np.inf, np.inf, 0.0)
        return
    assert c.log_det == pytest.approx(log(det), rel=1e-9, abs=1e-9)
    gap = exact_gap(problem, w)
    assert gap <= c.gap <= gap * (1 + 1e-6)


PARALLEL = np.array([
    [4.2364884980974104e-10, 0.42364884980974105], [8.352617109798e-19, 8.352617109797999e-10],
    [6.954165209195797e-16, 6.954165209195795e-07], [1955584838.2606514, -2650649806.191033],
    [-2.558489202598786e-15, 2.96412308279479e-15], [-6.090561326192608e-10, -4.1775217332251706e-10],
    [747644994151120.5, -943479867283274.6],
])  # fmt: skip
"""Three rows that are parallel up to a rounding in one of their entries, and four others."""


@pytest.mark.parametrize("seed", range(40))
def test_log_det_of_nearly_parallel_rows_of_very_different_sizes(seed: int) -> None:
    """The determinants of the maps have conditions at which twice the precision is not enough.

    A proof is certain for conditions up to 1e30, and about half of these cases have a larger one.
    """
    rng = np.random.default_rng(seed)
    x = PARALLEL * 2.0 ** rng.integers(-40, 40, size=(7, 1))
    w = np.append(10.0 ** rng.uniform(-8, 0, size=3), np.zeros(4))
    w /= w.sum()
    det, c = exact_det(x, w), od.certify(od.DesignProblem(x), w)
    trace = sum(v * sum(a * a for a in exactly(row)) for v, row in zip(exactly(w), x, strict=True))
    is_provable = trace**2 < Fraction(10) ** 60 * det
    assert c.gap < np.inf or not is_provable
    if c.gap < np.inf:
        assert abs(c.log_det - log(det)) <= 2 * c.rank * c.rounding / c.g_value + 1e-12 * abs(log(det))


def test_many_groups_and_blocks() -> None:
    """A nearly singular block beside plain ones, and beside one that loses rank."""
    near = np.array([[0.6, 0.8], [0.6, 0.8 + 1e-12]])
    x = np.vstack([near, np.eye(2), np.eye(2), np.eye(2)])
    p = od.DesignProblem(x, np.repeat([0, 1], 4), np.array([0, 0, 1, 1, 2, 2, 0, 0]), budgets=[1.0, 0.5])
    w = np.array([0.25, 0.25, 0.25, 0.25, 0.3, 0.2, 0.0, 0.0])
    expected = log(exact_det(near, w[:2])) + math.log(0.25 * 0.25 * 0.3 * 0.2)
    c = od.certify(p, w)
    assert c.log_det == pytest.approx(expected, rel=1e-12)
    assert exact_gap(p, w) <= c.gap < np.inf
    w[4:6] = 0.5, 0.0
    c = od.certify(p, w)
    assert (c.log_det, c.gap) == (-np.inf, np.inf)
    np.testing.assert_allclose(c.variances[[2, 3, 4, 5]], [4, 4, 2, np.inf], rtol=1e-12)


def test_rank_of_rows() -> None:
    assert rank_of(np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])) == 2
    assert rank_of(np.array([[0.1, 0.3], [0.2, 0.6], [0.0, 0.0]])) == 1
    assert rank_of(np.array([[0.0, -3e-300, 0.0], [1e300, 5e-324, 0.0]])) == 2
    assert rank_of(np.zeros((0, 2))) == 0


def test_well_conditioned_weights_of_many_parameters_take_no_decimal_determinant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They take minutes. The allowance for 300 parameters exceeds the limit for few."""
    x = np.random.default_rng(0).normal(size=(1500, 300))
    problem, w = od.DesignProblem(x), np.full(1500, 1 / 1500)
    monkeypatch.setattr(certificate, "log_det_change", None)
    c = od.certify(problem, w)
    assert certificate.SHARES.log_det < c.rounding / c.g_value < certificate.SHARES.costly
    np.testing.assert_allclose(c.log_det, np.linalg.slogdet(x.T @ x / 1500)[1], rtol=1e-10)


DECAY = np.array([2.3, 48.2, 50.4, 52.2, 43.2])
WIDE_RANGES = {
    "compartments": np.column_stack(
        [np.exp(-1.9 * DECAY), DECAY * np.exp(-1.9 * DECAY), np.exp(-0.03 * DECAY)]
    ),
    "exact cancellation": np.array([[4, 4, 5e4], [2e-33, 7e-33, 8e4], [2e-42, 8e-42, 8e4]]),
    "inexact cancellation": np.array([[0.3, 0.7, 100], [3e-34, 1e-34, 70], [1e-50, 5e-50, 30]]),
}


@pytest.mark.parametrize("name", WIDE_RANGES)
def test_singular_weights_of_candidates_of_wide_range_prove_nothing(name: str) -> None:
    """Entries of a column differ by 1e33 to 1e50. One candidate was called optimal for 3 parameters."""
    x = WIDE_RANGES[name]
    p = od.DesignProblem(x)
    alone = od.certify(p, np.arange(len(x)) == 0)
    assert (alone.gap, alone.efficiency, alone.log_det) == (np.inf, 0.0, -np.inf)
    found = od.solve(p)
    assert not found.converged or np.count_nonzero(found.weights) >= 3


@pytest.mark.parametrize("name", WIDE_RANGES)
def test_volumes_of_pivots_of_wide_range_are_exact(name: str) -> None:
    """log Det of the pivots is the one in coordinates plus the volume of the coordinates."""
    p = od.DesignProblem(WIDE_RANGES[name])
    rows, maps = (
        [[Fraction(v) for v in row] for row in m.tolist()] for m in (p.pivots_of(0), p.span.maps[0])
    )
    both = [
        [sum((a * m[k] for a, m in zip(row, maps, strict=True)), Fraction(0)) for k in range(3)]
        for row in rows
    ]

    def log_det(m: list[list[Fraction]]) -> float:
        (a, b, c), (d, e, f), (g, h, i) = m
        value = abs(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g))
        return math.log(value.numerator) - math.log(value.denominator)

    assert p.log_volume == pytest.approx(2 * (log_det(rows) - log_det(both)), rel=1e-12)
