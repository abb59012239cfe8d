"""Designs one can read: no dust, few candidates, and still certified."""

import itertools

import numpy as np
import pytest
from problems import METHODS, assert_certified, random_problem
from scipy.linalg import hadamard

import optdesign as od
from optdesign.design.certificate import rescale_and_certify
from optdesign.solvers import tidy

TOL = 1e-6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("points", "degree"), [(2003, 3), (2003, 2), (5001, 5)])
def test_a_polynomial_on_a_fine_grid(points: int, degree: int, method: str) -> None:
    """The optimum has degree + 1 points; on a grid each may be shared by two or three neighbours."""
    r = od.solve(od.DesignProblem(np.vander(np.linspace(-1, 1, points), degree + 1)), tol=TOL, method=method)
    assert_certified(r, TOL)
    assert degree + 1 <= len(r.support) <= 3 * (degree + 1)
    assert r.weights[r.support].min() > 1e-4 * r.weights.max()


@pytest.mark.parametrize("method", METHODS)
def test_a_quadratic_surface_on_a_fine_grid(method: str) -> None:
    a, b = np.array(list(itertools.product(np.linspace(-1, 1, 41), repeat=2))).T
    x = np.column_stack([np.ones(len(a)), a, b, a * a, a * b, b * b])
    r = od.solve(od.DesignProblem(x), tol=TOL, method=method)
    assert_certified(r, TOL)
    assert len(r.support) == 9


def test_dust_is_swept_up_and_what_is_needed_stays() -> None:
    problem = random_problem(0, "classical")
    best = od.solve(problem, tol=1e-9)
    dusty, certificate = rescale_and_certify(problem, best.weights + 1e-9 * problem.uniform())
    allowed = 1e-6 * problem.rank
    assert certificate.gap <= allowed
    clean, proof = tidy.tidied(problem, dusty, certificate, allowed)
    assert np.flatnonzero(clean).tolist() == best.support.tolist()
    assert proof.gap <= allowed
    assert proof.gap == od.certify(problem, clean).gap


def test_weights_that_nothing_can_be_taken_from_come_back() -> None:
    """A polygon's vertices share the weight equally: an optimum on all of them, and as good as any."""
    turn = np.linspace(0, np.pi, 50, endpoint=False)
    problem = od.DesignProblem(np.column_stack([np.cos(turn), np.sin(turn)]))
    w, certificate = rescale_and_certify(problem, problem.uniform())
    assert len(w) > problem.support_bound
    assert tidy.tidied(problem, w, certificate, 1e-6)[0] is w


def test_one_candidate_a_group_is_as_few_as_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked at."""
    rng = np.random.default_rng(0)
    problem = od.DesignProblem.shared(rng.normal(size=(20, 3, 2)))
    weights = np.zeros(60)
    weights[::3] = 1.0
    certificate = od.certify(problem, weights)
    monkeypatch.setattr(tidy, "_merge_equal", None)
    assert tidy.tidied(problem, weights, certificate, np.inf) == (weights, certificate)


@pytest.mark.parametrize("method", METHODS)
def test_equal_candidates_are_merged(method: str) -> None:
    x = np.random.default_rng(0).normal(size=(5, 3))
    problem = od.DesignProblem(np.tile(x, (1000, 1)))
    r = od.solve(problem, tol=TOL, method=method)
    assert_certified(r, TOL)
    assert len(r.support) <= 5
    levels = od.DesignProblem(np.eye(3)[np.arange(600) % 3], groups=np.arange(600) % 2)
    assert len(od.solve(levels, tol=TOL, method=method).support) <= 6


def test_zero_vectors_of_different_groups_stay_apart() -> None:
    """A group of zero vectors keeps a candidate for its budget, and only one."""
    x = np.random.default_rng(0).normal(size=(40, 3)) * (np.arange(40) // 5 % 2)[:, None]
    r = od.solve(od.DesignProblem(x, np.arange(40) // 5), tol=1e-6)
    assert len(r.support) <= r.problem.support_bound
    np.testing.assert_allclose(np.bincount(r.problem.groups, weights=r.weights), 1.0)


def test_equal_weights_of_different_candidates_are_not_certified_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No weight is small and no candidates are equal, so there is nothing to try."""
    turn = np.linspace(0, np.pi, 50, endpoint=False)
    problem = od.DesignProblem(np.column_stack([np.cos(turn), np.sin(turn)]))
    w, certificate = rescale_and_certify(problem, problem.uniform())
    tries = []
    monkeypatch.setattr(
        tidy, "rescale_and_certify", lambda *given: tries.append(given) or rescale_and_certify(*given)
    )
    tidy.tidied(problem, w, certificate, 1e-6)
    assert not tries


def test_the_first_of_equal_candidates_may_have_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It stands for the one that has it all, and is not left out for what it had itself."""
    tries = []
    monkeypatch.setattr(
        tidy, "rescale_and_certify", lambda *given: tries.append(given) or rescale_and_certify(*given)
    )
    x = np.random.default_rng(0).normal(size=(30, 3))
    best = od.solve(od.DesignProblem(x), tol=1e-9)
    problem = od.DesignProblem(np.vstack([x, x]))
    dusty = np.concatenate([1e-9 * best.weights, (1 - 1e-9) * best.weights])
    w, certificate = rescale_and_certify(problem, dusty)
    assert np.count_nonzero(w) == 2 * len(best.support)
    clean, proof = tidy.tidied(problem, w, certificate, 1e-6)
    assert np.flatnonzero(clean).tolist() == best.support.tolist()
    assert proof.gap <= 1e-6
    assert len(tries) == 1


def test_steps_are_worth_it_for_those_that_are_kept() -> None:
    """Replicates that differ by noise: most have next to nothing, and steps on the others take no time."""
    rng = np.random.default_rng(0)
    x = np.repeat(hadamard(32).astype(float), 60, axis=0)
    r = od.solve(od.DesignProblem(x + 1e-3 * rng.normal(size=x.shape)), tol=1e-8)
    assert_certified(r, 1e-8)
    assert len(r.support) == 32
