"""The combination of methods: few candidates at a time, stages and their names, limits across stages."""

import itertools
import pathlib
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest
from problems import METHODS, assert_certified, plain, random_problem
from structures import STRUCTURES, instances

import optdesign as od
from optdesign.algebra.reduced import Reduced, reduce
from optdesign.design.certificate import scale
from optdesign.problem import inputs as validation
from optdesign.runtime import threads
from optdesign.solvers import PATIENCE, Step, auto, newton, start
from optdesign.solvers import working_set as active
from optdesign.solvers.costs import SWEEPS, newton_time, sweeps_time
from optdesign.solvers.systems import ByDifference, ByGroup, ByInformation
from optdesign.testing import assert_feasible

TOL = 1e-9


def many(groups: int = 1, blocks: int = 1, n: int = 6000, dim: int = 5, seed: int = 0) -> od.DesignProblem:
    """Large groups of Gaussian candidates, in no order, with unequal budgets."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, groups, size=n), rng.integers(0, blocks, size=n)
    return od.DesignProblem(rng.normal(size=(n, dim)), *labels, budgets=1.0 + np.arange(groups))


def needed(problem: od.DesignProblem) -> int:
    """Some optimum has no more candidates with weight than n_groups + Q."""
    return problem.n_groups + int(np.sum(problem.ranks * (problem.ranks + 1) // 2))


def slow_for_sweeps() -> od.DesignProblem:
    return od.DesignProblem.disjoint(instances.features("same", 100, 10, 3))


# -------------------------------------------------------------------------------------- many candidates


@pytest.mark.parametrize(("groups", "blocks"), [(1, 1), (3, 1), (3, 2), (20, 3)])
def test_large_groups(groups: int, blocks: int) -> None:
    problem = many(groups, blocks)
    assert start.many_candidates(problem)
    r = od.solve(problem, tol=TOL)
    p = assert_certified(r, TOL)
    assert r.method == f"auto: {active.STAGE}"
    # What the rounds never looked at has been priced all the same: no candidate exceeds its group's bound.
    bound = np.array(
        [p.variances[r.weights > 0][problem.groups[r.weights > 0] == i].max() for i in range(groups)]
    )
    excess = problem.budgets[problem.groups] * (p.variances - bound[problem.groups])
    assert excess.max() <= TOL * problem.rank + 2 * p.error


def test_a_factorial_starts_from_all_of_its_runs() -> None:
    """Two levels, nine factors and their interactions: uniform weights are optimal, but not on a part."""
    runs = np.array(list(itertools.product([-1.0, 1.0], repeat=9)))
    pairs = [runs[:, i] * runs[:, j] for i, j in itertools.combinations(range(9), 2)]
    problem = od.DesignProblem(np.column_stack([np.ones(len(runs)), runs, *pairs]))
    assert start.many_candidates(problem)
    np.testing.assert_array_equal(start.default_start(problem), problem.uniform())
    assert np.count_nonzero(start.default_start(od.DesignProblem(problem.candidates[:400]))) < 100
    noise = 1e-4 * np.random.default_rng(0).normal(size=problem.candidates.shape)
    assert np.count_nonzero(start.default_start(od.DesignProblem(problem.candidates + noise))) < 100


@pytest.mark.parametrize("family", ["gauss", "same", "clust"])
def test_crowded_groups_start_from_their_leaders(family: str) -> None:
    """Of every group the candidate of largest variance under the uniform design, and a basis."""
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
    support = np.flatnonzero(start.thinned(problem))
    g = od.certify(problem, problem.uniform()).variances
    share = g / np.array([g[problem.groups == i].max() for i in range(3)])[problem.groups]
    known = np.setdiff1d(support, problem.span.pivots.ravel())
    assert len(known) >= 0.5 * start.most(problem)
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
    w = start.thinned(problem)
    assert_feasible(problem, w)
    assert np.isfinite(od.certify(problem, w).gap)
    basis = problem.span.pivots[problem.span.pivots >= 0]
    assert np.all(w[basis] > 0)
    assert np.count_nonzero(w) <= start.most(problem) + len(basis)
    # All the weights of a group are the same.
    for i in range(3):
        own = w[(problem.groups == i) & (w > 0)]
        assert np.all(own == own[0])


def test_thinned_starts_where_all_leverages_are_the_same() -> None:
    """Every fraction leaves all candidates, up to rounding, and the optimum is found from there."""
    angle = 2 * np.pi * np.arange(3000) / 3000
    problem = od.DesignProblem(np.column_stack([np.cos(angle), np.sin(angle)]))
    assert np.count_nonzero(start.thinned(problem)) <= start.most(problem) + 2
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
    assert not start.many_candidates(small)
    np.testing.assert_array_equal(start.default_start(small), small.uniform())
    np.testing.assert_array_equal(start.default_start(large), start.thinned(large))
    assert np.count_nonzero(start.default_start(large)) < large.n_candidates


@pytest.mark.parametrize("method", METHODS)
def test_a_given_start_is_never_thinned(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the uniform design: what is given is where the method starts."""

    def refuse(problem: od.DesignProblem, *_: object) -> np.ndarray:
        raise AssertionError(problem)

    problem = many(n=1000)
    default = od.solve(problem, tol=TOL, method=method)
    for name in ("thinned", "_shared_equally"):
        monkeypatch.setattr(start, name, refuse)
    r = od.solve(problem, tol=TOL, method=method, start=problem.uniform(), max_iter=5000)
    assert abs(r.log_det - default.log_det) <= max(r.gap, default.gap) + 1e-12
    assert_feasible(problem, r.weights)
    with pytest.raises(AssertionError):
        od.solve(problem, method=method)


def test_violators_are_found() -> None:
    """From a basis alone, and with the best candidates last: rounds have to bring them in."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(5000, 4))
    x[-10:] *= 100
    problem = od.DesignProblem(x)
    w = np.zeros(5000)
    w[:4] = 0.25
    gaps = [float(s.gaps[-1]) for s in active.run(problem, w, TOL * problem.rank, 60) if len(s.gaps)]
    p = plain(problem, w)
    assert gaps[-1] <= TOL * problem.rank
    assert p.gap <= TOL * problem.rank + 2 * p.error
    assert np.all(np.flatnonzero(w) >= 4990)
    # A round is priced before it starts: the first gap is that of the start.
    assert gaps[0] == pytest.approx(
        od.certify(problem, np.r_[np.full(4, 0.25), np.zeros(4996)]).gap, rel=1e-8
    )


def test_weights_of_the_best_round_are_kept_and_every_yield_is_feasible() -> None:
    problem = many(3, 2)
    w = start.thinned(problem)
    best, newton_steps = np.inf, 0
    for step in active.run(problem, w, TOL * problem.rank, 60):
        assert_feasible(problem, w)
        if len(step.gaps):
            best = min(best, float(step.gaps[-1]))
            p = plain(problem, w)
            assert p.gap <= best + 2 * p.error
        else:
            newton_steps += 1
        assert step.stage == active.STAGE
    # Control comes back between Newton steps, so that a time limit does not wait for a round.
    assert newton_steps > 0


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-8])
def test_rounds_go_on_until_the_target(tol: float) -> None:
    for seed in range(5):
        problem = many(3, 2, n=1000, seed=seed)
        w = start.thinned(problem)
        gaps = [float(s.gaps[-1]) for s in active.run(problem, w, tol * problem.rank, 60) if len(s.gaps)]
        assert all(gap > tol * problem.rank for gap in gaps[:-1])
        assert gaps[-1] <= tol * problem.rank


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(10))
def test_merged(seed: int) -> None:
    """All that is in either, once, in order; also where one is empty."""
    rng = np.random.default_rng(seed)
    for sizes in ((0, 0), (0, 5), (5, 0), (1, 1), (7, 3), (20, 30)):
        a, b = (np.unique(rng.integers(0, 40, size=size)) for size in sizes)
        got = active._merged(a, b)
        np.testing.assert_array_equal(got, np.union1d(a, b))
        assert got.dtype == np.int64


@pytest.mark.kernels
def test_replace_leaves_nothing_of_the_old_weights() -> None:
    weights, new = np.array([0.5, 0.0, 0.5, 0.0]), np.array([0.0, 0.25, 0.75, 0.0])
    active._replace(weights, np.array([0, 2]), np.array([1, 2]), new)
    np.testing.assert_array_equal(weights, new)


def rows_of_first_round(problem: od.DesignProblem, w: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> int:
    seen = []

    def counted(problem: od.DesignProblem, rows: np.ndarray | None = None) -> Reduced:
        seen.append(problem.n_candidates if rows is None else len(rows))
        return reduce(problem, rows)

    monkeypatch.setattr(active, "reduce", counted)
    list(active.run(problem, w, TOL * problem.rank, 60))
    assert od.certify(problem, w).relative_gap <= TOL
    return seen[0]


def test_a_round_takes_all_where_most_have_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten arms a client six have weight, or five: more than half, or not."""
    problem = slow_for_sweeps()
    client, arm = np.divmod(np.arange(problem.n_candidates), 10)
    for arms, every in ((6, True), (5, False)):
        w = np.where((client + arm) % 10 < arms, 1 / arms, 0.0)
        count = rows_of_first_round(problem, w, monkeypatch)
        assert 10 * count >= arms * problem.n_candidates
        assert (count == problem.n_candidates) == every


def test_rank_that_is_lost_with_those_left_out_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only candidate of a direction counts as lost here: it is taken back, and Newton steps go on."""
    x = np.random.default_rng(0).normal(size=(5_000, 4))
    x[:, 3] = np.arange(5_000) == 0
    problem = od.DesignProblem(x)
    priced = active.priced

    def without_the_first(p: od.DesignProblem, rows: np.ndarray, w: np.ndarray) -> tuple:
        gap, found, lost = priced(p, rows, w)
        return gap, found, lost | (rows == 0) | (np.arange(len(rows)) % 3 > 0)

    monkeypatch.setattr(active, "priced", without_the_first)
    w = start.default_start(problem)
    gaps = np.concatenate([step.gaps for step in active.run(problem, w, TOL * problem.rank, 60)])
    assert np.all(np.isfinite(gaps))
    assert gaps[-1] <= TOL * problem.rank
    assert od.certify(problem, w).relative_gap <= 1.01 * TOL


def test_no_brief_round_follows_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sweeps come to nothing and pricing seems to take no time, Newton steps come all the same."""
    problem = slow_for_sweeps()
    client, arm = np.divmod(np.arange(problem.n_candidates), 10)
    w = np.where((client + arm) % 10 < 5, 0.2, 0.0)
    solved, brief = active._Round.solved, []

    def recorded(*arguments: Any, **options: Any) -> Generator[Step, None, bool]:
        brief.append((yield from solved(*arguments, **options)))
        return brief[-1]

    monkeypatch.setattr(active._Round, "solved", recorded)
    monkeypatch.setattr(active, "pass_time", lambda _: 0.0)
    monkeypatch.setattr(active, "sweeps_time", lambda *_: 0.0)
    gaps = np.concatenate([step.gaps for step in active.run(problem, w, TOL * problem.rank, 60)])
    assert gaps[-1] <= TOL * problem.rank
    assert any(brief)
    assert not any(one and other for one, other in itertools.pairwise(brief))


def test_rounds_follow_what_pricing_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is new the steps of the last round go on, on the same candidates; after Newton steps,
    sweeps come only where most candidates are new.
    """
    priced, solved, steps = active.priced, active._Round.solved, active._Round.steps
    events: list[tuple[str, Any]] = []

    def looked(p: od.DesignProblem, rows: np.ndarray, w: np.ndarray) -> tuple:
        gap, found, lost = priced(p, rows, w)
        events.append(("found", len(found)))
        return gap, found, np.zeros_like(lost)

    def anew(
        round: active._Round, target: float, sweeps: bool = True, may_be_brief: bool = True
    ) -> Generator[Step, None, bool]:
        events.append(("anew", (sweeps, len(round.u))))
        return solved(round, target, sweeps, may_be_brief)

    def stepping(round: active._Round, target: float) -> Iterator[Step]:
        events.append(("steps", round))
        return steps(round, target)

    monkeypatch.setattr(active, "priced", looked)
    monkeypatch.setattr(active._Round, "solved", anew)
    monkeypatch.setattr(active._Round, "steps", stepping)
    went_on = 0
    for seed in range(8):
        problem = od.DesignProblem.shared(instances.features("clust", 60, 10, 3, seed))
        events.clear()
        assert_certified(od.solve(problem, tol=TOL), TOL)
        last, found = None, None
        for what, value in events:
            if what == "found":
                found = value
            elif what == "steps":
                if value is last:  # gone on, without a round of its own
                    assert found == 0
                    went_on += 1
                last = value
            elif last is not None:
                sweeps, count = value
                assert sweeps == (2 * found >= count) or found == 0
    assert went_on > 0


def test_what_takes_less_than_pricing_is_solved_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first gap over all candidates is then that of a design on the start alone, which is solved for."""
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(20_000, 4)))
    gaps = {}
    for pass_time in (0.0, np.inf):
        monkeypatch.setattr(active, "pass_time", lambda _, t=pass_time: t)
        w = start.default_start(problem)
        rows = np.flatnonzero(w)
        first = next(step for step in active.run(problem, w, TOL * problem.rank, 60) if len(step.gaps))
        gaps[pass_time] = first.gaps[0]
        assert set(np.flatnonzero(w)) <= set(rows)
    part = od.DesignProblem(problem.candidates[rows])
    own = od.solve(part, tol=1e-9)
    best = od.certify(problem, np.bincount(rows, weights=own.weights, minlength=20_000)).gap
    assert gaps[np.inf] <= 1.05 * best + 0.02
    assert gaps[0.0] > 2 * gaps[np.inf]


# ------------------------------------------------------------------------------------- the choice of auto


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


def test_rounds_end_where_there_is_no_progress() -> None:
    problem = many(2, 1, n=200, dim=3)
    w = problem.uniform()
    rounds = [s for s in active.run(problem, w, -1.0, 60) if len(s.gaps)]
    gaps = np.array([s.gaps[-1] for s in rounds])
    assert len(gaps) < 60
    assert np.all(gaps[-PATIENCE - 1 :] >= gaps.min())
    assert od.certify(problem, w).relative_gap <= TOL


def test_a_start_without_rank_is_priced_as_infinite() -> None:
    problem = many(2, 1, n=200, dim=3)
    gap, found, _ = active.priced(problem, np.array([0, 1]), np.array([1.0, 1.0]))
    assert gap == np.inf
    assert len(found) == 0


@pytest.mark.parametrize("seed", range(5))
def test_priced_is_the_certificate(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gap, and whose variance exceeds those of the rows in their group; in one piece or in several."""
    problem = many(3, 2, n=300, dim=3, seed=seed)
    rows = np.flatnonzero(np.random.default_rng(seed).random(300) < 0.5)
    w = np.zeros(300)
    w[rows] = (problem.budgets / np.bincount(problem.groups[rows], minlength=3))[problem.groups[rows]]
    p = plain(problem, w)
    bound = np.array([p.variances[rows][problem.groups[rows] == i].max() for i in range(3)])
    excess = p.variances - bound[problem.groups]
    for piece in (threads.PIECE, 90):
        monkeypatch.setattr(threads, "PIECE", piece)
        gap, found, _ = active.priced(problem, rows, w[rows])
        assert gap == pytest.approx(p.gap, abs=2 * p.error)
        # What is equal up to rounding may be on either side.
        assert set(np.flatnonzero(excess > 2 * p.error)) <= set(found)
        assert set(found) <= set(np.flatnonzero(excess > -2 * p.error))
        assert np.all(np.diff(found) > 0)


def test_what_seems_not_to_matter_has_little_weight_and_variance() -> None:
    """The heaviest of a group matters, also where all vectors of the group are zero."""
    problem = many(3, 1, n=300, dim=3)
    x = problem.candidates.copy()
    x[problem.groups == 2] = 0.0
    problem = od.DesignProblem(x, problem.groups)
    w = problem.uniform()
    w[::2] *= 1e-4
    rows = np.arange(300)
    scale(problem.groups, problem.budgets, w)
    _, _, lost = active.priced(problem, rows, w)
    g = od.certify(problem, w).variances
    for i in range(3):
        own = problem.groups == i
        share, short = w[own] / w[own].max(), g[own].max() - g[own]
        np.testing.assert_array_equal(lost[own], share * g[own].max() < short)
        assert not lost[own][np.argmax(w[own])]
    assert lost.any()
    assert not lost[problem.groups == 2].any()


# ------------------------------------------------------------------------------------------ memory maps


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


# -------------------------------------------------------------------------------------- stages and limits


def test_the_method_names_the_stages_in_order() -> None:
    assert od.solve(STRUCTURES["shared"], tol=TOL).method == "auto: bca"
    assert od.solve(many(), tol=TOL).method == f"auto: {active.STAGE}"
    assert od.solve(slow_for_sweeps(), tol=TOL).method == f"auto: bca, then {active.STAGE}"


def test_sweeps_take_over_where_newton_steps_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """No system can be factorised: what is left is done by more sweeps."""

    def broken(*_: object) -> Iterator[None]:
        yield
        return False

    for system in (ByDifference, ByGroup, ByInformation):
        monkeypatch.setattr(system, "factorise", broken)
    monkeypatch.setattr(newton, "step_at_once", lambda *_: np.inf)
    r = od.solve(slow_for_sweeps(), tol=1e-4)
    assert_certified(r, 1e-4)
    assert r.method == f"auto: bca, then {active.STAGE}, then bca"
    assert r.iterations == len(r.history.gaps)
    limited = od.solve(slow_for_sweeps(), tol=1e-4, max_iter=30)
    assert limited.status is od.Status.MAX_ITER
    assert limited.iterations == 30


def test_max_iter_counts_over_stages() -> None:
    """One iteration less than needed ends in the second stage, a few end in the first.

    The last round of the second stage only finds out how good the round before was: what that one found is
    kept, and its certificate may hold without it.
    """
    both = f"auto: bca, then {active.STAGE}"
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
    assert auto._sweeps_ahead(falling, 1e-9) == pytest.approx(4)
    assert auto._sweeps_ahead(falling[::-1], 1e-9) == np.inf
    assert auto._sweeps_ahead(np.ones(3), 1e-9) == np.inf
    # A plateau, then the same pace as above: the second half counts.
    plateau = np.concatenate([np.full(5, 1e-1), falling])
    assert auto._sweeps_ahead(plateau, 1e-9) == pytest.approx(4)
    # A steep start and a slow second half: the pace is that of the latter.
    assert auto._sweeps_ahead(np.array([1.0, 1e-2, 1e-4, 1e-5]), 1e-8) == pytest.approx(3)
    assert auto._sweeps_ahead(np.array([1.0, 1e-2, 1e-4, 1e-4]), 1e-8) == np.inf


def test_sweeps_of_large_groups_start_from_high_leverage_too() -> None:
    problem = many()
    w = start.default_start(problem)
    next(auto.sweeps(problem, w, 0.0, 1))
    assert np.count_nonzero(w) <= start.most(problem) + problem.rank
    assert_certified(od.solve(problem, tol=TOL, method="bca"), TOL)


def test_even_leverages_start_uniform() -> None:
    """Unit vectors in all directions: none stands out, and few of them are worse than all."""
    x = np.random.default_rng(0).normal(size=(20_000, 60))
    unit = od.DesignProblem(x / np.linalg.norm(x, axis=1, keepdims=True))
    assert start.many_candidates(unit)
    np.testing.assert_array_equal(start.thinned(unit), unit.uniform())
    stretched = od.DesignProblem(x * np.random.default_rng(1).exponential(size=(20_000, 1)))
    assert np.count_nonzero(start.thinned(stretched)) < 10_000


def test_a_poor_start_does_not_end_in_steps_on_nearly_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all candidates exceed its bounds; sweeps leave few with weight, and all are priced again."""
    problem = od.DesignProblem.shared(instances.features("clust", 100, 20, 40))
    rounds, steps = [], []
    reduced, iteration = active.reduce, newton.Iteration
    monkeypatch.setattr(active, "reduce", lambda p, rows: rounds.append(len(rows)) or reduced(p, rows))
    monkeypatch.setattr(newton, "Iteration", lambda part, u: steps.append(len(part.z)) or iteration(part, u))
    monkeypatch.setattr(start, "large_groups", lambda _: True)
    weights, target = start.thinned(problem), 1e-6 * problem.rank
    gaps = [step.gaps[-1] for step in active.run(problem, weights, target, 100) if len(step.gaps)]
    assert gaps[-1] <= target
    assert max(rounds) > 0.8 * problem.n_candidates
    assert max(steps) < 0.5 * problem.n_candidates


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

    monkeypatch.setattr(auto, "sweeps", worse_and_worse)
    weights = best.copy()
    assert len(list(auto._more_sweeps(problem, weights, 0.0, 10))) == 2
    np.testing.assert_array_equal(weights, best)
    poor = problem.uniform()
    start_gap = od.certify(problem, poor).gap
    monkeypatch.undo()
    list(auto._more_sweeps(problem, poor, TOL * problem.rank, 500))
    assert od.certify(problem, poor).gap < start_gap
