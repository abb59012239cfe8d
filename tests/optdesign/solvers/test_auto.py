"""The combination of methods: the choice between stages, their names, and limits across stages."""

import itertools
import pathlib
from collections.abc import Iterator

import numpy as np
import pytest
from large_problems import many, slow_for_sweeps
from problems import assert_certified, plain
from structures import STRUCTURES, instances

import optdesign as od
from optdesign.problem import inputs as validation
from optdesign.solvers import auto, newton, start, working_set
from optdesign.solvers.costs import SWEEPS, newton_time, sweeps_time
from optdesign.solvers.method import Step
from optdesign.solvers.systems import ByGroup, ByInformation
from optdesign.testing import assert_feasible

TOL = 1e-9


def test_newton_steps_are_on_all_candidates_if_most_have_weight() -> None:
    """Six or five of ten arms of a client have weight: more than half, or not."""
    problem = slow_for_sweeps()
    client, arm = np.divmod(np.arange(problem.n_candidates), 10)
    for arms, stage in ((6, newton.STAGE), (5, working_set.STAGE)):
        w = np.where((client + arm) % 10 < arms, 1 / arms, 0.0)
        stages = {step.stage for step in auto._newton(problem, w, TOL * problem.rank, 60)}
        assert stages == {stage}
        assert od.certify(problem, w).relative_gap <= TOL


def sweeps_of(problem: od.DesignProblem, tol: float = TOL) -> int:
    """Sweeps before anything else."""
    steps = auto.run(problem, start.default_start(problem), tol * problem.rank, 10_000)
    return sum(len(s.gaps) for s in itertools.takewhile(lambda s: s.stage == "bca", steps))


def test_sweeps_stop_at_the_first_look_where_weight_is_spread() -> None:
    assert sweeps_of(slow_for_sweeps()) == SWEEPS
    # Unless the target is near.
    assert od.solve(slow_for_sweeps(), tol=2e-3).method == "auto: bca"


def test_sweeps_go_on_where_they_soon_arrive() -> None:
    for family in ("gauss", "cone", "cond"):
        problem = od.DesignProblem.disjoint(instances.features(family, 100, 10, 10))
        assert od.solve(problem, tol=TOL).method == "auto: bca"


def test_sweeps_stop_when_newton_steps_promise_to_be_faster() -> None:
    """They crawl here, and the pace of the first looks tells."""
    problem = od.DesignProblem.disjoint(instances.features("clust", 100, 10, 3))
    sweeps = sweeps_of(problem)
    assert sweeps <= 5 * SWEEPS
    assert od.solve(problem, tol=TOL, method="bca").iterations > 4 * sweeps


def test_estimates_grow_with_what_there_is_to_do() -> None:
    small, large = (od.DesignProblem.disjoint(instances.features("gauss", m, 10, 3)) for m in (30, 300))

    def sweep(problem: od.DesignProblem, positive: int) -> float:
        return sweeps_time(problem, problem.n_candidates, positive)

    for time in (sweep, newton_time):
        assert 0 < time(small, 40) < time(large, 400)
        assert time(large, 350) < time(large, 400)


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "copies", "dim"), [(100, 30, 20), (60, 20, 60)])
def test_plans_do_not_count_on_fast_iteration(
    groups: int, copies: int, dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates of a group that are nearly one: one of each is nearly optimal, and sweeps or steps on few
    get there, while products with all would be hundreds.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(groups, 1, dim)) + 1e-3 * rng.normal(size=(groups, copies, dim))
    run, sizes = newton.run, [0]
    monkeypatch.setattr(newton, "run", lambda part, *rest: sizes.append(len(part.z)) or run(part, *rest))
    problem = od.DesignProblem.shared(x)
    assert np.count_nonzero(start.default_start(problem)) <= groups + dim
    assert_certified(od.solve(problem), 1e-6)
    assert max(sizes) < 2 * groups


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("groups", [1, 3])
def test_memory_maps_are_not_copied_and_give_the_same_answer(
    tmp_path: pathlib.Path, dtype: type, groups: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).normal(size=(6000, 5)).astype(dtype)
    labels = np.arange(6000) % groups
    path = tmp_path / "x.bin"
    x.tofile(path)
    mapped = np.memmap(path, dtype=dtype, mode="r", shape=x.shape)
    monkeypatch.setattr(validation, "COPY_LIMIT", mapped.nbytes - 1)
    problem, memory = od.DesignProblem(mapped, labels), od.DesignProblem(x.astype(np.float64), labels)
    assert np.shares_memory(problem.candidates, mapped)
    assert problem.candidates.dtype == dtype
    r, expected = od.solve(problem, tol=TOL), od.solve(memory, tol=TOL)
    # float32 entries are converted before anything is computed, so not a bit differs.
    np.testing.assert_array_equal(r.weights, expected.weights)
    assert r.gap == expected.gap
    assert_certified(r, TOL)


def test_the_method_names_the_stages_in_order() -> None:
    assert od.solve(STRUCTURES["shared"], tol=TOL).method == "auto: bca"
    assert od.solve(many(), tol=TOL).method == f"auto: {working_set.STAGE}"
    assert od.solve(slow_for_sweeps(), tol=TOL).method == "auto: bca, then newton"


def test_sweeps_take_over_where_newton_steps_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """No system can be factorised: what is left is done by more sweeps."""

    def broken(*_: object) -> bool:
        return False

    for system in (ByGroup, ByInformation):
        monkeypatch.setattr(system, "factorise", broken)
    monkeypatch.setattr(newton, "step_in_one_call", lambda *_: np.inf)
    r = od.solve(slow_for_sweeps(), tol=1e-4)
    assert_certified(r, 1e-4)
    assert r.method == "auto: bca, then newton, then bca"
    assert r.iterations == len(r.history.gaps)
    limited = od.solve(slow_for_sweeps(), tol=1e-4, max_iter=30)
    assert limited.status is od.Status.MAX_ITER
    assert limited.iterations == 30


def test_max_iter_counts_over_stages() -> None:
    """One iteration less than needed ends in the second stage, a few end in the first.

    The last round of the second stage only finds out how good the round before was: what that one found is
    kept, and its certificate may hold without it.
    """
    both = "auto: bca, then newton"
    whole = od.solve(slow_for_sweeps(), tol=TOL)
    assert whole.converged
    assert whole.method == both
    for limit, method in [(1, "auto: bca"), (3, "auto: bca"), (whole.iterations - 1, both)]:
        r = od.solve(slow_for_sweeps(), tol=TOL, max_iter=limit)
        assert r.status is (od.Status.MAX_ITER if r.relative_gap > TOL else od.Status.CONVERGED)
        assert r.converged <= (method == both)
        assert r.iterations == limit == len(r.history.gaps)
        assert r.method == method
        assert_feasible(r.problem, r.weights)


@pytest.mark.parametrize("make", [slow_for_sweeps, many])
def test_time_limit_stops_any_stage(make) -> None:
    r = od.solve(make(), tol=TOL, time_limit=1e-9)
    assert r.status is od.Status.TIME_LIMIT
    assert_feasible(r.problem, r.weights)
    assert np.isfinite(r.gap)


def test_a_given_start_is_where_it_starts() -> None:
    """An optimum is recognised in the first stage, whichever that is; a sparse start is not thinned.

    Sweeps go on for a while where their running gap, which mixes groups before and after their update, is
    above the target and the certificate's is not. Neither F is further than its gap below the maximum.
    """
    for problem in (many(), slow_for_sweeps(), STRUCTURES["shared"]):
        optimum = od.solve(problem, tol=1e-10)
        again = od.solve(problem, tol=TOL, start=optimum.weights)
        assert_certified(again, TOL)
        assert again.iterations <= SWEEPS
        rounding = 2 * plain(problem, again.weights).error
        assert abs(again.log_det - optimum.log_det) <= max(again.gap, optimum.gap) + rounding
    problem = many()
    corner = np.zeros(problem.n_candidates)
    corner[problem.span.pivots.ravel()] = 1.0
    r = od.solve(problem, tol=TOL, start=corner)
    assert_certified(r, TOL)


def test_sweeps_ahead() -> None:
    """Gaps that fall tenfold a sweep, from 1e-1 to 1e-5, need four more for 1e-9; others never arrive."""
    falling = 10.0 ** -np.arange(1.0, 6.0)
    assert auto._remaining_sweeps(falling, 1e-9) == pytest.approx(4)
    assert auto._remaining_sweeps(falling[::-1], 1e-9) == np.inf
    assert auto._remaining_sweeps(np.ones(3), 1e-9) == np.inf
    # A plateau, then the same pace as above: the second half counts.
    plateau = np.concatenate([np.full(5, 1e-1), falling])
    assert auto._remaining_sweeps(plateau, 1e-9) == pytest.approx(4)
    # A steep start and a slow second half: the pace is that of the latter.
    assert auto._remaining_sweeps(np.array([1.0, 1e-2, 1e-4, 1e-5]), 1e-8) == pytest.approx(3)
    assert auto._remaining_sweeps(np.array([1.0, 1e-2, 1e-4, 1e-4]), 1e-8) == np.inf


def test_sweeps_of_large_groups_start_from_high_leverage_too() -> None:
    problem = many()
    w = start.default_start(problem)
    next(auto._sweeps(problem, w, 0.0, 1))
    assert np.count_nonzero(w) <= start.start_size(problem) + problem.rank
    assert_certified(od.solve(problem, tol=TOL, method="bca"), TOL)


@pytest.mark.slow
def test_what_rounding_adds_to_the_certificate_is_made_up_for() -> None:
    """Steps by iteration end just below their target: going on to a little less would change nothing."""
    problem = od.DesignProblem.shared(instances.features("cone", 300, 30, 100, 1))
    assert_certified(od.solve(problem, tol=3e-10, threads=1), 3e-10)


def test_sweeps_that_follow_newton_steps_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Near rounding their gap may rise, and they may go on for ever: what was better is kept."""
    problem = many(2)
    best = od.solve(problem, tol=TOL).weights.copy()

    def worse_and_worse(_: od.DesignProblem, weights: np.ndarray, *__: float) -> Iterator[Step]:
        for share in (1e-3, 1e-2):
            weights[:] = (1 - share) * weights + share * problem.uniform()
            yield Step(np.array([od.certify(problem, weights).gap]), "bca")

    monkeypatch.setattr(auto, "_sweeps", worse_and_worse)
    weights = best.copy()
    assert len(list(auto._final_sweeps(problem, weights, 0.0, 10))) == 2
    np.testing.assert_array_equal(weights, best)
    poor = problem.uniform()
    start_gap = od.certify(problem, poor).gap
    monkeypatch.undo()
    list(auto._final_sweeps(problem, poor, TOL * problem.rank, 500))
    assert od.certify(problem, poor).gap < start_gap
