"""Limits of searches for whole runs: more work is never worse, and every search ends."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from problems import quadratic
from test_moves import block_design

import optdesign as od
from optdesign.design import certificate
from optdesign.runs import exact
from optdesign.runs.grid import find_grid
from optdesign.runs.main_effects import Bounded, level_moves
from optdesign.runs.search import SLICE, Clock, Slices, Try, best_of, iterate, stream
from optdesign.runs.structure import moves_of
from optdesign.runtime import clock
from optdesign.runtime.stopping import DeferredInterrupt

RANDOM = np.random.default_rng(0).normal(size=(200, 8))

PROBLEMS = {
    "grid": od.DesignProblem(quadratic([-1.0, 0.0, 1.0], 4), budgets=20),
    "blocks": block_design(9, 6, 4),
    "list": od.DesignProblem(RANDOM, np.arange(200) % 2, budgets=[6, 5]),
}


def moves(name):
    if name == "factors":
        model = od.MainEffects({f"f{j}": [-1, 1] for j in range(9)}, runs=14)
        return level_moves(Bounded(model), 14)
    problem = PROBLEMS[name]
    runs = problem.budgets.astype(np.int64)
    spanning = np.zeros(problem.n_candidates, np.int64).copy
    return moves_of(od.solve(problem), runs, find_grid(problem), first=None, spanning=spanning)


@pytest.mark.parametrize("name", [*PROBLEMS, "factors"])
def test_more_work_in_a_try_is_never_worse(name):
    own, watch, values = moves(name), Clock(math.inf, DeferredInterrupt()), []
    for work in 10.0 ** np.arange(3.0, 7.0, 0.25):
        found = iterate(own, stream(3, 0), watch, most=work)
        values.append(found.value)
        assert found.value > -math.inf
    assert np.all(np.diff(values) >= 0)
    assert values[-1] > values[0]


@pytest.mark.parametrize("name", PROBLEMS)
def test_more_time_is_never_worse(name, monkeypatch):
    """Time is the number of times that the clock is read, so that it does not depend on the computer."""
    ticks = itertools.count()
    monkeypatch.setattr(clock, "now", lambda: 0.001 * next(ticks))
    values = [od.exact(PROBLEMS[name], seed=2, time_limit=t).log_det for t in (0.5, 1, 2, 4, 8)]
    assert np.all(np.diff(values) >= -1e-12)


def test_the_time_of_the_certificate_is_reserved_and_counted(monkeypatch):
    """Each computation of variances takes 10 s on a clock that stands still otherwise."""
    seconds = [0.0]

    def slow_certificate(problem, weights):
        seconds[0] += 10.0
        return certificate.certify(problem, weights)

    monkeypatch.setattr(clock, "now", lambda: seconds[0])
    for module in ("exact", "runs"):
        monkeypatch.setattr(f"optdesign.runs.{module}.certify", slow_certificate)
    problem = od.DesignProblem(RANDOM, budgets=17)
    short, long = (od.exact(problem, tries=2, time_limit=limit) for limit in (29.0, 31.0))
    assert (short.status, long.status) == (od.RunStatus.TIME_LIMIT, od.RunStatus.TRIES_IN_TIME)
    for runs in (short, long):  # one measurement and the certificate of the runs
        assert runs.seconds - runs.compile_seconds == pytest.approx(20.0)


def test_a_try_without_a_time_limit_ends_after_the_default_work(monkeypatch):
    monkeypatch.setattr("optdesign.runs.search.BUDGET", 1e-5)
    runs = od.exact(PROBLEMS["grid"], tries=3)
    assert (runs.tries, runs.counts.sum(), runs.rank) == (3, 20, 15)


def test_a_search_before_a_proof_ends_after_equal_tries():
    """The rest of the time limit belongs to the proof."""
    watch = Clock(clock.now() + 1000.0, DeferredInterrupt())
    assert best_of(lambda _: Try(1.0, np.empty(0)), None, 1, watch, prove=True).tries == 10


class State(NamedTuple):
    value: np.ndarray


class LosingRankOnce:
    """The first perturbation seems to gain, but a refresh shows that it loses rank. All others lose 10."""

    patience, bound, reach = 50, math.inf, math.inf

    def __init__(self):
        self.before = []

    def start(self, _):
        return State(np.ones(1))

    def refresh(self, state):
        return float(state.value[0]) if state.value[0] < 5 else -math.inf

    def climb(self, state, _):
        return float(state.value[0]), 1.0, True

    def perturb(self, state, _):
        self.before.append(float(state.value[0]))
        state.value[0] = 5.0 if len(self.before) == 1 else state.value[0] - 10.0

    def found(self, state):
        return state.value.copy()


def test_runs_that_lose_rank_do_not_change_the_temperature():
    """With an infinite mean loss, all worse runs would be accepted. Without it, exp(-2) of them are."""
    own = LosingRankOnce()
    found = iterate(own, stream(0, 0), Clock(math.inf, DeferredInterrupt()))
    assert found.value == 1.0
    accepted = np.count_nonzero(np.diff(own.before) < 0)
    assert 0 < accepted < 20  # of 50, where 6.8 are expected


def test_slices_of_work_are_counted():
    slices = Slices(2, lambda: False)
    assert [slices.are_used_up() for _ in range(3)] == [False, False, True]
    assert Slices(2, lambda: True).are_used_up()
    assert SLICE == 5e7


def test_rounding_is_not_far_below_the_search():
    problem = od.DesignProblem(quadratic(np.linspace(-1, 1, 7), 3), budgets=40)
    best = od.solve(problem)
    plain, rounded = (od.round(best, exchange=exchange) for exchange in (False, True))
    assert plain.log_det <= rounded.log_det
    assert rounded.efficiency > 0.9995 * od.exact(problem).efficiency


def test_a_proof_begins_only_if_there_is_time_for_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    prove = exact.proved

    def proved(*args):
        begun.append(True)
        return prove(*args)

    monkeypatch.setattr(exact, "proved", proved)
    rng = np.random.default_rng(0)
    small = od.DesignProblem(rng.normal(size=(8, 2)), budgets=5)
    large = od.DesignProblem.disjoint(rng.normal(size=(120, 120, 3)), budgets=[4.0] * 120)
    assert od.exact(small, prove=True, time_limit=60).status is od.RunStatus.PROVED
    assert begun == [True]
    runs = od.exact(large, prove=True, time_limit=1, tries=1)  # a sweep takes 1.9e9 multiplications
    assert runs.status is od.RunStatus.TIME_LIMIT
    assert runs.bound == math.inf
    assert begun == [True]
