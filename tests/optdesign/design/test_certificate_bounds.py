"""Every term of a certificate's bound, and every limit it obeys, stated a second time and without rounding.

The formulas are those of the docstring of :mod:`optdesign.design.certificate`, in fractions and in decimals
of 60 digits. Where a formula allows for n roundings its value is 1 + n u, and n + 1 instead of n is lost in
doubles unless all else is exact; so those cases are made of powers of two.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from problems import EPS, exact_gap
from rationals import U, exactly, lost, root

import optdesign as od
from optdesign.algebra import whitening
from optdesign.design import certificate
from optdesign.design.roundoff_allowance import bound_on_g, error_length, sum_error

pytestmark = pytest.mark.kernels

seeds = pytest.mark.parametrize("seed", range(8))


def growth(groups: int, eta: Fraction, trace: Fraction) -> Fraction:
    """By how much sum w |y|^2 can grow if every sqrt(f_i) y_n moves by eta: Cauchy-Schwarz."""
    return 2 * eta * root(groups * trace) + groups * eta**2


# ----------------------------------------------------------------------------------------- allowances


@seeds
def test_the_error_of_a_sum(seed: int) -> None:
    """What the vectors' errors do to the sum, and the roundings of a tile and eight more."""
    rng = np.random.default_rng(seed)
    groups, terms = int(rng.integers(2, 9)), int(10 ** rng.uniform(0, 13))
    eta, trace = 10 ** rng.uniform(-5, 0), rng.uniform(2, 9)
    expected = growth(groups, Fraction(eta), Fraction(trace)) + lost(terms + 8) * Fraction(trace)
    assert abs(Fraction(float(sum_error(groups, eta, trace, terms))) / expected - 1) <= lost(8)


@pytest.mark.parametrize("terms", [0, 1, 2, 64])
def test_roundings_of_a_sum_are_counted(terms: int) -> None:
    got = Fraction(float(sum_error(1, 0.0, 4.0, terms)))
    assert abs(got / (4 * lost(terms + 8)) - 1) <= lost(4)


@seeds
def test_the_length_of_an_error(seed: int) -> None:
    """Entry k of x A is off by sum_j |A_jk| rounding_j; the longest of all blocks counts."""
    rng = np.random.default_rng(seed)
    white, rounding = rng.normal(size=(3, 4, 2)), rng.exponential(size=(3, 4))
    squares = []
    for a, r in zip(white, rounding, strict=True):
        entries = [
            sum((abs(p) * q for p, q in zip(exactly(c), exactly(r), strict=True)), Fraction(0)) for c in a.T
        ]
        squares.append(sum(e**2 for e in entries))
    got = Fraction(float(error_length(white, rounding)))
    assert abs(got / root(max(squares)) - 1) <= lost(2 * (4 + 2 + 8))


@pytest.mark.parametrize("shape", [(1, 4, 1), (1, 4, 2), (1, 3, 2), (3, 5, 3), (2, 5, 4)])
def test_roundings_of_the_length_are_counted(shape: tuple[int, int, int]) -> None:
    """d products and sums of them, r squares, and eight more."""
    white, rounding = np.zeros(shape), np.zeros(shape[:2])
    white[-1, -1, -1], rounding[-1, -1] = -2.0, 0.25
    assert 2.0 * error_length(white, rounding) == float(1 + lost(shape[1] + shape[2] + 8))


# ------------------------------------------------------------------------------------------- the bound


@seeds
def test_the_bound_is_its_formula(seed: int) -> None:
    """(G + 2 eta sqrt(M G) + M eta^2) / (1 - |E|), with |E| as it was computed and all that it may lack.

    A bound that allows for sixteen roundings of its own is right to sixteen roundings.
    """
    rng = np.random.default_rng(seed)
    m, blocks = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    budgets, largest = rng.exponential(size=m), 3 * rng.exponential(size=m)
    ranks, off = rng.integers(1, 4, size=blocks), rng.uniform(0, 0.1, size=blocks)
    eta, terms, missed = rng.uniform(1e-3, 1e-2), int(10 ** rng.uniform(10, 13)), rng.uniform(0, 0.1)
    g, share = bound_on_g(budgets, largest, ranks, off, eta, math.sqrt(m) * eta, terms, missed)

    seen = sum(f * v for f, v in zip(exactly(budgets), exactly(largest), strict=True))
    worst = Fraction(0)
    for r, e in zip(ranks.tolist(), exactly(off), strict=True):
        trace = r * (1 + e)
        worst = max(worst, e + growth(m, Fraction(eta), trace) + lost(terms + 8) * trace)
    worst += Fraction(missed)
    assert worst < Fraction(1, 2)
    expected = (seen + growth(m, Fraction(eta), seen)) * (1 + lost(int(ranks.max()) + 16)) / (1 - worst)
    assert abs(Fraction(float(g)) / expected - 1) <= lost(16)
    assert abs(Fraction(float(share)) - (1 - seen / expected)) <= lost(16)


@pytest.mark.parametrize("ranks", [[0], [1], [2], [3], [2, 1], [0, 3]])
def test_roundings_of_the_bound_are_counted(ranks: list[int]) -> None:
    """As many as the largest rank and sixteen more. Eight terms less than none: a sum without rounding."""
    off = np.zeros(len(ranks))
    g, share = bound_on_g(np.array([0.5, 4.0]), np.array([8.0, 1.0]), np.array(ranks), off, 0.0, 0.0, -8, 0.0)
    assert g == 8.0 * float(1 + lost(max(ranks) + 16))
    assert share == pytest.approx(float(lost(max(ranks) + 16)), abs=float(2 * U))


def test_sums_over_groups_lose_nothing() -> None:
    """Small terms after a large one, which together exceed what the bound allows for rounding."""
    budgets, largest = np.full(65, 1.0), np.full(65, float(U))
    largest[0] = 1.0
    g, _ = bound_on_g(budgets, largest, np.array([0]), np.zeros(1), 0.0, 0.0, 0, 0.0)
    assert Fraction(float(g)) >= (1 + 64 * U) * (1 + lost(16)) - 2 * U


def bound_at(off: list[float], eta: float = 0.0, missed: float = 0.0) -> tuple[float, float]:
    """Blocks of rank zero: what they lack of white is all there is to allow for."""
    with np.errstate(invalid="ignore"):  # plain Python says that 0 inf is not a number
        ranks = np.zeros(len(off), np.int64)
        return bound_on_g(np.ones(1), np.ones(1), ranks, np.array(off), eta, eta, 0, missed)


def test_vectors_must_be_more_than_half_white() -> None:
    below = math.nextafter(0.5, 0.0)
    assert bound_at([below])[0] == pytest.approx(2.0, rel=1e-14)
    assert bound_at([0.25], missed=0.25 - 2.0**-54)[0] == pytest.approx(2.0, rel=1e-14)
    for off, missed in [([0.5], 0.0), ([0.75], 0.0), ([1.25], 0.0), ([0.1, 0.5], 0.0), ([0.25], 0.25)]:
        assert bound_at(off, missed=missed) == (np.inf, np.inf)


@pytest.mark.parametrize("what", [np.inf, np.nan])
def test_nothing_is_proved_from_numbers_that_are_none(what: float) -> None:
    assert bound_at([0.0], eta=what) == (np.inf, np.inf)
    assert bound_at([0.0], missed=what) == (np.inf, np.inf)
    for off in ([what], [what, 0.1], [0.1, what]):
        assert bound_at(off) == (np.inf, np.inf)
        white = np.array(off)[:, None, None]
        assert not error_length(white, np.ones((len(off), 1))) < np.inf


@pytest.mark.parametrize("eta", [2.0**-20, 2.0**-10, 2.0**-6])
def test_the_bound_is_reached_where_errors_conspire(eta: float) -> None:
    """Four groups of budget 1/4 with y = 1. What has weight is shorter than it seems, what has none longer.

    With h = 2 eta the exact G is (1 + h)^2 / (1 - h)^2, and the bound (1 + h)^2 / (1 - 2 h - h^2).
    """
    h = 2 * Fraction(eta)
    exact = (1 + h) ** 2 / (1 - h) ** 2
    g, share = bound_on_g(np.full(4, 0.25), np.ones(4), np.array([1]), np.zeros(1), eta, 2 * eta, 8, 0.0)
    formula = (1 + h) ** 2 / (1 - 2 * h - h**2)
    assert exact < formula <= Fraction(float(g)) <= formula * (1 + lost(100))
    assert 1 - 1 / exact <= Fraction(float(share)) + 2 * U


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_holds_for_all_vectors_that_are_near(seed: int) -> None:
    """G in rational arithmetic, for the vectors as they are, of which the bound sees others; so for budgets.

    Vectors are nearly white, and known up to eta / sqrt(f_i) in a direction of chance.
    """
    rng = np.random.default_rng(seed)
    m, r, n = int(rng.integers(1, 4)), int(rng.integers(1, 4)), 8
    groups = np.arange(n) % m
    budgets = 2.0 ** rng.integers(-3, 4, size=m)
    true = rng.exponential(size=n)
    true *= (budgets / np.bincount(groups, weights=true))[groups]
    miss = 0.05 * rng.random()
    w = true * (1 + miss * rng.uniform(-1, 1, size=m))[groups]
    x = rng.normal(size=(n, r))
    seen = np.linalg.solve(np.linalg.cholesky((x.T * w) @ x), x.T).T @ (
        np.eye(r) + 0.02 * rng.normal(size=(r, r))
    )
    eta = 10 ** rng.uniform(-8, -2) * (seed % 4 > 0)
    errors = rng.normal(size=(n, r))
    errors *= (eta * (1 - 1e-9) / np.sqrt(budgets))[groups, None] / np.linalg.norm(
        errors, axis=1, keepdims=True
    )
    largest = np.array([np.sum(seen[groups == i] ** 2, axis=1).max() for i in range(m)])
    off = np.linalg.norm((seen.T * w) @ seen - np.eye(r))
    g, share = bound_on_g(budgets, largest, np.array([r]), np.array([off]), eta, math.sqrt(m) * eta, n, miss)
    assert 0 < share < 1
    problem = od.DesignProblem(seen + errors, groups, budgets=budgets)
    for weights in (w, true):
        assert exact_gap(problem, weights) <= g - r


# ---------------------------------------------------------------------------------- what is made of it


class Proofs:
    """Proofs to order, one for the rows that are worked with and one for refined ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, problem: od.DesignProblem) -> None:
        self.problem, self.patch = problem, monkeypatch.setattr
        self.seen: list[tuple[Any, float]] = []

    def certificate(
        self, g: float, rounding: float, refined: tuple[float, float] = (7.0, 0.0)
    ) -> od.Certificate:
        self.seen = []

        def prove(_, rows, support, w, missed, measure):  # noqa: ARG001
            assert len(support) == len(w)
            self.seen.append((rows, missed))
            values = (g, rounding) if len(self.seen) == 1 else refined
            return certificate._Proof(*values, 1.0, np.ones(len(w)))

        self.patch(certificate, "_prove", prove)
        self.patch(certificate, "_prove_nearly_singular", lambda *given: given[-1])
        every = np.arange(self.problem.n_candidates)
        return certificate.certificate_of(self.problem, every, self.problem.uniform(), 1e-13)


PLAIN = od.DesignProblem(3 * np.eye(2))
PARALLEL = od.DesignProblem([[1.0, 1.0], [1.0, 1.0 + 1e-9], [1.0, 1.0 - 1e-9]])


@pytest.mark.parametrize(
    ("g", "limit"),
    [
        (2.0, 1e-11),
        (2.0 + 1e-10, 1e-11),
        (2.0 - 1e-10, 1e-11),
        (2.0 + 2.0**-26, None),
        (4.0, 1e-9),
        (np.inf, 1e-9),
    ],
)
def test_refined_rows_are_for_rounding_that_counts(
    g: float, limit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than 1e-11 of G, and more than a hundredth of the gap, here G - 2, or than 1e-9 of G."""
    limit = 0.01 * (1.0 - 2.0 / g) if limit is None else limit
    proofs = Proofs(monkeypatch, PLAIN)
    assert PLAIN.rows is not PLAIN.refined
    assert proofs.certificate(g, limit).g_value == g
    assert proofs.seen == [(PLAIN.rows, 1e-13)]
    assert proofs.certificate(g, math.nextafter(limit, 1.0)).g_value == 7.0
    assert proofs.seen == [(PLAIN.rows, 1e-13), (PLAIN.refined, 1e-13)]


def test_rows_that_are_refined_cannot_be_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = Proofs(monkeypatch, PARALLEL)
    assert PARALLEL.rows is PARALLEL.refined
    assert proofs.certificate(4.0, 0.9).g_value == 4.0
    assert len(proofs.seen) == 1


@pytest.mark.parametrize("g", [2.0 + EPS, 2.5, 3.0, 1e3, 1e17, math.nextafter(2.0, 3.0)])
def test_gap_and_efficiency_are_rounded_to_the_safe_side(g: float, monkeypatch: pytest.MonkeyPatch) -> None:
    c = Proofs(monkeypatch, PLAIN).certificate(g, 0.0)
    assert 0 < Fraction(c.gap) - (Fraction(g) - 2) <= 2 * Fraction(math.ulp(c.gap))
    assert 0 < 2 / Fraction(g) - Fraction(c.efficiency) <= 2 * Fraction(math.ulp(c.efficiency))
    assert c.relative_gap == c.gap / 2
    assert c.g_value == g
    assert c.rank == 2


def test_what_rounding_may_have_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Proofs(monkeypatch, PARALLEL).certificate(8.0, 0.005).rounding == 0.04


@pytest.mark.parametrize("g", [2.0 * (1 - 1e-7), math.nextafter(2.0, 0.0)])
def test_no_gap_is_negative_and_no_efficiency_above_one(g: float, monkeypatch: pytest.MonkeyPatch) -> None:
    c = Proofs(monkeypatch, PLAIN).certificate(g, 0.0)
    assert 0.0 <= c.gap <= 5e-324
    assert c.relative_gap >= 0.0
    assert c.efficiency <= 1.0
    assert c.efficiency == (1.0 if g < 2.0 - EPS else pytest.approx(1.0, abs=2 * EPS))


def test_what_a_design_without_full_rank_proves() -> None:
    c = od.certify(PLAIN, [1.0, 0.0])
    assert (c.gap, c.relative_gap, c.g_value, c.log_det) == (np.inf, np.inf, np.inf, -np.inf)
    assert (c.efficiency, c.rounding) == (0.0, 0.0)
    assert c.rank == 2


def test_log_det_is_that_of_the_candidates() -> None:
    """det of diag(9 / 2, 9 / 2)."""
    assert od.certify(PLAIN, [0.5, 0.5]).log_det == pytest.approx(2 * math.log(4.5), rel=1e-14)


def test_certificates_are_themselves() -> None:
    """Neither compared by their arrays nor printed with them."""
    c, other = (od.certify(PLAIN, [0.5, 0.5]) for _ in range(2))
    assert c == c
    assert c != other
    assert len({c, other}) == 2
    assert "variances" not in repr(c)
    assert "gap=" in repr(c)


@pytest.mark.parametrize(("share", "gap"), [(0.99, np.inf), (1.0, 0.0)])
def test_a_bound_below_the_rank_is_no_proof(share: float, gap: float) -> None:
    """It contradicts sum w g = D, whatever the arithmetic behind it."""
    problem, support, w = od.DesignProblem(np.eye(3)), np.arange(3), np.full(3, 1 / 3)

    def measure(*parts: Any) -> whitening.Measured:
        found = whitening.measured(*parts)
        return found._replace(largest=found.largest * share)

    c = certificate.certificate_of(problem, support, w, 0.0, measure)
    assert c.gap == pytest.approx(gap, abs=1e-12)
