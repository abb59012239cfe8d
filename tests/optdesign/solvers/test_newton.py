"""The interior point method: feasible and positive all the way, either system, and its limits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from problems import EPS, KINDS, assert_certified, plain, random_problem, same_family
from structures import STRUCTURES, instances
from work import free_of

import optdesign as od
from optdesign.algebra.reduced import reduce
from optdesign.solvers import newton
from optdesign.solvers.method import on_problem
from optdesign.solvers.systems import ByGroup, ByInformation, ByIteration, System
from optdesign.solvers.systems.layout import Layout
from optdesign.testing import assert_feasible

TOL = 1e-9


def one_call(_: Layout) -> None:
    """The choice of the whole step in one call."""


def systems_of(free: newton._FreeRows) -> list[System | None]:
    """Those that solve (1) to rounding, and the whole step in one call."""
    return [ByGroup(free.layout), ByInformation(free.layout), None]


def stepped(
    free: newton._FreeRows,
    system: System | None,
    x: newton._Point,
    bounds: tuple[float, float] = newton.PARAMETERS.to_boundary,
) -> float:
    """The gap after a step."""
    return newton._newton_step(free, system, x, bounds)


def uniform_start(free: newton._FreeRows) -> newton._Point:
    sizes = np.diff(free.layout.starts)
    u = np.repeat(1 / sizes, sizes)
    return newton._point_near(free, u, free.gap(u))


@pytest.mark.parametrize("name", STRUCTURES)
def test_all_systems_take_the_same_steps(name: str) -> None:
    """From the same state; later states differ by what rounding the condition of (1) lets through.

    A step multiplies eps by the ratios in u / s, which are below 1e6 in the first four steps if these keep
    some distance to the boundary.
    """
    free = free_of(STRUCTURES[name])
    if len(free.rows) == 0:
        return
    systems = systems_of(free)
    states = [uniform_start(free) for _ in systems]
    for _ in range(4):
        gaps = [stepped(free, s, x, (0.9, 0.9)) for s, x in zip(systems, states, strict=True)]
        for x, gap in zip(states, gaps, strict=True):
            np.testing.assert_allclose(states[0].u, x.u, rtol=0, atol=1e-8)
            assert gaps[0] == pytest.approx(gap, rel=1e-6, abs=1e-8)
        for x in states:
            assert np.all(x.u > 0)
            assert np.all(x.s > 0)
            np.testing.assert_allclose(np.add.reduceat(x.u, free.layout.starts[:-1]), 1, rtol=len(x.u) * EPS)


@pytest.mark.parametrize("system", [ByGroup, ByInformation, one_call])
@pytest.mark.parametrize("name", STRUCTURES)
def test_each_system_reaches_nine_digits_alone(
    name: str, system: Callable[[Layout], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choice is a matter of cost only: take it away, and each one that applies gets there as well."""
    monkeypatch.setattr(newton, "cheapest_system", system)
    assert_certified(od.solve(STRUCTURES[name], tol=TOL, method="newton"), TOL)


@pytest.mark.parametrize("kind", KINDS)
def test_inexact_steps_get_there_as_well(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conjugate gradients, stopped early, where nothing larger than the rows would fit."""
    monkeypatch.setattr(newton, "cheapest_system", ByIteration)
    assert_certified(od.solve(random_problem(3, kind), tol=1e-6, method="newton"), 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_inexact_steps_end_at_the_target(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond it would take as long as those before."""
    monkeypatch.setattr(newton, "cheapest_system", ByIteration)
    problem, target = random_problem(3, kind), 1e-6
    steps = on_problem(newton.run)(problem, problem.uniform(), target, 100)
    gaps = np.concatenate([step.gaps for step in steps])
    assert gaps[-1] <= target
    assert np.all(gaps[:-1] > target)


@pytest.mark.parametrize("kind", KINDS)
def test_every_step_is_feasible_and_the_best_gap_is_kept(kind: str) -> None:
    problem = random_problem(3, kind)
    w = problem.uniform()
    best = np.inf
    for step in on_problem(newton.run)(problem, w, TOL * problem.rank, 100):
        assert_feasible(problem, w)
        p = plain(problem, w)
        best = min(best, step.gaps[-1])
        # At the target, negligible shares are dropped as far as the target allows.
        assert p.gap <= max(best, TOL * problem.rank) + 2 * p.error
    assert best <= TOL * problem.rank


def duplicates(seed: int) -> od.DesignProblem:
    """Degenerate optima, where systems lose digits."""
    rng = np.random.default_rng(seed)
    n, groups, blocks = 100, int(rng.integers(1, 4)), int(rng.integers(1, 6))
    x = rng.integers(-1, 2, size=(n, 3)).astype(float)
    labels = np.arange(n) % groups, rng.integers(blocks, size=n)
    return od.DesignProblem(x, *labels, 10.0 ** rng.uniform(-3, 3, size=groups))


def clusters(seed: int) -> od.DesignProblem:
    """The same where slacks drift."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(9, 7))[rng.integers(9, size=112)]
    x += 0.05 * rng.normal(size=x.shape)
    labels = rng.permutation(np.arange(112) % 3), rng.integers(2, size=112)
    return od.DesignProblem(x, *labels, 10.0 ** rng.uniform(-3, 3, size=3))


@pytest.mark.slow
@pytest.mark.parametrize("family", [duplicates, clusters])
@pytest.mark.parametrize("first", range(0, 600, 200))
def test_budgets_of_many_sizes(family: Callable[[int], od.DesignProblem], first: int) -> None:
    """One in a hundred needs a second start; rounding, and so the machine, decides which. None fails."""
    for seed in range(first, first + 200):
        assert_certified(od.solve(family(seed), tol=TOL, method="newton"), TOL)


@pytest.mark.parametrize(
    ("failing", "steps"), [((4, 8), None), ((4, 5), None), ((4, 5, 6), 6), ((1,), None), ((1, 2), 2)]
)
def test_a_step_that_fails_starts_again(
    failing: tuple[int, ...], steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something was gained since the last start, and otherwise once from the uniform design: from the
    same shares the same steps would follow.
    """
    step, taken = newton._newton_step, []

    def broken(*arguments: Any) -> float:
        taken.append(step(*arguments))
        return np.inf if len(taken) in failing else taken[-1]

    monkeypatch.setattr(newton, "_newton_step", broken)
    problem = same_family(20, 4, 3)
    u = problem.uniform()
    gaps = [step.gaps[-1] for step in on_problem(newton.run)(problem, u, TOL * problem.rank, 100)]
    assert (min(gaps) <= TOL * problem.rank) == (steps is None)
    assert len(gaps) == steps if steps else len(gaps) > max(failing)


@pytest.mark.parametrize("degree", [2, 3, 4])
@pytest.mark.parametrize("n", [201, 1001, 4001])
def test_polynomials_on_fine_grids(degree: int, n: int) -> None:
    """Neighbours are nearly equal: steps that go too near the boundary do not come away from it."""
    x = np.vander(np.linspace(-1, 1, n), degree + 1, increasing=True)
    r = od.solve(od.DesignProblem(x), tol=TOL, method="newton")
    assert_certified(r, TOL)
    assert len(r.support) <= 2 * (degree + 1)
    for groups in (2, 5):
        r = od.solve(od.DesignProblem(x, np.arange(n) % groups), tol=TOL)
        assert_certified(r, TOL)
        assert r.iterations <= 100


def test_negligible_shares_are_dropped_as_far_as_the_target_allows() -> None:
    free = free_of(random_problem(0, "classical"))
    g, u = np.empty(len(free.rows)), np.full(len(free.rows), 1 / len(free.rows))
    assert newton._without_negligible(free, u, 0.0) is u
    free.evaluate(u, np.zeros_like(free.z), g)
    low, lower, *_, high = np.argsort(g)
    u[high] *= 1e-5  # its variance is the largest: without it, the gap is larger
    u[[low, lower]] *= 1e-9
    u /= u.sum()
    assert newton._without_negligible(free, u, 0.0) is u
    fewer = newton._without_negligible(free, u, np.inf)
    np.testing.assert_array_equal(np.flatnonzero(fewer == 0), np.sort([low, lower, high]))
    without = u.copy()
    without[[low, lower]] = 0.0
    without /= without.sum()
    fewer = newton._without_negligible(free, u, free.gap(without) * (1 + 1e-12))
    np.testing.assert_array_equal(fewer == 0, without == 0)


def test_candidates_that_are_not_needed_have_weight_zero() -> None:
    """At an optimum on few candidates the others have a weight of zero, not of the order of mu."""
    r = od.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(500, 3))), tol=TOL, method="newton")
    assert_certified(r, TOL)
    # Caratheodory: an optimum needs no more than d (d + 1) / 2; Gaussian data have no ties that add any.
    assert len(r.support) <= 6


def test_gaps_fall_ever_faster_in_the_end() -> None:
    """Where the predictor leaves next to nothing, so does the step: by 0.99 of the way, it is a hundredth."""
    falls = []
    for seed in range(5):
        problem = od.DesignProblem.disjoint(instances.features("gauss", 30, 10, 3, seed))
        steps = on_problem(newton.run)(problem, problem.uniform(), TOL * problem.rank, 100)
        gaps = np.array([step.gaps[-1] for step in steps])
        falls.append((gaps[:-1] / gaps[1:]).max())
    assert np.median(falls) > 300


def grid(seed: int) -> tuple[od.DesignProblem, float]:
    """A polynomial on a grid, with budgets over twelve orders, and a tolerance not far from rounding."""
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 9)), int(10 ** rng.uniform(2, 3.4))
    x = np.linspace(-1, 1, n)
    x = np.polynomial.chebyshev.chebvander(x, d - 1) if seed % 2 else np.vander(x, d)
    m = int(rng.integers(1, 6))
    groups = rng.permutation(np.arange(n) % m) if rng.random() < 0.6 else np.arange(n) * m // n
    budgets = 10 ** rng.uniform(-6, 6, m) if rng.random() < 0.6 else None
    return od.DesignProblem(x, groups, None, budgets), float(rng.choice([1e-6, 1e-8, 1e-10, 1e-12]))


@pytest.mark.parametrize("seed", [21, 255, 1200, 1782, 1971, 2613, 2658])
def test_a_last_step_that_is_worse_is_not_the_end(seed: int) -> None:
    """The best shares are below the target and their certificate is just above: there is room to go on."""
    problem, tol = grid(seed)
    assert_certified(od.solve(problem, tol=tol, method="newton"), tol)


@pytest.mark.parametrize("seed", [846, 1083, 1296, 1518, 2490])
def test_designs_on_grids_have_few_candidates(seed: int) -> None:
    """Where a small share is needed, those that are not go all the same."""
    problem, tol = grid(seed)
    r = od.solve(problem, tol=tol, method="newton")
    assert_certified(r, tol)
    assert len(r.support) <= problem.support_bound


def test_new_starts_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where steps have failed, all that follow leave as much of the way to the boundary as the first did."""
    step, bounds = newton._newton_step, []

    def broken(*arguments: Any) -> float:
        bounds.append(arguments[-1])
        gap = step(*arguments)
        return np.inf if len(bounds) == 3 else gap

    monkeypatch.setattr(newton, "_newton_step", broken)
    problem = same_family(20, 4, 3)
    r = od.solve(problem, tol=TOL, method="newton")
    assert_certified(r, TOL)
    least, most = newton.PARAMETERS.to_boundary
    assert bounds[:3] == [(least, most)] * 3
    assert set(bounds[3:]) == {(least, least)}


def test_nothing_to_choose_is_one_step() -> None:
    problem = STRUCTURES["one candidate a group"]
    r = od.solve(problem, tol=TOL, method="newton")
    assert r.iterations == 1
    np.testing.assert_array_equal(r.weights, problem.budgets)


@pytest.mark.parametrize("theta", [0.0, 1e-3, 0.3])
def test_starts_are_interior_and_near_what_was_given(theta: float) -> None:
    """From an optimum, or a mixture of it with one candidate a group, the start is strictly positive."""
    problem = random_problem(1, "clusters")
    optimum = od.solve(problem, tol=1e-12, method="newton").weights
    mixed = (1 - theta) * optimum + theta * problem.uniform()
    reduced = reduce(problem)
    free = newton._free_rows(reduced, reduced.restrict(mixed))
    u = reduced.restrict(mixed)[free.rows]
    x = newton._point_near(free, u, free.gap(u))
    assert np.all(x.u > 0)
    assert np.all(x.s > 0)
    share = max(newton.PARAMETERS.uniform_share, free.gap(u) / (free.gap(u) + problem.rank))
    assert np.abs(x.u - u).max() <= share


def test_a_tolerance_out_of_reach_ends() -> None:
    r = od.solve(same_family(20, 4, 3), tol=1e-300, method="newton")
    assert r.status in (od.Status.STALLED, od.Status.PRECISION)
    assert r.relative_gap <= TOL


@pytest.mark.parametrize("seed", range(30))
def test_steps_end_at_gaps_that_are_rounding(seed: int) -> None:
    """Few candidates with a choice: the gap itself can fall for ever, until slacks underflow."""
    rng = np.random.default_rng(seed)
    x, groups = rng.normal(size=(10, 3)), np.array([0, 1, 2, 2, 3, 4, 5, 5, 6, 7])
    problem = od.DesignProblem(x, groups, rng.integers(0, 2, size=10), 10.0 ** rng.uniform(-1, 1, size=8))
    steps = on_problem(newton.run)(problem, problem.uniform(), 1e-300, 1000)
    gaps = np.array([step.gaps[-1] for step in steps])
    assert np.all(gaps[:-1] > EPS * problem.rank)
    r = od.solve(problem, tol=1e-300, method="newton")
    # What is left is rounding, and the certificate knows it.
    assert r.gap - r.certificate.rounding <= 100 * EPS * problem.rank * problem.n_candidates


def test_time_is_looked_at_before_the_first_step() -> None:
    r = od.solve(same_family(20, 4, 3), tol=TOL, method="newton", time_limit=1e-9)
    assert r.status is od.Status.TIME_LIMIT
    assert r.iterations == 0
    assert_feasible(r.problem, r.weights)
    assert np.isfinite(r.gap)


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_no_factorisation_fails_in_the_end(first: int) -> None:
    """Slacks over up to thirty orders: (1) is singular to rounding, and some need a larger ridge."""
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        n, d = 24, int(rng.integers(1, 4))
        x = np.repeat(rng.normal(size=(6, d)), 4, axis=0) if seed % 2 else rng.normal(size=(n, d))
        groups = np.arange(n) // int(rng.integers(2, 9))
        free = free_of(od.DesignProblem(x, groups, rng.integers(0, 2, size=n) if seed % 3 else None))
        for system in systems_of(free):
            state = uniform_start(free)
            state.s[:] = 10.0 ** -rng.uniform(0, rng.uniform(0, 30), size=len(state.s))
            assert not np.isnan(stepped(free, system, state))
            assert np.all(state.u > 0)
            np.testing.assert_allclose(np.add.reduceat(state.u, free.layout.starts[:-1]), 1, rtol=n * EPS)


def test_a_state_that_is_lost_ends_the_steps() -> None:
    """Nothing finite is left to factorise: the step comes back all the same, with no gap to believe."""
    free = free_of(STRUCTURES["mixed"])
    for system in systems_of(free):
        state = uniform_start(free)
        state.s[:] = np.nan
        assert not np.isfinite(stepped(free, system, state))


@pytest.mark.parametrize(("n", "d"), [(40, 3), (300, 40), (1500, 16)])
def test_a_block_of_zero_vectors(n: int, d: int, capfd: pytest.CaptureFixture[str]) -> None:
    """Rows of rank 0 inform nothing, and no library is asked about matrices without columns."""
    rng = np.random.default_rng(0)
    x, blocks, groups = rng.normal(size=(n, d)), rng.integers(0, 3, n), np.arange(n) % 4
    x[blocks == 1] = 0
    assert_certified(od.solve(od.DesignProblem(x, groups, blocks), method="newton", tol=1e-8), 1e-8)
    assert capfd.readouterr() == ("", "")
