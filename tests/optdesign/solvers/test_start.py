"""Initial weights: uniform, on a basis, or on candidates of high leverage."""

import itertools

import numpy as np
import pytest
from large_problems import many
from problems import METHODS, assert_certified, random_problem
from structures import instances

import optdesign as od
from optdesign.solvers import start
from optdesign.testing import assert_feasible

TOL = 1e-9


def test_a_factorial_starts_from_all_of_its_runs() -> None:
    """Two levels, nine factors and their interactions: uniform weights are optimal, but not on a part."""
    runs = np.array(list(itertools.product([-1.0, 1.0], repeat=9)))
    pairs = [runs[:, i] * runs[:, j] for i, j in itertools.combinations(range(9), 2)]
    problem = od.DesignProblem(np.column_stack([np.ones(len(runs)), runs, *pairs]))
    assert start._has_many_candidates(problem)
    np.testing.assert_array_equal(start.default_start(problem), problem.uniform())
    assert np.count_nonzero(start.default_start(od.DesignProblem(problem.candidates[:400]))) < 100
    noise = 1e-4 * np.random.default_rng(0).normal(size=problem.candidates.shape)
    assert np.count_nonzero(start.default_start(od.DesignProblem(problem.candidates + noise))) < 100


@pytest.mark.parametrize("family", ["gauss", "same", "clust"])
def test_crowded_groups_start_from_their_leaders(family: str) -> None:
    """The start has a basis and the candidate of largest variance of every group under the uniform design."""
    problem = od.DesignProblem.shared(instances.features(family, 50, 12, 3))
    assert not start.large_groups(problem)
    w = start.default_start(problem)
    assert_feasible(problem, w)
    g = od.certify(problem, problem.uniform()).variances.reshape(50, 12)
    leaders = 12 * np.arange(50) + g.argmax(axis=1)
    assert set(np.flatnonzero(w)) == set(leaders) | set(problem.span.pivots.ravel().tolist())
    assert np.isfinite(od.certify(problem, w).gap)


def test_large_groups_start_from_those_of_highest_leverage() -> None:
    """In their group, whichever that is: as many as the start may have, of those that a sample suggests."""
    problem = many(3, 1)
    assert start.large_groups(problem)
    support = np.flatnonzero(start.high_leverage_start(problem))
    g = od.certify(problem, problem.uniform()).variances
    share = g / np.array([g[problem.groups == i].max() for i in range(3)])[problem.groups]
    known = np.setdiff1d(support, problem.span.pivots.ravel())
    assert len(known) >= 0.5 * start.start_size(problem)
    assert share[known].min() > np.median(share)


def test_others_start_uniform() -> None:
    """Few candidates a group and block, or not many more than an optimum needs."""
    x = instances.features("gauss", 50, 12, 3)
    for problem in (
        od.DesignProblem.disjoint(x),
        od.DesignProblem.shared(x[:, :7]),
        od.DesignProblem.shared(instances.features("gauss", 5, 12, 6)),
    ):
        np.testing.assert_array_equal(start.default_start(problem), problem.uniform())


@pytest.mark.parametrize("blocks", [1, 2])
def test_thinned_starts_are_feasible_sparse_and_of_full_rank(blocks: int) -> None:
    problem = many(3, blocks)
    w = start.high_leverage_start(problem)
    assert_feasible(problem, w)
    assert np.isfinite(od.certify(problem, w).gap)
    basis = problem.span.pivots[problem.span.pivots >= 0]
    assert np.all(w[basis] > 0)
    assert np.count_nonzero(w) <= start.start_size(problem) + len(basis)
    # All the weights of a group are the same.
    for i in range(3):
        own = w[(problem.groups == i) & (w > 0)]
        assert np.all(own == own[0])


def test_thinned_starts_where_all_leverages_are_the_same() -> None:
    """Every fraction leaves all candidates, up to rounding, and the optimum is found from there."""
    angle = 2 * np.pi * np.arange(3000) / 3000
    problem = od.DesignProblem(np.column_stack([np.cos(angle), np.sin(angle)]))
    assert np.count_nonzero(start.high_leverage_start(problem)) <= start.start_size(problem) + 2
    assert_certified(od.solve(problem, tol=TOL), TOL)


TIES = {
    "equal candidates": (np.repeat(np.random.default_rng(0).normal(size=(60, 3)), 20, axis=0), 60),
    "two levels": (np.random.default_rng(0).choice([-1.0, 1.0], size=(2000, 4)), 40),
    "zero groups": (
        np.random.default_rng(0).normal(size=(300, 3)) * (np.repeat(np.arange(6), 50) > 1)[:, None],
        6,
    ),
    "one of several": (np.eye(5)[np.random.default_rng(0).integers(0, 5, size=6000)], 60),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", TIES)
def test_no_group_is_left_without_a_start(name: str, method: str) -> None:
    """Leverages that tie: however many leaders there are, every group keeps one."""
    x, groups = TIES[name]
    problem = od.DesignProblem(x, np.repeat(np.arange(groups), len(x) // groups))
    w = start.default_start(problem)
    assert_feasible(problem, w)
    assert_certified(od.solve(problem, tol=1e-6, method=method), 1e-6)


def test_default_starts_are_thinned_where_there_are_many_candidates() -> None:
    small, large = random_problem(0, "shared"), many()
    assert not start._has_many_candidates(small)
    np.testing.assert_array_equal(start.default_start(small), small.uniform())
    np.testing.assert_array_equal(start.default_start(large), start.high_leverage_start(large))
    assert np.count_nonzero(start.default_start(large)) < large.n_candidates


@pytest.mark.parametrize("method", METHODS)
def test_a_given_start_is_never_thinned(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the uniform design: what is given is where the method starts."""

    def refuse(problem: od.DesignProblem, *_: object) -> np.ndarray:
        raise AssertionError(problem)

    problem = many(n=1000)
    default = od.solve(problem, tol=TOL, method=method)
    for name in ("high_leverage_start", "_equal_weights"):
        monkeypatch.setattr(start, name, refuse)
    r = od.solve(problem, tol=TOL, method=method, start=problem.uniform(), max_iter=5000)
    assert abs(r.log_det - default.log_det) <= max(r.gap, default.gap) + 1e-12
    assert_feasible(problem, r.weights)
    with pytest.raises(AssertionError):
        od.solve(problem, method=method)


def test_even_leverages_start_uniform() -> None:
    """Unit vectors in all directions: none stands out, and few of them are worse than all."""
    x = np.random.default_rng(0).normal(size=(20_000, 60))
    unit = od.DesignProblem(x / np.linalg.norm(x, axis=1, keepdims=True))
    assert start._has_many_candidates(unit)
    np.testing.assert_array_equal(start.high_leverage_start(unit), unit.uniform())
    stretched = od.DesignProblem(x * np.random.default_rng(1).exponential(size=(20_000, 1)))
    assert np.count_nonzero(start.high_leverage_start(stretched)) < 10_000
