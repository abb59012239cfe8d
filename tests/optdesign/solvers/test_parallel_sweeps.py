"""Parallel sweeps: they ascend, keep optima, and do not depend on the number of threads."""

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
    return r, bca._state(r, r.restrict(weights))[0]


def by_parts(problem: od.DesignProblem, n_parts: int, sweeps: int) -> tuple[np.ndarray, np.ndarray]:
    """log Det before and after every sweep by so many parts, and the weights."""
    r, state = at(problem, problem.uniform())
    state.recompute_inverse()
    values, w, u = [], problem.uniform(), state.u
    for _ in range(sweeps):
        values.append(od.certify(problem, w).log_det)
        state.visit(0, r.n_groups, n_parts)
        assert np.all(u >= 0)
        np.testing.assert_allclose(np.add.reduceat(u, r.starts[:-1]), 1, rtol=1e-12)
        r.extend(u, w)
    return np.array([*values, od.certify(problem, w).log_det]), w


@pytest.mark.kernels
@pytest.mark.parametrize("n_parts", [2, 3, 8])
@pytest.mark.parametrize("structure", ["disjoint", "shared"])
@pytest.mark.parametrize("family", ["gauss", "same", "clust"])
def test_log_det_rises_by_any_number_of_parts(family: str, structure: str, n_parts: int) -> None:
    """As concavity has it; with as few groups as parts, too, and with groups that are most of a block."""
    for clients in (n_parts, 5, 20):
        x = instances.features(family, clients, 4, 2)
        x[0] *= 1e3
        values, w = by_parts(getattr(od.DesignProblem, structure)(x), n_parts, 6)
        assert np.all(np.diff(values) >= -1e-9)
        assert values[-1] > values[0] or clients == 2  # two clients are all that two dimensions have
        assert np.isfinite(od.certify(getattr(od.DesignProblem, structure)(x), w).gap)


def test_parallel_sweeps_keep_an_optimum() -> None:
    problem = od.DesignProblem.disjoint(np.random.default_rng(0).normal(size=(40, 3, 2)))
    best = od.solve(problem, tol=1e-13)
    r, state = at(problem, best.weights)
    state.recompute_inverse()
    before, total = state.inverse.copy(), state.visit(0, 40, 2)
    np.testing.assert_allclose(r.restrict(best.weights), state.u, atol=1e-6)
    np.testing.assert_allclose(state.inverse, before, rtol=1e-6)
    assert total == pytest.approx(problem.rank, rel=1e-6)


@pytest.mark.parametrize("threads", [1, 2])
def test_many_groups_are_visited_by_parts(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a sweep is more than a piece of work, whichever number of threads: the same digits, and the gap
    that was asked for.
    """
    visits = []
    visit = bca._State.visit
    monkeypatch.setattr(
        bca._State,
        "visit",
        lambda s, first, last, n_parts: visits.append(n_parts) or visit(s, first, last, n_parts),
    )
    monkeypatch.setattr(bca, "PARAMETERS", bca.PARAMETERS._replace(work=1e4, groups_per_parameter=150))
    monkeypatch.setattr(cores, "PIECE", 1 << 12)
    for structure in ("disjoint", "shared"):
        problem = getattr(od.DesignProblem, structure)(np.random.default_rng(0).normal(size=(1300, 2, 2)))
        result = od.solve(problem, tol=1e-5, method="bca", threads=threads)
        assert_certified(result, 1e-5)
        one = od.solve(problem, tol=1e-5, method="bca", threads=1)
        np.testing.assert_array_equal(result.weights, one.weights)
    assert set(visits) == {bca.PARAMETERS.parts}
    visits.clear()
    # 1,300 groups are too few for four parameters.
    monkeypatch.setattr(bca, "PARAMETERS", bca.PARAMETERS._replace(groups_per_parameter=400))
    od.solve(problem_of_groups(1300), tol=1e-3, method="bca", max_iter=2)
    assert set(visits) == {1}


def problem_of_groups(count: int, heavy: int = 0) -> od.DesignProblem:
    """Two blocks in two dimensions; the first few groups have budgets beside which the others are nothing."""
    budgets = np.where(np.arange(count) < heavy, 1e6, 1.0)
    return od.DesignProblem.disjoint(np.random.default_rng(0).normal(size=(count, 2, 2)), budgets=budgets)


@pytest.mark.parametrize("heavy", [10, 40])
def test_effective_groups(heavy: int) -> None:
    """Most of them if they are alike; of unequal ones those that carry the information."""
    alike, few = (at(problem, problem.uniform())[1].effective_groups() for problem in (
        problem_of_groups(300), problem_of_groups(300, heavy),
    ))  # fmt: skip
    assert 150 <= alike <= 300
    assert few <= 1.01 * heavy


def test_a_part_without_rank_is_followed_by_a_fresh_inverse() -> None:
    """If a part's matrix has no factor in floating point, that of the shares has."""
    problem = od.DesignProblem.disjoint(np.random.default_rng(0).normal(size=(40, 3, 2)))
    r, state = at(problem, problem.uniform())
    assert not state.inverse.any()
    state.visit(0, 40, 2)
    fresh = np.zeros_like(state.inverse)
    bca._recompute_inverse(r.z, r.blocks, r.starts, r.ranks, state.u, fresh, 0.0)
    np.testing.assert_allclose(state.inverse, fresh, rtol=1e-12)


@settings(max_examples=100)
@given(problems())
def test_parallel_sweeps_on_degenerate_data(problem: od.DesignProblem) -> None:
    """Even where no sweep would have any: nothing is lost, and what comes out is feasible."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bca, "PARAMETERS", bca.PARAMETERS._replace(groups_per_parameter=0))
        patch.setattr(cores, "fits_one_piece", lambda n, _: n <= 1)
        result = od.solve(problem, tol=1e-9, method="bca", max_iter=50)
    assert_feasible(problem, result.weights)
    before = od.certify(problem, problem.uniform())
    assert np.isfinite(result.gap)
    assert result.log_det >= before.log_det - 1e-9 * max(1.0, abs(before.log_det))
