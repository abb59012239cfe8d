"""Sweeps by lanes: they ascend, leave optima alone, and do not depend on the number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from problems import assert_certified
from structures import instances

import optdesign as od
from optdesign.algebra.reduced import Reduced, reduce
from optdesign.runtime import threads as cores
from optdesign.solvers import bca
from optdesign.testing import assert_feasible, problems


def at(problem: od.DesignProblem, weights: np.ndarray) -> tuple[Reduced, bca._State]:
    """The state of sweeps at some weights, with inverses that are zero so far."""
    r = reduce(problem)
    inverse = np.zeros((len(r.ranks), r.z.shape[1], r.z.shape[1]))
    separable = bca._separable(r.blocks, r.starts, len(r.ranks))
    buffers = bca._buffers(*bca._sizes(r.starts, separable, 1)[:2], r.n_groups)
    u = r.restrict(weights, problem)
    return r, bca._State(r.z, r.blocks, r.starts, separable, r.ranks, u, inverse, *buffers)


def by_lanes(problem: od.DesignProblem, lanes: int, sweeps: int) -> tuple[np.ndarray, np.ndarray]:
    """log Det before and after every sweep by so many lanes, and the weights."""
    r, state = at(problem, problem.uniform())
    state.invert_afresh()
    values, w, u = [], problem.uniform(), state.u
    for _ in range(sweeps):
        values.append(od.certify(problem, w).log_det)
        state.visit(0, r.n_groups, lanes)
        assert np.all(u >= 0)
        np.testing.assert_allclose(np.add.reduceat(u, r.starts[:-1]), 1, rtol=1e-12)
        r.extend(u, problem, w)
    return np.array([*values, od.certify(problem, w).log_det]), w


@pytest.mark.kernels
@pytest.mark.parametrize("lanes", [2, 3, 8])
@pytest.mark.parametrize("structure", ["disjoint", "shared"])
@pytest.mark.parametrize("family", ["gauss", "same", "clust"])
def test_log_det_rises_by_any_number_of_lanes(family: str, structure: str, lanes: int) -> None:
    """As concavity has it; with as few groups as lanes, too, and with groups that are most of a block."""
    for clients in (lanes, 5, 20):
        x = instances.features(family, clients, 4, 2)
        x[0] *= 1e3
        values, w = by_lanes(getattr(od.DesignProblem, structure)(x), lanes, 6)
        assert np.all(np.diff(values) >= -1e-9)
        assert values[-1] > values[0] or clients == 2  # two clients are all that two dimensions have
        assert np.isfinite(od.certify(getattr(od.DesignProblem, structure)(x), w).gap)


def test_lanes_leave_an_optimum_where_it_is() -> None:
    problem = od.DesignProblem.disjoint(np.random.default_rng(0).normal(size=(40, 3, 2)))
    best = od.solve(problem, tol=1e-13)
    r, state = at(problem, best.weights)
    state.invert_afresh()
    before, total = state.inverse.copy(), state.visit(0, 40, 2)
    np.testing.assert_allclose(r.restrict(best.weights, problem), state.u, atol=1e-6)
    np.testing.assert_allclose(state.inverse, before, rtol=1e-6)
    assert total == pytest.approx(problem.rank, rel=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_many_groups_are_visited_by_lanes(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a sweep is more than a piece of work, whichever number of threads: the same digits, and the gap
    that was asked for.
    """
    visits = []
    visit = bca._State.visit
    monkeypatch.setattr(
        bca._State,
        "visit",
        lambda s, first, last, lanes: visits.append(lanes) or visit(s, first, last, lanes),
    )
    monkeypatch.setattr(bca, "WORK", 1e4)
    monkeypatch.setattr(cores, "PIECE", 1 << 12)
    monkeypatch.setattr(bca, "CROWD", 150)
    for structure in ("disjoint", "shared"):
        problem = getattr(od.DesignProblem, structure)(np.random.default_rng(0).normal(size=(1300, 2, 2)))
        result = od.solve(problem, tol=1e-5, method="bca", threads=threads)
        assert_certified(result, 1e-5)
        one = od.solve(problem, tol=1e-5, method="bca", threads=1)
        np.testing.assert_array_equal(result.weights, one.weights)
    assert set(visits) == {bca.LANES}
    visits.clear()
    monkeypatch.setattr(bca, "CROWD", 400)  # more than 1,300 groups for four parameters
    od.solve(problem_of_groups(1300), tol=1e-3, method="bca", max_iter=2)
    assert set(visits) == {1}


def problem_of_groups(count: int, heavy: int = 0) -> od.DesignProblem:
    """Two blocks in two dimensions; the first few groups have budgets beside which the others are nothing."""
    budgets = np.where(np.arange(count) < heavy, 1e6, 1.0)
    return od.DesignProblem.disjoint(np.random.default_rng(0).normal(size=(count, 2, 2)), budgets=budgets)


@pytest.mark.parametrize("heavy", [10, 40])
def test_groups_that_matter(heavy: int) -> None:
    """Most of them if they are alike; of unequal ones those that carry the information."""
    alike, few = (at(problem, problem.uniform())[1].groups_that_matter() for problem in (
        problem_of_groups(300), problem_of_groups(300, heavy),
    ))  # fmt: skip
    assert 150 <= alike <= 300
    assert few <= 1.01 * heavy


def test_lanes_without_rank_are_followed_by_fresh_inverses() -> None:
    """Where a lane's matrix has no factor in floating point, that of the shares has."""
    problem = od.DesignProblem.disjoint(np.random.default_rng(0).normal(size=(40, 3, 2)))
    r, state = at(problem, problem.uniform())
    assert not state.inverse.any()
    state.visit(0, 40, 2)
    fresh = np.zeros_like(state.inverse)
    bca._invert_afresh(r.z, r.blocks, r.starts, r.ranks, state.u, fresh, 0.0)
    np.testing.assert_allclose(state.inverse, fresh, rtol=1e-12)


@settings(max_examples=100)
@given(problems())
def test_lanes_on_degenerate_data(problem: od.DesignProblem) -> None:
    """Even where no sweep would have any: nothing is lost, and what comes out is feasible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bca, "CROWD", 0)
        patch.setattr(cores, "undivided", lambda n, _: n <= 1)
        result = od.solve(problem, tol=1e-9, method="bca", max_iter=50)
    assert_feasible(problem, result.weights)
    before = od.certify(problem, problem.uniform())
    assert np.isfinite(result.gap)
    assert result.log_det >= before.log_det - 1e-9 * max(1.0, abs(before.log_det))
