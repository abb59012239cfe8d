"""The convex reference within limits: of the candidates per call, of time, of size; and Ctrl-C."""

import os
import signal
import threading

import numpy as np
import pytest
from problems import random_problem
from reference_limits import limit

import optdesign as od
from optdesign import reference
from optdesign.algebra.blocks import entries
from optdesign.testing import assert_feasible
from optdesign.verification import programs
from optdesign.verification.worker import Worker


def many() -> od.DesignProblem:
    """More entries than a solver is given at once, in two groups and two blocks."""
    rng = np.random.default_rng(0)
    n = 20_000
    problem = od.DesignProblem(
        rng.normal(size=(n, 4)), rng.integers(2, size=n), rng.integers(2, size=n), budgets=[1.0, 3.0]
    )
    assert entries(problem.ranks)[problem.parameter_blocks].sum() == 10 * n
    return problem


def test_of_many_candidates_a_solver_gets_those_that_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, entries=100_000)
    problem = many()
    theirs, ours = reference.solve(problem), od.solve(problem)
    assert theirs.relative_gap <= 1e-4
    assert "of 20,000 candidates" in theirs.method
    assert theirs.gap == od.certify(problem, theirs.weights).gap
    assert_feasible(problem, theirs.weights)
    assert abs(theirs.log_det - ours.log_det) <= max(theirs.gap, ours.gap)


def test_candidates_are_added_until_no_other_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Started from a basis alone, which is far from enough."""
    limit(monkeypatch, entries=100_000)
    problem = many()
    monkeypatch.setattr(reference, "first_rows", lambda problem: np.sort(problem.basis))
    r = reference.solve(problem)
    assert r.relative_gap <= 1e-4
    assert len(r.history.gaps) >= 2
    assert r.history.gaps[0] > 10 * r.gap


def test_rounds_that_end_in_failure_leave_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, entries=100_000)
    problem = many()
    monkeypatch.setattr(reference, "first_rows", lambda problem: np.sort(problem.basis))
    calls = []

    def once(reduced, solver, options):
        calls.append(solver)
        if len(calls) > 1:
            raise ArithmeticError("no step")
        return programs.dual(reduced, solver, options)

    monkeypatch.setattr(reference, "PROGRAMS", {"primal": once, "dual": once})
    r = reference.solve(problem)
    assert r.status is od.Status.STALLED
    assert r.history.gaps.tolist() == [r.gap]
    assert calls == ["CLARABEL", "CLARABEL", "CLARABEL", "SCS", "SCS"]


def test_the_number_of_rounds_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, entries=100_000)
    limit(monkeypatch, rounds=1)
    monkeypatch.setattr(reference, "first_rows", lambda problem: np.sort(problem.basis))
    r = reference.solve(many())
    assert r.status is od.Status.STALLED
    assert len(r.history.gaps) == 1


def test_every_group_and_block_keeps_candidates() -> None:
    problem = many()
    rows = reference.first_rows(problem)
    certificate = od.certify(problem, problem.uniform())
    bound = reference.largest_variances(problem, rows, certificate.variances)
    more = reference.next_rows(problem, rows, problem.uniform(), certificate.variances, bound)
    for chosen in (rows, more):
        assert len(chosen) < 0.1 * problem.n_candidates
        assert np.array_equal(chosen, np.unique(chosen))
        assert set(problem.groups[chosen]) == {0, 1}
        for b in range(2):
            assert (
                np.linalg.matrix_rank(problem.candidates[chosen[problem.parameter_blocks[chosen] == b]]) == 4
            )


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch):
    """A solver that does not come back before the test ends, after doing what it is told."""
    limit(monkeypatch, grace=0.05)
    over = threading.Event()

    def make(before=lambda: None) -> None:
        def program(*_: object) -> None:
            before()
            over.wait(30.0)

        monkeypatch.setattr(reference, "PROGRAMS", {"primal": program, "dual": program})

    yield make
    over.set()


def test_time_limits_reach_the_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As their own options, never above the limit of a call; one that is given as an option stays."""
    seen = []

    def program(_, solver, options):
        seen.append((solver, options))
        raise ArithmeticError("no step")

    monkeypatch.setattr(reference, "PROGRAMS", {"primal": program, "dual": program})
    limit(monkeypatch, call_seconds=7.0)
    with pytest.raises(ArithmeticError):
        reference.solve(od.DesignProblem(np.eye(2)))
    assert seen == [("CLARABEL", {"time_limit": 7.0})] * 2 + [("SCS", {"time_limit_secs": 7.0})] * 2
    seen.clear()
    with pytest.raises(ArithmeticError):
        reference.solve(od.DesignProblem(np.eye(2)), "SCS", time_limit=5.0, eps=1e-3)
    assert [solver for solver, _ in seen] == ["SCS", "SCS"]
    assert all(0 < options["time_limit_secs"] <= 5.0 and options["eps"] == 1e-3 for _, options in seen)


def test_at_the_time_limit_there_is_a_certified_answer(blocked) -> None:
    blocked()
    problem = random_problem(3, "shared")
    r = reference.solve(problem, time_limit=0.05)
    assert r.status is od.Status.TIME_LIMIT
    assert r.gap == od.certify(problem, problem.uniform()).gap
    assert r.method == "cvxpy, stopped before its first answer"
    assert len(r.history.gaps) == 0


def test_a_call_that_never_ends_is_a_failure(blocked, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked()
    limit(monkeypatch, call_seconds=0.05)
    with pytest.raises(TimeoutError, match=r"no answer after 0.05 s"):
        reference.solve(random_problem(3, "shared"))


def test_ctrl_c_is_answered_while_a_solver_works(blocked) -> None:
    blocked(before=lambda: os.kill(os.getpid(), signal.SIGINT))
    problem = random_problem(3, "shared")
    r = reference.solve(problem)
    assert r.status is od.Status.INTERRUPTED
    assert r.gap == od.certify(problem, r.weights).gap


def test_ctrl_c_is_answered_though_scs_takes_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCS installs a handler of its own while it works. It is asked for more than it can give."""
    limit(monkeypatch, call_seconds=10.0)
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(600, 12)))
    timer = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT])
    handler = signal.getsignal(signal.SIGINT)
    timer.start()
    try:
        r = reference.solve(problem, "SCS", eps=1e-300, max_iters=10**9)
    finally:
        timer.cancel()
        timer.join()
    assert signal.getsignal(signal.SIGINT) is handler
    assert r.status is od.Status.INTERRUPTED
    assert np.isfinite(r.gap)


def test_a_call_that_takes_too_long_is_not_tried_in_the_other_form(
    blocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[None] = []
    blocked(before=lambda: seen.append(None))
    limit(monkeypatch, call_seconds=0.05)
    with pytest.raises(TimeoutError):
        reference.solve(random_problem(3, "shared"))
    assert len(seen) == 2  # CLARABEL and SCS


def test_blocks_that_are_too_wide_for_clarabel_are_for_scs(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, clarabel_rank=2)
    r = reference.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(30, 3))), form="dual")
    assert r.method == "cvxpy/SCS (dual), after CLARABEL (dual), CLARABEL (primal) failed"
    assert r.relative_gap <= 1e-2


@pytest.mark.parametrize("form", ["primal", pytest.param("dual", marks=pytest.mark.slow)])
def test_large_calls_are_made_in_another_process(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gives the same answer."""
    problem = random_problem(3, "shared")
    here = reference.solve(problem, form=form)
    limit(monkeypatch, process_entries=1)
    monkeypatch.setattr(reference, "PROGRAMS", {"primal": None, "dual": None})  # nothing is done here
    there = reference.solve(problem, form=form)
    np.testing.assert_array_equal(there.weights, here.weights)
    assert (there.method, there.iterations) == (here.method, here.iterations)


def test_ctrl_c_ends_the_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCS is asked for more than it can give, and not waited for."""
    limit(monkeypatch, process_entries=1)
    workers = []

    class Watched(Worker):
        def end(self) -> None:
            workers.append(self.process)
            super().end()

    monkeypatch.setattr(reference, "Worker", Watched)
    timer = threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    r = reference.solve(random_problem(3, "shared"), "SCS", eps=1e-300, max_iters=10**9)
    timer.join()
    assert r.status is od.Status.INTERRUPTED
    assert workers[0].returncode is not None
    assert workers[-1] is None


def test_outside_the_main_thread_it_works_as_well() -> None:
    out = []
    thread = threading.Thread(target=lambda: out.append(reference.solve(random_problem(3, "shared"))))
    thread.start()
    thread.join()
    assert out[0].converged
