"""The limits that weights, supports and ranges obey in a certificate, stated in exact arithmetic."""

import contextlib
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pytest
from problems import EPS
from rationals import U, exactly, lost

import optdesign as od
from optdesign.algebra import passes
from optdesign.design import certificate, feasible
from optdesign.design.feasible import clean, farthest_group, scale
from optdesign.design.roundoff_allowance import bound_on_g

pytestmark = pytest.mark.kernels

seeds = pytest.mark.parametrize("seed", range(8))


def overflow_is_silent() -> contextlib.AbstractContextManager[Any]:
    """Compiled kernels emit no warnings; as plain Python they do, unless the tiers run them."""
    is_python = bool(numba.config.DISABLE_JIT)  # type: ignore[attr-defined]
    return np.errstate(over="ignore", invalid="ignore") if is_python else contextlib.nullcontext()


def missing(limit: float) -> float:
    """A number that is the limit once the rounding of sums, 4 u, is added."""
    miss = limit - 4 * float(U)
    assert miss + 4 * float(U) == limit
    assert math.nextafter(miss, 1.0) + 4 * float(U) > limit
    return miss


def test_weights_are_taken_as_they_are_up_to_a_billionth_of_a_thousandth() -> None:
    problem, miss = od.DesignProblem(np.eye(2)), missing(1e-12)
    w, missed = feasible.feasible(problem, [1.0, miss])
    assert (w.tolist(), missed) == ([1.0, miss], 1e-12)
    above = math.nextafter(miss, 1.0)
    w, missed = feasible.feasible(problem, [1.0, above])
    assert w[0] < 1.0
    assert 0 < missed <= float(8 * U)
    assert abs(sum(exactly(w)) - 1) <= Fraction(missed)


def test_weights_may_miss_a_budget_by_a_millionth_and_no_more() -> None:
    problem, miss = od.DesignProblem(np.eye(2)), missing(1e-6)
    w, missed = feasible.feasible(problem, [1.0, miss])
    assert abs(sum(exactly(w)) - 1) <= Fraction(missed)
    with pytest.raises(ValueError, match="weights must sum to the budget of each group; group 0 sums to 1"):
        feasible.feasible(problem, [1.0, math.nextafter(miss, 1.0)])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 1])
def test_weights_that_are_not_finite_are_named_wherever_they_are(at: int, bad: float) -> None:
    w = [0.5, 0.5]
    w[at] = bad
    with pytest.raises(ValueError, match=rf"weights must be finite; weights\[{at}\] = {bad}"):
        feasible.feasible(od.DesignProblem(np.eye(2)), w)


@pytest.mark.parametrize("at", [0, 1])
def test_negative_weights_are_named_wherever_they_are(at: int) -> None:
    w = [1.5, 1.5]
    w[at] = -0.5
    with pytest.raises(ValueError, match=rf"weights must not be negative; weights\[{at}\] = -0.5"):
        feasible.feasible(od.DesignProblem(np.eye(2)), w)


def test_clean() -> None:
    """Negatives count up to a millionth of the group's budget."""
    groups, budgets = np.array([0, 1, 0, 1]), np.array([1.0, 1000.0])
    w = np.array([0.5, -1e-6 * 1000.0, -1e-6, 750.0])
    assert clean(w, groups, budgets) == (-1, -1)
    np.testing.assert_array_equal(w, [0.5, 0.0, 0.0, 750.0])
    for n, bad in [(0, np.nan), (1, np.inf), (3, -np.inf)]:
        w = np.array([0.5, 0.5, 0.5, 0.5])
        w[n] = bad
        assert clean(w, groups, budgets) == (n, -1)
    for n, size in [(1, 1e-6 * 1000.0), (2, 1e-6)]:
        w = np.array([1.0, -9e-4, -9e-7, 1.0])
        w[n] = math.nextafter(-size, -1.0)
        assert clean(w, groups, budgets) == (-1, n)


def misses(groups: np.ndarray, budgets: np.ndarray, w: np.ndarray) -> list[Fraction]:
    """By which fraction of its budget every group misses it."""
    sums = [sum(exactly(w[groups == i]), Fraction(0)) for i in range(len(budgets))]
    return [abs(s - f) / f for s, f in zip(sums, exactly(budgets), strict=True)]


@seeds
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e-14])
def test_the_group_that_is_farthest_from_its_budget(seed: int, size: float) -> None:
    """Sums are as if exact, and 4 u are added."""
    rng = np.random.default_rng(seed)
    groups, budgets = np.arange(30) % 4, 10.0 ** rng.uniform(-3, 3, size=4)
    w = rng.exponential(size=30) ** 4
    w *= (budgets / np.bincount(groups, weights=w))[groups]
    w += size * budgets[groups] * rng.uniform(0.01, 0.03, size=4)[groups]
    total = np.full(4, np.nan)
    i, most = farthest_group(groups, budgets, w, total)
    exact = misses(groups, budgets, w)
    assert exact[i] == max(exact)
    assert abs(Fraction(float(most)) - (exact[i] + 4 * U)) <= exact[i] * lost(4) + U / 2**20
    sums = [float(sum(exactly(w[groups == j]))) for j in range(4)]
    np.testing.assert_allclose(total, sums, rtol=EPS, atol=0)


def test_groups_that_are_equally_far() -> None:
    """The first, and no group but those that there are."""
    for n in (1, 3):
        total = np.empty(n)
        assert farthest_group(np.arange(n), np.ones(n), np.ones(n), total) == (0, float(4 * U))
        i, most = farthest_group(np.arange(n), np.ones(n), np.full(n, 1.5), total)
        assert (i, most) == (0, 0.5 + float(4 * U))


@pytest.mark.parametrize("first", [[1e300, 0.0], [1.7e308, 1.7e308]])
def test_what_is_infinitely_far_comes_first(first: list[float]) -> None:
    """A quotient that overflows, or a sum, before a sum that overflows."""
    groups, budgets = np.array([0, 0, 1, 1]), np.array([1e-300, 1.0])
    with np.errstate(over="ignore", invalid="ignore"):
        assert farthest_group(groups, budgets, np.array([*first, 1.7e308, 1.7e308]), np.empty(2)) == (
            0,
            np.inf,
        )


@seeds
def test_scale(seed: int) -> None:
    """Each weight has at most three roundings, and the remaining miss is returned."""
    rng = np.random.default_rng(seed)
    groups, budgets, w = np.arange(20) % 3, 10.0 ** rng.uniform(-3, 3, size=3), rng.exponential(size=20)
    before = w.copy()
    missed = Fraction(float(scale(groups, budgets, w)))
    worst = max(misses(groups, budgets, w))
    assert worst <= lost(3)
    assert abs(missed - (worst + 4 * U)) <= U / 2**20
    ratio = np.array([budgets[i] / math.fsum(before[groups == i]) for i in range(3)])
    np.testing.assert_allclose(w, before * ratio[groups], rtol=4 * EPS)


# -------------------------------------------------------------------------------- where rank is lost


@pytest.mark.parametrize("share", [1e-15, 1e-100, 1e-300])
def test_weights_of_any_size_inform(share: float) -> None:
    c = od.certify(od.DesignProblem(np.eye(4)), [0.5, 0.5 - share, share, 0.0])
    np.testing.assert_allclose(c.variances, [2.0, 2.0, 1 / share, np.inf], rtol=1e-12)


@pytest.mark.parametrize("size", [1e-9, 1e-100, 1e-160, 1e-200])
def test_short_rows_inform_beside_long_ones(size: float) -> None:
    """Weights of rank 2 of 3 on rows of sizes 1 and ``size``; variances do not depend on the size."""
    x = np.array([[1.0, 0, 0], [size, size, 0], [size, 2 * size, 0], [0, 1, 1], [0, size, 0]])
    with overflow_is_silent():
        c = od.certify(od.DesignProblem(x), [0.5, 0.25, 0.25, 0, 0])
    u = [[Fraction(1, 2) + Fraction(size) ** 2 / 2, Fraction(size) ** 2 * Fraction(3, 4)], [0, 0]]
    u[1] = [u[0][1], Fraction(size) ** 2 * Fraction(5, 4)]
    det = u[0][0] * u[1][1] - u[0][1] ** 2

    def variance(row: np.ndarray) -> float:
        a, b = Fraction(row[0]), Fraction(row[1])
        return float((a * a * u[1][1] - 2 * a * b * u[0][1] + b * b * u[0][0]) / det)

    expected = np.array([np.inf if row[2] else variance(row) for row in x])
    # Some BLAS kernels square entries, and 1e-200 then leaves no digits, which NaN states.
    known = ~np.isnan(c.variances)
    assert known.all() or (size < 1e-160 and known.tolist() == [False, False, False, True, False])
    np.testing.assert_allclose(c.variances[known], expected[known], rtol=1e-12)


@pytest.mark.parametrize(("tilt", "seen"), [(0.1, True), (10.0, False)])
def test_what_lies_outside_the_range(tilt: float, seen: bool) -> None:
    """By more than 2e-14 of its length, however long it is; a zero does not."""
    x = np.vstack(
        [np.eye(3), [1e-3, 0.0, tilt * 1e-3 * certificate.RANGE_RTOL], [0.0, 0.0, 0.0], [0.5, -0.75, 0.0]]
    )
    c = od.certify(od.DesignProblem(x), [0.25, 0.75, 0.0, 0.0, 0.0, 0.0])
    expected = [4.0, 4 / 3, np.inf, 4e-6 if seen else np.inf, 0.0, 1.75]
    np.testing.assert_allclose(c.variances, expected, rtol=1e-12)


def test_a_block_without_weight_is_seen_nowhere() -> None:
    problem = od.DesignProblem(
        np.vstack([np.eye(2), np.eye(2), np.zeros((1, 2))]), parameter_blocks=[0, 0, 1, 1, 1]
    )
    c = od.certify(problem, [0.5, 0.5, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(c.variances, [2.0, 2.0, np.inf, np.inf, 0.0], rtol=1e-12)


@pytest.mark.parametrize("w", [1e-300, 1e-308, 1e-312, 1e-322])
def test_variances_beyond_the_range_of_floating_point_are_infinite(w: float) -> None:
    """Weights of a block that lose rank may be so small that 1 / w overflows."""
    problem = od.DesignProblem([[1, 0], [1e-3, 0], [0, 1], [1, 0]], parameter_blocks=[0, 0, 0, 1])
    with overflow_is_silent():
        c = od.certify(problem, [w, 0.0, 0.0, 1.0])
    exact = [1 / Fraction(w), Fraction(1, 10**6) / Fraction(w)]
    expected = [float(g) if g < Fraction(np.finfo(float).max) else np.inf for g in exact]
    np.testing.assert_allclose(c.variances, [*expected, np.inf, 1.0], rtol=1e-12)


def test_variances_outside_the_range_of_a_design() -> None:
    problem = od.DesignProblem(
        np.vstack([np.eye(2), 0.5 * np.eye(2)]), groups=[0, 0, 1, 1], budgets=[4.0, 1.0]
    )
    support, w, g = np.array([0, 2]), np.array([4.0, 1.0]), np.full(4, np.nan)
    certificate._singular_variances(problem, 0, support, w, g)
    np.testing.assert_allclose(g, [4 / 17, np.inf, 1 / 17, np.inf], rtol=1e-12)


@pytest.mark.parametrize("what", [np.inf, np.nan])
@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_variance_that_is_not_a_number_proves_nothing(what: float, where: int) -> None:
    """Wherever it stands in its group, and whichever group that is."""
    g, largest = np.array([1.0, 3.0, 2.0]), np.zeros(2)
    g[where] = what
    for groups in (np.array([0, 0, 0]), np.array([1, 1, 1]), np.array([1, 0, 1])):
        largest[:] = 0.0
        passes.raise_to_largest(groups, g, largest)
        np.testing.assert_array_equal(largest[groups[where]], what)
        with np.errstate(invalid="ignore"):  # plain Python says that inf - inf is not a number
            bound = bound_on_g(np.ones(2), largest, np.array([2]), np.zeros(1), 0.0, 0.0, 1, 0.0)
        assert bound == (np.inf, np.inf)


@pytest.mark.parametrize("size", [1e-240, 1e-200, 1e-100, 1.0])
def test_short_candidates_outside_the_range_of_the_weights_have_infinite_variance(size):
    x = np.array([[1.0, 0], [0, 1], [size, size], [size, 0], [0, size]])
    variances = od.certify(od.DesignProblem(x), [1.0, 0, 0, 0, 0]).variances
    assert np.isinf(variances).tolist() == [False, True, True, False, True]


@pytest.mark.parametrize(
    "units", [(1e41, 1e-99, 1e-50, 1e41), (1e20, 1e-20, 1e-30, 1e20), (1.0, 1.0, 1.0, 1.0)]
)
def test_log_det_of_columns_in_very_different_units(units):
    """The first and the last column cancel exactly in two rows, and their round-off is no pivot."""
    rows = [
        [-2, -3, 2, 3], [-2, 0, 0, -1], [1, -1, -2, -3], [1, -2, -3, 0], [-1, 2, 0, 2], [-3, -3, 1, 0],
        [2, -1, -3, -1], [2, -3, 1, -3], [2, -2, 0, 3], [2, 1, 3, 1], [2, 1, -3, 3], [0, -3, -1, -2],
    ]  # fmt: skip
    log_det = od.certify(od.DesignProblem(np.array(rows) * units, budgets=12), np.ones(12)).log_det
    expected = np.linalg.slogdet(np.transpose(rows) @ rows)[1] + 2 * np.sum(np.log(units))
    assert log_det == pytest.approx(expected, abs=1e-9)


def test_negative_round_off_of_given_weights_is_zero() -> None:
    x = np.linspace(-1, 1, 9)
    p = od.DesignProblem(np.column_stack([np.ones(9), x, x**2]))
    w = np.zeros(9)
    w[[0, 4, 8]] = 1 / 3
    w[1:3] = -5e-7, 5e-7
    given = od.DesignResult.given(p, w)
    assert given.support.tolist() == [0, 2, 4, 8]
    assert "efficiency" in str(given)
    assert od.verify(given).agrees
    for cost in (None, np.where(np.arange(9) == 1, 1e9, 1.0)):
        sparse = od.sparsify(given, cost=cost)
        assert sparse.weights.min() == 0
        assert sparse.weights.sum() == pytest.approx(1.0, abs=1e-6)
    assert od.verify(replace(given, weights=w)).agrees  # as results of other origin may have them


def test_singular_weights_of_many_candidates_need_little_memory() -> None:
    x = np.random.default_rng(0).normal(size=(60_000, 3))
    x[:, 2] = 0.0
    problem = od.DesignProblem(np.vstack([x, np.eye(3)]))
    c = od.certify(problem, np.append(np.full(60_000, 1 / 60_000), np.zeros(3)))
    assert np.isinf(c.variances).tolist() == [False] * 60_002 + [True]
    assert np.mean(c.variances[:60_000]) == pytest.approx(2.0)
