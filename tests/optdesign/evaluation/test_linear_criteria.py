"""A- and I-efficiency as lower bounds: against optima in closed form, rationals, cvxpy and other designs."""

from fractions import Fraction
from itertools import product

import cvxpy as cp
import numpy as np
import pytest

import optdesign as od
from optdesign.evaluation import linear_criteria
from optdesign.evaluation.efficiencies import SpannedCandidates
from optdesign.evaluation.linear_criteria import (
    BOUND_RTOL,
    Block,
    best_lower_bound,
    efficiency_bound,
    lower_bound,
)

QUADRATIC = "~ x + I(x**2)"
THREE = {"x": [-1, 0, 1]}


def least(rows, groups, blocks, budgets, root):
    """Return the least tr(K'U^-1 K) over all designs, by cvxpy."""
    w = cp.Variable(len(rows), nonneg=True)
    value = 0
    for b in np.unique(blocks):
        x = rows[blocks == b]
        u = x.T @ cp.diag(w[np.flatnonzero(blocks == b)]) @ x
        value += cp.matrix_frac(root, u)
    limits = [cp.sum(w[np.flatnonzero(groups == i)]) == f for i, f in enumerate(budgets)]
    return cp.Problem(cp.Minimize(value), limits).solve(solver="CLARABEL")


def quadratic(k):
    names = "abcd"[:k]
    return {name: [-1, 0, 1] for name in names}, f"~ quad({', '.join(names)})"


@pytest.mark.parametrize("counts", [[1, 2, 1], [1, 1, 1], [2, 3, 2], [1, 9, 1]])
def test_a_quadratic_on_three_levels(counts):
    """With weights u, v, u, tr U^-1 is 2/v + 1/u, and the average variance is the mean of 1/w.

    tr U^-1 is least, 8, for 1/4, 1/2, 1/4. The mean of 1/w is least, 3, for equal weights.
    """
    p = od.DesignProblem(od.candidates(THREE, QUADRATIC), budgets=sum(counts))
    e = od.evaluate((p, counts))
    u, v = (Fraction(c, sum(counts)) for c in counts[:2])
    for bound, exact in ((e.a_efficiency, 8 / (2 / v + 1 / u)), (e.i_efficiency, 9 / (2 / u + 1 / v))):
        assert Fraction(bound) <= exact
        assert bound >= (1 - 1.5 * BOUND_RTOL) * float(exact)


@pytest.mark.parametrize("k", [2, 3])
def test_bounds_are_below_and_close_to_cvxpy(k):
    levels, model = quadratic(k)
    p = od.DesignProblem(od.candidates(levels, model), budgets=20)
    x = p.source.whole()
    runs = od.exact(p, tries=2)
    e = od.evaluate(runs)
    c = np.linalg.inv(x.T @ (runs.counts[:, None] * x))
    moments = x.T @ x / len(x)
    one = np.zeros(len(x), int)
    for bound, root, value in (
        (e.a_efficiency, np.eye(p.dim), np.trace(c)),
        (e.i_efficiency, np.linalg.cholesky(moments), np.trace(c @ moments)),
    ):
        true = least(x, one, one, [20], root) / value
        assert (1 - 1.5 * BOUND_RTOL) * true <= bound <= true + 1e-6


def test_groups_and_parameter_blocks():
    levels = {"x": [-1, -0.5, 0, 0.5, 1], "site": ["u", "v"], "arm": ["left", "right"]}
    c = od.candidates(levels, QUADRATIC)
    p = od.DesignProblem(c, groups="site", parameter_blocks="arm", budgets={"u": 9, "v": 5})
    runs = od.exact(p, tries=2)
    e = od.evaluate(runs)
    x = p.source.whole()
    value = sum(
        np.trace(np.linalg.inv(x[own].T @ (runs.counts[own, None] * x[own])))
        for own in (np.flatnonzero(p.parameter_blocks == b) for b in (0, 1))
    )
    true = least(x, p.groups, p.parameter_blocks, p.budgets, np.eye(3)) / value
    assert (1 - 1.5 * BOUND_RTOL) * true <= e.a_efficiency <= true + 1e-6
    assert 0 < e.i_efficiency <= 1
    # D / G of several groups is that of the certificate.
    assert e.g_efficiency == pytest.approx(od.certify(p, runs.counts).g_efficiency, rel=1e-9)
    assert tuple(e.measures) == pytest.approx(tuple(runs.measures), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_any_matrix_gives_a_bound(seed):
    """The bound of a random H is below the criterion of every random design."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(12, 3))
    groups = np.arange(12) % 2
    budgets = np.array([1.0, 2.0])
    root = rng.normal(size=(3, 3))
    block = Block(x, groups, root)
    best = best_lower_bound([block], budgets)
    for _ in range(20):
        w = rng.dirichlet(np.full(6, 0.5), size=2).T.ravel() * budgets[groups]
        value = np.trace(root.T @ np.linalg.inv(x.T @ (w[:, None] * x)) @ root)
        h = rng.normal(size=(3, 3))
        assert lower_bound([block], [h], budgets) <= value
        assert best <= value
        own = [np.linalg.inv(np.linalg.cholesky(x.T @ (w[:, None] * x))).T]
        assert efficiency_bound([block], [w], own, budgets) == pytest.approx(
            best / value, rel=1.5 * BOUND_RTOL
        )


def test_units_of_the_region_and_scale_of_runs_do_not_matter():
    levels, model = quadratic(2)
    p = od.DesignProblem(od.candidates(levels, model), budgets=9)
    e = od.evaluate((p, p.uniform()))
    twice = od.evaluate((p, p.uniform()), runs=18)
    assert (twice.a_efficiency, twice.i_efficiency) == (e.a_efficiency, e.i_efficiency)
    warm = {name: [20, 30, 40] for name in levels}
    q = od.DesignProblem(od.candidates(warm, model), budgets=9)
    f = od.evaluate((q, q.uniform()))
    assert f.a_efficiency == pytest.approx(e.a_efficiency, rel=1e-9)
    assert f.i_efficiency == pytest.approx(e.i_efficiency, rel=1e-9)
    # The I-efficiency does not depend on the coding; the A-efficiency does.
    own = od.evaluate((q, q.uniform()), coded=False)
    assert own.i_efficiency == pytest.approx(e.i_efficiency, rel=1.5 * BOUND_RTOL)
    assert own.a_efficiency != pytest.approx(e.a_efficiency, rel=0.01)


def test_another_region_has_another_i_efficiency():
    p = od.DesignProblem(od.candidates(THREE, QUADRATIC), budgets=4)
    centre = od.evaluate((p, [1, 2, 1]), region={"x": [0]})
    # The variance at 0 is 1/2. It tends to 1/4 as the weights of the other levels tend to 0.
    assert centre.average_variance == pytest.approx(0.5)
    assert centre.i_efficiency == pytest.approx(0.5, rel=2 * BOUND_RTOL)


def test_designs_that_lose_rank_have_efficiency_zero():
    p = od.DesignProblem(od.candidates(THREE, QUADRATIC), budgets=4)
    e = od.evaluate((p, [2, 0, 2]))
    assert e.d_efficiency == e.a_efficiency == e.g_efficiency == e.i_efficiency == 0
    assert tuple(e.measures) == (0, 0, 0, 0)


def test_candidates_that_do_not_determine_all_coefficients():
    """A mixture with an intercept: A is that of the pseudo-inverse, I that of the predictions."""
    blends = od.simplex_lattice(["a", "b", "c"], 2)
    plain = od.DesignProblem(od.candidates(blends, "~ 0 + a + b + c"), budgets=6)
    more = od.DesignProblem(od.candidates(blends, "~ a + b + c"), budgets=6)
    e, f = (od.evaluate((p, np.ones(6))) for p in (plain, more))
    assert f.i_efficiency == pytest.approx(e.i_efficiency, rel=2 * BOUND_RTOL)
    assert 0 < f.a_efficiency <= 1
    assert SpannedCandidates.of(f.experiment).rank == 3


def test_a_region_outside_the_span_has_no_i_efficiency():
    x = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    e = od.evaluate((od.DesignProblem(x), [0.5, 0.5]), region=np.array([[1.0, 0.0, 1.0]]))
    assert np.isnan(e.i_efficiency)
    assert "I unknown" in str(e)


def test_rounding_is_taken_off(monkeypatch):
    """A bound of the optimum itself stays below 1, and larger rounding lowers it."""
    x = np.array(list(product([-1.0, 1.0], repeat=3)))
    block = Block(x, np.zeros(8, int), np.eye(3))
    parts = [block], [np.full(8, 1 / 8)], [np.eye(3)], np.ones(1)
    bound = efficiency_bound(*parts)
    assert 1 - 1e-13 < bound < 1
    monkeypatch.setattr(linear_criteria, "gamma", lambda n: n * 1e-9)
    assert 1 - 1e-6 < efficiency_bound(*parts) < bound
    monkeypatch.setattr(linear_criteria, "gamma", lambda n: n * 1.0)
    assert efficiency_bound(*parts) == 0


def test_designs_that_lose_rank_have_no_efficiency_if_columns_are_dependent():
    """Coordinates of the span are rounded, so that those of (-1, 1) and (3, -3) differ by round-off."""
    left = np.array([[0.0, 0], [-3, -1], [-1, 1], [-1, 3], [3, -3]])
    right = np.array([[-3.0, 0], [2, 3], [3, 3], [-1, 2], [-3, 1]])
    x = np.vstack([left, right])
    problem = od.DesignProblem(np.column_stack([x, x[:, 0] - x[:, 1]]), None, [0] * 5 + [1] * 5, 4)
    e = od.evaluate((problem, [0, 0, 1, 0, 1, 0, 0, 0, 1, 1]))
    assert (e.rank, e.a_efficiency, e.i_efficiency) == (3, 0, 0)


@pytest.mark.parametrize("size", [1e-30, 1e-80, 1e-120])
def test_efficiencies_of_small_features_do_not_overflow(size):
    x = np.array([[1.0, 0], [0, 1], [size, size], [size, -size]])
    e = od.evaluate((od.DesignProblem(x, None, [0, 0, 1, 1], 4), [1, 1, 1, 1]))
    assert e.a_efficiency == pytest.approx(0.5, abs=2e-3)  # nearly all weight in the second block is optimal
