"""The function solve: limits, statuses, history, interrupts, and every method on every kind of problem."""

import dataclasses
import math
import signal
import threading
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from problems import (
    EPS,
    KINDS,
    METHODS,
    assert_bounds,
    assert_certified,
    exact_gap,
    plain,
    random_problem,
    same_family,
    ugly,
)

import optdesign as od
from optdesign.testing import assert_feasible, problems


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deficient", [False, True])
def test_every_method_is_certified(method: str, kind: str, deficient: bool) -> None:
    for seed in range(100, 105):
        problem = random_problem(seed, kind, deficient=deficient)
        r = od.solve(problem, tol=1e-6, method=method)
        assert_certified(r, 1e-6)
        assert r.method == method or method == "auto"


@pytest.mark.parametrize("method", METHODS)
@given(problem=problems(max_candidates=20, max_dim=4, max_groups=6, max_blocks=4))
def test_every_method_on_degenerate_data(method: str, problem: od.DesignProblem) -> None:
    assert_certified(od.solve(problem, tol=1e-3, method=method), 1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_methods_agree(method: str) -> None:
    for kind in KINDS:
        problem = random_problem(7, kind)
        a, b = od.solve(problem, tol=1e-6, method=method), od.solve(problem, tol=1e-6, method="bca")
        assert abs(a.log_det - b.log_det) <= max(a.gap, b.gap) + 2 * plain(problem, b.weights).error


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["disjoint", "shared"])
@pytest.mark.parametrize("seed", range(25))
def test_certified_in_rational_arithmetic_on_ugly_data(method: str, seed: int, kind: str) -> None:
    """Drift must not show in the certificate: the exact gap of the very weights keeps the promise, to 1 %."""
    problem = ugly(seed, kind)
    tol = 1e-6
    r = od.solve(problem, tol=tol, method=method)
    assert r.converged, str(r)
    assert_feasible(problem, r.weights)
    assert exact_gap(problem, r.weights) <= 1.01 * tol * problem.rank


# ----------------------------------------------------------------------------------- limits and statuses


def test_tol_stops_it() -> None:
    problem = same_family(10, 3, 2)
    loose, tight = (od.solve(problem, tol=tol, method="bca") for tol in (1e-1, 1e-8))
    assert loose.status is tight.status is od.Status.CONVERGED
    assert loose.iterations < tight.iterations
    assert tight.gap <= 1e-8 * tight.rank
    assert loose.converged


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_max_iter_stops_it(method: str, limit: int) -> None:
    r = od.solve(same_family(10, 3, 2), tol=1e-14, method=method, max_iter=limit)
    assert r.status is od.Status.MAX_ITER
    assert r.iterations == limit == len(r.history.gaps)
    assert_feasible(r.problem, r.weights)
    assert np.isfinite(r.gap)
    assert not r.converged


def test_time_limit_stops_it() -> None:
    r = od.solve(same_family(), tol=1e-12, method="bca", time_limit=1e-3)
    assert r.status is od.Status.TIME_LIMIT
    assert r.iterations >= 1
    assert_feasible(r.problem, r.weights)
    assert_bounds(r.certificate, plain(r.problem, r.weights))


@pytest.mark.parametrize("method", METHODS)
def test_a_tolerance_beyond_double_precision_ends(method: str) -> None:
    for seed in range(4):
        r = od.solve(random_problem(seed, "clusters"), tol=1e-300, method=method)
        assert r.status in (od.Status.STALLED, od.Status.PRECISION)
        assert r.relative_gap <= 1e-6
        assert (r.gap <= 1e-300 * r.rank) == r.converged


@pytest.mark.parametrize("tol", [1e-14, 3e-15, 1e-15])
def test_the_status_is_that_of_the_certificate(tol: float) -> None:
    """Near rounding the solver's own gap and the certificate's differ; the certificate's counts."""
    for seed in range(30):
        r = od.solve(random_problem(seed, "disjoint"), tol=tol, method="bca", max_iter=2000)
        assert r.converged == (r.gap <= tol * r.rank)
        assert r.gap == od.certify(r.problem, r.weights).gap


@pytest.mark.parametrize("delay", [0.02, 0.2])
def test_an_interrupt_ends_it_cleanly(delay: float) -> None:
    problem = same_family()
    od.solve(problem, tol=1.0, method="bca")  # compiled before the clock starts
    timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        r = od.solve(problem, tol=1e-12, method="bca")
    finally:
        timer.cancel()
    assert r.status is od.Status.INTERRUPTED
    assert_feasible(problem, r.weights)
    p = plain(problem, r.weights)
    assert_bounds(r.certificate, p)
    assert len(r.history.gaps) == r.iterations


def test_statuses_are_their_messages() -> None:
    r = od.solve(od.DesignProblem(np.eye(2)), method="bca")
    text = str(r)
    assert text.startswith(od.Status.CONVERGED.value)
    assert "method      bca" in text
    assert "support 2 of 2" in text
    assert "support 2 of 3" in str(od.solve(od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]])))
    assert len({s.value for s in od.Status}) == len(od.Status)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol must be positive and finite; got 0.0. The default"),
        ({"tol": -1.0}, "tol must be positive and finite; got -1.0"),
        ({"tol": np.nan}, "tol must be positive and finite; got nan"),
        ({"tol": np.inf}, "tol must be positive and finite; got inf"),
        ({"method": "simplex"}, "method must be one of auto, .*bca.*; got 'simplex'. Leave"),
        ({"max_iter": 0}, "max_iter must be .* got 0. Leave"),
        ({"max_iter": 1.5}, "max_iter must be .* got 1.5. Leave"),
        ({"time_limit": 0.0}, "time_limit must be positive seconds; got 0.0. Leave"),
        ({"time_limit": np.nan}, "time_limit must be positive seconds; got nan"),
        ({"start": [1.0]}, r"start must have one entry per candidate, shape \(2,\); got \(1,\). For weights"),
        ({"start": np.eye(2)}, r"start must have one entry per candidate, shape \(2,\); got \(2, 2\)"),
        ({"start": [1.0, np.nan]}, r"start must be finite and not negative; start\[1\] = nan. Leave"),
        ({"start": [-1.0, 1.0]}, r"start must be finite and not negative; start\[0\] = -1.0. Leave"),
        ({"start": [1.0, np.inf]}, r"start must be finite and not negative; start\[1\] = inf. Leave"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        od.solve(od.DesignProblem(np.eye(2)), **options)


def test_options_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        od.solve(od.DesignProblem(np.eye(2)), 1e-3)


# ------------------------------------------------------------------------------------------------ starts


# ----------------------------------------------------------------------------------- results and history


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_history_and_result_are_consistent(method: str, kind: str) -> None:
    problem = random_problem(5, kind)
    r = od.solve(problem, tol=1e-6, method=method)
    h = r.history
    assert len(h.iterations) == len(h.seconds) == len(h.gaps) == r.iterations
    np.testing.assert_array_equal(h.iterations, np.arange(1, r.iterations + 1))
    assert np.all(np.diff(h.seconds) >= 0)
    assert 0 <= h.seconds[0] <= h.seconds[-1] <= r.seconds
    c = od.certify(problem, r.weights)
    for name in ("gap", "relative_gap", "efficiency", "g_value", "log_det", "rank"):
        assert getattr(r, name) == getattr(r.certificate, name) == getattr(c, name)
    np.testing.assert_array_equal(r.variances, c.variances)
    np.testing.assert_array_equal(r.support, np.flatnonzero(r.weights > 0))
    assert r.problem is problem


def test_history_of_block_coordinate_ascent_ends_at_the_target() -> None:
    r = od.solve(random_problem(6, "disjoint"), tol=1e-6, method="bca")
    assert np.all(r.history.gaps[:-1] > 1e-6 * r.rank)
    assert r.history.gaps[-1] <= 1e-6 * r.rank


def test_candidates_must_be_wrapped_in_a_problem() -> None:
    with pytest.raises(TypeError, match=r"must be a DesignProblem; got ndarray. Wrap it: DesignProblem"):
        od.solve(np.eye(2))


def test_results_are_frozen_and_repr_is_short() -> None:
    r = od.solve(od.DesignProblem(np.eye(2)), method="bca")
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.weights = np.zeros(2)
    assert len(repr(r)) < 300


def test_runs_are_reproducible_and_independent_of_one_another() -> None:
    problem = random_problem(8, "clusters")
    a = od.solve(problem, tol=1e-6)
    od.solve(random_problem(9, "shared"), tol=1e-3)
    b = od.solve(problem, tol=1e-6)
    np.testing.assert_array_equal(a.weights, b.weights)
    assert a.iterations == b.iterations


def test_progress_changes_nothing() -> None:
    problem = random_problem(8, "clusters")
    a, b = (od.solve(problem, tol=1e-6, progress=flag) for flag in (False, True))
    np.testing.assert_array_equal(a.weights, b.weights)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_many_candidates(method: str) -> None:
    """More than a chunk, sorted and unsorted groups, so that every pass goes over several chunks."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40_000, 3))
    for groups in (np.repeat([0, 1], 20_000), np.arange(40_000) % 2):
        r = od.solve(od.DesignProblem(x, groups, budgets=[1.0, 3.0]), tol=1e-2, method=method)
        assert_certified(r, 1e-2)


# ----------------------------------------------------------------------------------- good starts and many


def test_weights_and_variances_are_read_only() -> None:
    r = od.solve(random_problem(0, "shared"))
    for array in (
        r.weights,
        r.variances,
        r.certificate.variances,
        od.certify(r.problem, r.weights).variances,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


@pytest.mark.parametrize("method", METHODS)
def test_many_solves_do_not_depend_on_the_number_of_jobs(method: str) -> None:
    many = [random_problem(seed, kind) for seed in range(3) for kind in KINDS] + [same_family(20, 4, 3)]
    expected = [od.solve(problem, tol=1e-8, method=method) for problem in many]
    for n_jobs in (1, 2, 4, -1):
        results = od.solve_many(iter(many), n_jobs=n_jobs, tol=1e-8, method=method)
        assert len(results) == len(many)
        for problem, r, e in zip(many, results, expected, strict=True):
            assert r.problem is problem
            np.testing.assert_array_equal(r.weights, e.weights)
            assert (r.gap, r.log_det, r.iterations, r.method) == (e.gap, e.log_det, e.iterations, e.method)


def test_many_solves_of_none_and_with_no_jobs() -> None:
    assert od.solve_many([]) == od.solve_many([], n_jobs=2) == []
    with pytest.raises(ValueError, match=r"n_jobs must be an integer that is not 0; got 0\. Use 1"):
        od.solve_many([random_problem(0, "shared")], n_jobs=0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_of_many_solves_come_through(n_jobs: int) -> None:
    with pytest.raises(ValueError, match="tol must be positive"):
        od.solve_many([random_problem(0, "shared")] * 2, n_jobs=n_jobs, tol=-1.0)


# ------------------------------------------------------------------------------- what is proved, and of what


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_weights_returned_are_those_certified(kind: str, method: str) -> None:
    """Sums are the budgets to a few roundings, not to what a certificate would forgive."""
    problem = random_problem(5, kind)
    r = od.solve(problem, method=method)
    sums = [math.fsum(r.weights[problem.groups == i]) for i in range(problem.n_groups)]
    np.testing.assert_allclose(sums, problem.budgets, rtol=4 * EPS)
    assert od.certify(problem, r.weights).gap == r.gap


def test_exactly_singular_designs_have_no_gap() -> None:
    """Supports that span too little, in coordinates in which that is not plain to see."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 6))
        plane = rng.integers(-9, 10, size=(8, d - 1)) @ rng.integers(-9, 10, size=(d - 1, d))
        x = np.vstack([plane, rng.normal(size=(3, d))])
        w = np.r_[rng.dirichlet(np.ones(8)), np.zeros(3)]
        c = od.certify(od.DesignProblem(x), w)
        assert c.gap == np.inf
        assert c.efficiency == 0.0


def test_rounding_that_hides_the_tolerance_is_said() -> None:
    """The weights are optimal; in double precision that cannot be proved to a hundred digits."""
    r = od.solve(od.DesignProblem(np.eye(3)), tol=1e-100)
    assert r.status is od.Status.PRECISION
    assert not r.converged
    assert 0 < r.gap <= r.certificate.rounding + 4 * EPS * r.rank
    assert "optimal up to round-off" in str(r)


def test_large_rows_do_not_leak_into_the_direction_of_a_small_one() -> None:
    r = od.solve(od.DesignProblem([[7, 1], [49, 7], [21, 3], [35, 5], [1e-16, 3e-16]]), tol=1e-9)
    assert r.converged
    np.testing.assert_allclose(r.weights, [0, 0.5, 0, 0, 0.5], atol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda _: od.certify(np.eye(2), [0.5, 0.5]),
            "problem must be a DesignProblem; got ndarray. Wrap it",
        ),
        (lambda _: od.solve(np.eye(2)), "problem must be a DesignProblem; got ndarray. Wrap it"),
        (lambda p: od.verify(p), "result must be a DesignResult or Runs; got DesignProblem. Pass solve"),
        (lambda p: od.solve(p, tol="x"), "tol must be a number; got 'x' of type str. The default"),
        (lambda p: od.solve(p, tol=True), "tol must be a number; got True of type bool."),
        (lambda p: od.solve(p, time_limit="5"), "time_limit must be a number; got '5' of type str. Leave it"),
    ],
)
def test_wrong_types_are_named_with_the_remedy(
    call: Callable[[od.DesignProblem], object], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        call(od.DesignProblem(np.eye(2)))


def test_a_tolerance_in_single_precision_is_taken_at_its_value() -> None:
    problem = od.DesignProblem(np.random.default_rng(5).normal(size=(60, 3)))
    first = od.solve(problem, tol=1e-12, max_iter=1, method="bca")
    tol = np.float32(first.relative_gap)
    r = od.solve(problem, tol=tol, max_iter=1, method="bca")
    assert r.converged == (r.gap <= float(tol) * r.rank)
    assert od.solve(problem, tol=Fraction(1, 10**6)).converged


def test_gaps_that_are_infinite_do_not_stop_auto() -> None:
    """Nothing can be proved of such data; what is said must say so, and nothing may break."""
    x = [
        [1.1046539032846749e37, 0, -8.4648841143959e-40],
        [0, 0, 0],
        [-2.080263629912305e-44, 0, 0],
        [0, 0, 1e-45],
    ]
    r = od.solve(od.DesignProblem(x, groups=[0, 1, 1, 1], parameter_blocks=[1, 0, 1, 0]))
    assert r.converged == np.isfinite(r.gap)
    assert_feasible(r.problem, r.weights)


def test_groups_without_a_choice_whatever_their_budgets() -> None:
    x = [[-1.237, -0.831], [0.2778, -2.398]]
    problem = od.DesignProblem(x, groups=[0, 1], budgets=[1e30, 1e-50])
    for method in METHODS:
        np.testing.assert_allclose(od.solve(problem, method=method).weights, [1e30, 1e-50], rtol=4 * EPS)
