"""The search for whole runs: against all whole runs of tiny problems, and against itself."""

import itertools
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from problems import plain, rank_of
from test_rounding import compositions

import optdesign as od
from optdesign.runs.exchange import OFTEN, climb, climb_on, lay_out, perturb, refreshed, state_of
from optdesign.runs.rank_two import IDLE, REFRESH
from optdesign.runs.search import Clock, Try, best_of
from optdesign.runtime import clock
from optdesign.runtime.stopping import DeferredInterrupt


def tiny(seed):
    """Groups, blocks and runs so few that all designs can be looked at."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(2), [4, 3])
    blocks = rng.integers(0, 2, size=7) if seed % 2 else np.zeros(7, int)
    x = rng.integers(-2, 3, size=(7, 2)) * 1.0
    x[0] = 1.0, 2.0
    return od.DesignProblem(x, groups, blocks, budgets=[3, 2])


def all_designs(problem):
    sizes = np.bincount(problem.groups)
    parts = (compositions(int(f), int(n)) for f, n in zip(problem.budgets, sizes, strict=True))
    return map(np.concatenate, itertools.product(*map(list, parts)))


def log_det(problem, counts):
    keeps_rank = rank_of(problem, counts) == rank_of(problem, np.ones(problem.n_candidates))
    return plain(problem, counts).log_det if keeps_rank else -np.inf


@pytest.mark.parametrize("seed", range(12))
def test_the_best_of_all_whole_runs_is_found_and_bounded(seed):
    problem = tiny(seed)
    best = max(log_det(problem, c) for c in all_designs(problem))
    if best == -np.inf:
        with pytest.raises(ValueError, match="enough runs to keep the rank"):
            od.exact(problem)
        return
    runs = od.exact(problem)
    assert runs.log_det == pytest.approx(best, abs=1e-9)
    assert np.array_equal(np.bincount(problem.groups, runs.counts), problem.budgets)
    optimum = od.solve(problem, tol=1e-9)
    assert runs.efficiency <= min(1.0, np.exp((runs.log_det - optimum.log_det) / problem.rank) + 1e-12)
    assert runs.efficiency >= np.exp((runs.log_det - optimum.log_det) / problem.rank) * (1 - 2e-6)


def test_the_outcome_depends_on_the_seed_and_not_on_the_number_of_jobs():
    rng = np.random.default_rng(3)
    x, groups = rng.normal(size=(60, 4)), np.repeat([0, 1, 2], 20)
    problem = od.DesignProblem(x, groups, np.tile([0, 1], 30), budgets=[5, 4, 3])
    one, two = (od.exact(problem, tries=5, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.counts, two.counts)
    assert (one.tries, one.status) == (5, od.RunStatus.TRIES)


@pytest.mark.parametrize(("n", "largest"), [(3, 4), (4, 16), (5, 48), (6, 160), (7, 576), (8, 4096)])
def test_saturated_two_level_designs_have_the_largest_determinant(n, largest):
    """OEIS A003433, the maximal determinants of matrices of ones and minus ones."""
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=n - 1)))
    problem = od.DesignProblem(np.column_stack([np.ones(len(corners)), corners]), budgets=n)
    assert np.exp(od.exact(problem, tries=5).log_det / 2) == pytest.approx(largest, rel=1e-9)


@pytest.mark.kernels
def test_climbing_keeps_inverse_variances_and_counts_together():
    rng = np.random.default_rng(0)
    problem = od.DesignProblem(rng.normal(size=(24, 3)), np.repeat([0, 1], 12), np.tile([0, 1, 1], 8), [7, 6])
    board, order = lay_out(problem, np.arange(24))
    start = np.zeros(24, np.int64)
    for i in (0, 1):
        rows = np.flatnonzero(problem.groups[order] == i)
        start[rows[: int(problem.budgets[i])]] = 1
    state = state_of(board, start)
    first = float(state.log_det[0])
    assert climb(*board, *state, 4) >= 4
    assert state.log_det[0] > first
    assert state.place[IDLE] < 24
    climb(*board, *state, 1000)
    assert state.place[[IDLE, OFTEN]].tolist() == [24, REFRESH]
    for _ in range(3):
        perturb(*board, *state[:4], *state[5:], rng.random(4))
        climb(*board, *state, 1000)
    counts = np.zeros(24, np.int64)
    counts[order] = state.counts
    found = plain(problem, counts)
    assert np.array_equal(np.bincount(problem.groups, counts), [7, 6])
    assert state.log_det[0] + problem.log_volume == pytest.approx(found.log_det, abs=1e-9)
    assert np.allclose(state.g, found.variances[order], rtol=1e-9)


def steep(runs=3):
    """Rows whose sizes differ by a factor of 1e8: most runs have nearly singular information."""
    features = np.column_stack([np.ones(21), np.linspace(0, 40, 21)])
    return od.DesignProblem(od.local(features, [0.0, -1.0], "logistic"), budgets=runs)


@pytest.mark.kernels
@pytest.mark.parametrize("start", [(2, 13, 20), (0, 0, 1)])
def test_gains_that_are_round_off_end_a_climb(start):
    """From (2, 13, 20) the updated inverse shows gains without end; refreshed log det shows none."""
    board, order = lay_out(steep(), np.arange(21))
    assert np.array_equal(order, np.arange(21))
    state = state_of(board, np.bincount(start, minlength=21))
    assert climb(*board, *state, 100_000) < 1000
    assert state.place[IDLE] == 21
    value = refreshed(board, state)
    assert climb_on(board, state, lambda: False) >= value
    assert np.flatnonzero(state.counts).tolist() == [0, 1]


@pytest.mark.kernels
def test_a_climb_from_runs_without_full_rank_is_over_at_once():
    board, _ = lay_out(od.DesignProblem(np.eye(5), budgets=6), np.arange(5))
    state = state_of(board, np.array([3, 1, 1, 1, 0]))
    climb(*board, *state, 100)
    assert (state.log_det[0], state.place[IDLE]) == (-np.inf, 5)
    assert state.counts.tolist() == [3, 1, 1, 1, 0]
    state = state_of(board, np.array([2, 1, 1, 1, 1]))
    perturb(*board, *state[:4], *state[5:], np.full(4, 0.99))  # the last row twice: it keeps its run
    assert state.counts.tolist() == [2, 1, 1, 1, 1]


def test_searches_in_slices_find_as_good_runs(monkeypatch):
    """Climbs that are cut are continued."""
    problem = od.DesignProblem(np.vander(np.linspace(-1, 1, 40), 4), budgets=9)
    whole = od.exact(problem, tries=2)
    monkeypatch.setattr("optdesign.runs.search.SLICE", 1.0)
    assert od.exact(problem, tries=2).log_det == pytest.approx(whole.log_det, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_one_try_is_as_good_as_rounding_with_exchanges(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(60, 4)) * 10.0 ** rng.uniform(-3, 0, size=(60, 1))
    problem = od.DesignProblem(x, np.arange(60) % 4, budgets=[2, 1, 1, 2])
    for exchange in (False, True):
        rounded = od.round(od.solve(problem), exchange=exchange)
        assert od.exact(problem, tries=1).log_det >= rounded.log_det - 1e-9


def test_a_climb_in_slices_ends_where_one_without_does(monkeypatch):
    results = []
    for work in (5e7, 1.0):
        monkeypatch.setattr("optdesign.runs.search.SLICE", work)
        board, _ = lay_out(steep(), np.arange(21))
        state = state_of(board, np.bincount([2, 13, 20], minlength=21))
        results.append(climb_on(board, state, lambda: False))
    assert results[0] == results[1]


@pytest.mark.parametrize("seed", range(3))
def test_a_search_over_rows_of_very_different_sizes_ends(seed):
    """It went on forever, beyond any time limit."""
    problem = steep()
    runs = od.exact(problem, seed=seed, tries=2)
    assert runs.log_det == pytest.approx(max(log_det(problem, c) for c in all_designs(steep())), abs=1e-9)


def test_runs_of_unfinished_weights_are_not_called_optimal():
    """The log det of weights far from the optimum is no bound on that of runs."""
    grid = np.array(list(itertools.product(np.linspace(-1, 1, 11), repeat=3)))
    pairs = itertools.combinations_with_replacement(range(3), 2)
    x = np.column_stack([np.ones(len(grid)), grid, *(grid[:, i] * grid[:, j] for i, j in pairs)])
    problem = od.DesignProblem(x, budgets=11)
    runs = od.exact(problem, time_limit=1e-6)
    assert runs.status is od.RunStatus.TIME_LIMIT
    best = od.solve(problem, tol=1e-9)
    assert runs.log_det < best.log_det - 0.5
    assert runs.efficiency <= np.exp((runs.log_det - best.log_det) / 10)


def test_optimal_runs_are_called_so_by_their_own_certificate():
    """Also after a time limit that leaves the weights unfinished."""
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
    problem = od.DesignProblem(np.column_stack([np.ones(8), corners]), budgets=8)
    runs = od.exact(problem, time_limit=10.0)
    assert runs.status is od.RunStatus.BOUND
    assert od.certify(problem, runs.counts).relative_gap <= 1e-9


def test_an_interrupt_stops_the_solver_of_the_weights_too(monkeypatch):
    solver = od.METHODS["auto"]
    steps: list[object] = []

    def interrupted(*arguments):
        for step in solver(*arguments):
            if not steps:
                signal.raise_signal(signal.SIGINT)
            steps.append(step)
            yield step

    monkeypatch.setitem(od.METHODS, "auto", interrupted)
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(2000, 10)), budgets=12)
    runs = od.exact(problem)
    assert runs.status is od.RunStatus.INTERRUPTED
    assert len(steps) == 1


def test_an_interrupt_during_the_marginal_designs_of_a_grid_is_not_lost(monkeypatch):
    """So is one during the first design of refine, whose loss would be that of an unfinished design."""
    solver = od.METHODS["auto"]

    def interrupted(*arguments):
        for step in solver(*arguments):
            signal.raise_signal(signal.SIGINT)
            yield step

    monkeypatch.setitem(od.METHODS, "auto", interrupted)
    levels = od.candidates({"a": [0, 1, 3], "b": [0, 1, 3]}, model="~ a + b")
    with pytest.raises(KeyboardInterrupt):
        od.exact(od.DesignProblem(levels, budgets=9))
    with pytest.raises(KeyboardInterrupt):
        od.refine(od.DesignProblem(levels))


def test_a_deadline_is_the_same_in_all_threads():
    """The clock of a thread stands still while it compiles; those of the others go on."""
    clock.add_first_use(1000.0)
    watch = Clock(clock.now() + 500.0, DeferredInterrupt())
    stopped = []

    def run(number):
        stopped.append(watch.stopped())
        return Try(float(number), np.empty(0))

    assert best_of(run, 4, 2, watch).tries == 4
    assert stopped == [False] * 4


class TestNearlySingular:
    """Full rank in exact arithmetic, but not in double precision."""

    forced = od.DesignProblem(
        [[1.0, 1, 0], [1, 1, 0], [1, 1 + 2**-33, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]],
        [0, 1, 1, 2, 2, 2],
        budgets=[1, 1, 1],
    )
    """The run of group 2 must have the third direction; the other two follow from rows that nearly agree."""

    @pytest.mark.parametrize("search", [od.exact, lambda p: od.round(od.solve(p), exchange=True)])
    def test_the_only_runs_of_full_rank_are_found(self, search):
        runs = search(self.forced)
        assert runs.counts.tolist() == [1, 0, 1, 0, 0, 1]
        assert runs.log_det == pytest.approx(2 * np.log(2.0**-31), rel=1e-12)
        assert 0 <= runs.efficiency <= np.exp((runs.log_det - od.solve(self.forced).log_det) / 3)
        assert runs.rank == 3

    def test_rows_too_small_for_the_solver_keep_their_rank(self):
        """The solver's weights lose rank; the runs do not."""
        t = np.array([2.0, 6, 9, 35, 36, 45, 51, 52])
        x = od.local(np.vander(t, 3, increasing=True), [1.0, -1.5, -0.05], "logistic")
        problem = od.DesignProblem(x, [0, 1, 2, 1, 1, 0, 0, 1], [0, 1, 1, 1, 0, 1, 1, 1], [2, 3, 2])
        for runs in (od.exact(problem), od.round(od.solve(problem))):
            unit = x / np.linalg.norm(x, axis=1)[:, None]
            assert (
                rank_of(od.DesignProblem(unit, problem.groups, problem.parameter_blocks), runs.counts)
                == runs.rank
            )


def test_no_single_exchange_gains():
    problem = tiny(2)
    runs = od.exact(problem)
    for m, k in itertools.permutations(range(7), 2):
        if runs.counts[m] and problem.groups[m] == problem.groups[k]:
            moved = runs.counts.copy()
            moved[[m, k]] += [-1, 1]
            assert log_det(problem, moved) <= runs.log_det + 1e-8


def test_many_candidates_are_searched_in_part_and_priced_all(monkeypatch):
    monkeypatch.setattr("optdesign.runs.exchange.LARGEST_BOARD", 600)
    grid = np.array(list(itertools.product(np.linspace(-1, 1, 21), repeat=2)))
    x = np.column_stack([np.ones(len(grid)), grid, grid**2, grid[:, 0] * grid[:, 1]])
    some = od.exact(od.DesignProblem(x, budgets=8), tries=3)
    monkeypatch.undo()
    every = od.exact(od.DesignProblem(x, budgets=8), tries=3)
    assert some.efficiency == pytest.approx(every.efficiency, rel=2e-3)


def test_one_run_one_candidate_zero_vectors_and_duplicates():
    assert od.exact(od.DesignProblem([[2.0]], budgets=1)).counts.tolist() == [1]
    x = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    runs = od.exact(od.DesignProblem(x, groups=[0, 1, 1, 2], budgets=[2, 1, 1]))
    assert runs.counts[0] == 2
    assert runs.efficiency == pytest.approx(1.0, rel=1e-6)


def test_why_a_search_ended():
    line = od.DesignProblem(np.vander([-1.0, 0.0, 1.0], 2), budgets=4)
    met = od.exact(line, time_limit=100.0)
    assert (met.status, met.tries) == (od.RunStatus.BOUND, 1)
    assert "time_limit" not in met.message
    odd = od.DesignProblem(np.vander(np.linspace(-1, 1, 40), 4), budgets=9)
    assert od.exact(odd, tries=2).status is od.RunStatus.TRIES
    in_time = od.exact(odd, tries=2, time_limit=100.0)
    assert in_time.status is od.RunStatus.TRIES_IN_TIME
    assert "set time_limit" not in in_time.message
    levels = {"a": [-1, 1], "b": [-1, 1], "c": [-1, 1]}
    assert od.exact(od.MainEffects(levels, runs=4), time_limit=100.0).status is od.RunStatus.BOUND


def test_time_limits_and_mistakes():
    problem = od.DesignProblem(np.vander(np.linspace(-1, 1, 40), 4), budgets=9)
    runs = od.exact(problem, time_limit=0.05)
    assert runs.status is od.RunStatus.TIME_LIMIT
    assert runs.counts.sum() == 9
    for options, message in [
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
        ({"tries": 0}, "tries must be a whole number of at least 1; got 0"),
        ({"time_limit": 0}, "time_limit must be positive seconds; got 0"),
        ({"n_jobs": 0}, "n_jobs must be a whole number, not 0; got 0"),
    ]:
        with pytest.raises(ValueError, match=re.escape(message)):
            od.exact(problem, **options)
    with pytest.raises(ValueError, match="budgets must be whole numbers of runs"):
        od.exact(od.DesignProblem(np.eye(2), budgets=1.5))
    with pytest.raises(ValueError, match="need at least 4 runs; 3 were given"):
        od.exact(od.DesignProblem(np.vander(np.linspace(-1, 1, 40), 4), budgets=3))


def test_rank_deficient_blocks_and_large_scales():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 4)) * 10.0 ** np.array([-8, 8, 0, 3])
    problem = od.DesignProblem(
        x, groups=np.repeat([0, 1], 15), parameter_blocks=np.tile([0, 1, 2], 10), budgets=[6, 5]
    )
    runs = od.exact(problem, tries=2)
    assert runs.rank == 6
    assert 0.8 < runs.efficiency <= 1


LISTS = """
import optdesign as od
levels, surface = {"x": [20, 40, 60], "y": [0.1, 0.2, 0.3]}, "(x + y)**2 + I(x**2) + I(y**2)"
for factors, model, groups, runs in (
    ({"day": list("abc"), **levels}, "~ day + " + surface, "day", 4),
    (levels, "~ " + surface, None, 9),
    (levels, "~ " + surface, "x", 4),
):
    candidates = od.candidates(factors, model=model)
    print(od.exact(od.DesignProblem(candidates, groups=groups, budgets=runs)).counts.tolist())
"""
"""Block effects, a grid of levels and a list; every optimum has mirror images."""


@pytest.mark.slow
def test_runs_do_not_depend_on_the_round_off_of_linear_algebra():
    """OPENBLAS_CORETYPE sets the kernels of OpenBLAS, which otherwise depend on the processor."""
    printed = {
        core: subprocess.run(
            [sys.executable, "-c", LISTS],
            env={**os.environ, "OPENBLAS_CORETYPE": core},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for core in ("Nehalem", "Sandybridge", "Haswell")
    }
    assert len(set(printed.values())) == 1, printed


def test_grids_with_repeated_candidates_have_the_runs_of_their_settings() -> None:
    model = "~ x + y"
    listed = od.candidates({"x": [0, 5, 10], "y": [1, 2, 10], "unused": [1, 2, 3]}, model)
    runs = od.exact(od.DesignProblem(listed, budgets=12), seed=0)
    alone = od.exact(od.DesignProblem(od.candidates({"x": [0, 5, 10], "y": [1, 2, 10]}, model), budgets=12))
    assert runs.log_det == pytest.approx(alone.log_det)
    assert runs.efficiency == pytest.approx(alone.efficiency)
    x = np.array([[1.0, a, b] for a in (-1, 1) for b in (-1, 1)] + [[1.0, -1.0, -1.0]])
    assert od.exact(od.DesignProblem(x, budgets=8)).log_det == pytest.approx(3 * np.log(8))


def test_the_largest_budgets_do_not_overflow():
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(300, 10)), budgets=2.0**53)
    runs = od.exact(problem, tries=1)
    assert sum(runs.counts.tolist()) == 2**53
