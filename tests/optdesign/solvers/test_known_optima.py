"""Optima that can be written down: they are certified as such, and every method finds them."""

import numpy as np
import pytest
from problems import (
    EPS,
    KNOWN,
    METHODS,
    Known,
    assert_bounds,
    assert_certified,
    eigenvalue_interval,
    plain,
    relative_eigenvalues,
)

import optdesign as od
from optdesign.design.certificate import SHARES

TOL = 1e-7
ids = [k.name for k in KNOWN]


@pytest.mark.parametrize("known", KNOWN, ids=ids)
def test_the_optimum_is_certified(known: Known) -> None:
    p = plain(known.problem, known.weights)
    assert abs(p.gap) <= p.error
    c = od.certify(known.problem, known.weights)
    assert_bounds(c, p)
    assert c.rounding <= SHARES.g * c.g_value
    assert c.rank == p.rank
    assert 1 - c.relative_gap - EPS <= c.efficiency <= 1


@pytest.mark.kernels
@pytest.mark.parametrize("known", KNOWN, ids=ids)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_it(known: Known, method: str) -> None:
    r = od.solve(known.problem, tol=TOL, method=method)
    ours = assert_certified(r, TOL)
    best = plain(known.problem, known.weights)
    # The optimum's F bounds ours from above, and ours is at most its gap below.
    assert -2 * ours.error <= best.log_det - ours.log_det <= r.gap + 2 * ours.error
    low, high = eigenvalue_interval(r.gap + 2 * ours.error)
    values = relative_eigenvalues(ours, best)
    assert low - 2 * ours.error <= values.min()
    assert values.max() <= high + 2 * ours.error


@pytest.mark.parametrize("degree", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("method", METHODS)
def test_polynomial_regression_support(degree: int, method: str) -> None:
    """The weights sit on the roots of (1 - x^2) P_n'(x), in equal parts.

    sum_n w_n (max g - g_n) = gap, where max g >= D and g_n <= g*_n / low, bounds what the other points
    carry. The information of the roots alone has the eigenvalues n w_s relative to the optimal one, and
    differs from all of it by no more than D times the weight of the others. Some roots have near neighbours,
    whose variances are so near to the largest that gaps of 1e-9 do not tell them apart.
    """
    problem, best = next(k for k in KNOWN if k.name == f"polynomial-{degree}")[1:]
    r = od.solve(problem, tol=1e-10, method=method)
    assert_certified(r, 1e-10)
    x = problem.candidates[:, -2]
    roots = x[best > 0]
    at = np.abs(x[:, None] - roots) < 1e-9
    optimum = plain(problem, best)
    low, high = eigenvalue_interval(r.gap + 2 * optimum.error)
    off = ~at.any(axis=1)
    shortfall = optimum.rank - optimum.variances[off] / low
    assert shortfall.min() > 0
    stray = r.weights[off].sum()
    assert stray <= r.gap / shortfall.min()
    shares = (degree + 1) * (r.weights @ at)
    rounding = 10 * optimum.error
    assert np.all(shares >= low - optimum.rank * stray - rounding)
    assert np.all(shares <= high + rounding)


def test_a_zero_vector_is_never_better_than_a_candidate_that_informs() -> None:
    p = od.DesignProblem([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    r = od.solve(p, tol=1e-9, method="bca")
    assert_certified(r, 1e-9)
    # sum_n w_n (max g - g_n) = gap, and the zero vector has g = 0, max g >= 2.
    assert r.weights[1] <= r.gap / 2
