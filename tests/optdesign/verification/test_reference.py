"""The convex reference, and our answers against it on random instances.

Both answers are certified by plain NumPy first. Then each F lies within its own gap below the common
maximum, so |F1 - F2| <= max(gap1, gap2) up to the rounding that ``Plain.error`` bounds, and the relative
eigenvalues of the information lie between quotients of the roots that follow from the gaps.
"""

import os
import signal
import threading

import numpy as np
import pytest
from problems import (
    KINDS,
    KNOWN,
    assert_bounds,
    eigenvalue_interval,
    plain,
    random_problem,
    relative_eigenvalues,
)
from reference_limits import limit
from structures import instances

import optdesign as od
from optdesign import reference
from optdesign.algebra.reduced import reduce
from optdesign.testing import assert_feasible
from optdesign.verification import programs
from optdesign.verification.worker import Worker

# 4 kinds x 2 x 8 = 64 instances, primal and dual by turns, Clarabel mostly and SCS on every fourth.
INSTANCES = [
    (kind, deficient, seed, "SCS" if seed % 4 == 3 else "CLARABEL", "primal" if seed % 2 else "dual")
    for kind in KINDS
    for deficient in (False, True)
    for seed in range(8)
]


@pytest.mark.parametrize(("kind", "deficient", "seed", "solver", "form"), INSTANCES)
def test_agrees_with_us(kind: str, deficient: bool, seed: int, solver: str, form: str) -> None:
    problem = random_problem(1000 + seed, kind, deficient=deficient)
    ours = od.solve(problem, tol=1e-6)
    theirs = reference.solve(problem, solver, form=form)
    assert theirs.method == f"cvxpy/{solver} ({form})"
    assert_feasible(problem, theirs.weights)
    p, q = plain(problem, ours.weights), plain(problem, theirs.weights)
    assert p.gap <= 1e-6 * p.rank + 2 * p.error
    assert_bounds(theirs.certificate, q)
    # Solvers stop at about 1e-8 (Clarabel) and 1e-4 (SCS) of their own measures; we ask for a gap that
    # makes the comparison worth something, not for theirs to be small.
    assert theirs.relative_gap <= 1e-2
    rounding = 2 * (p.error + q.error)
    assert abs(p.log_det - q.log_det) <= max(ours.gap, theirs.gap) + rounding
    assert abs(p.g_value - q.g_value) <= max(ours.gap, theirs.gap) + rounding
    (low_p, high_p), (low_q, high_q) = (eigenvalue_interval(max(0, g) + rounding) for g in (p.gap, q.gap))
    values = relative_eigenvalues(p, q)
    assert low_p / high_q - rounding <= values.min()
    assert values.max() <= high_p / low_q + rounding


@pytest.mark.parametrize("known", KNOWN, ids=[k.name for k in KNOWN])
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_known_optima(known, form: str) -> None:
    theirs = reference.solve(known.problem, form=form)
    best = plain(known.problem, known.weights)
    assert_feasible(known.problem, theirs.weights)
    assert theirs.status is od.Status.CONVERGED
    assert theirs.relative_gap <= 1e-3
    assert -2 * best.error <= best.log_det - theirs.log_det <= theirs.gap + 2 * best.error


def test_auto_takes_the_dual_when_candidates_are_many() -> None:
    rng = np.random.default_rng(0)
    many, few = (od.DesignProblem(rng.normal(size=(n, 2))) for n in (50, 5))
    assert reference.solve(many).method == "cvxpy/CLARABEL (dual)"
    assert reference.solve(few).method == "cvxpy/CLARABEL (primal)"


def test_the_status_is_that_of_our_certificate() -> None:
    problem = random_problem(0, "shared")
    r = reference.solve(problem, tol=1e-300)
    assert r.status is od.Status.STALLED
    assert r.gap == od.certify(problem, r.weights).gap
    assert r.history.gaps.tolist() == [r.gap]
    assert r.iterations >= 1


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_a_solver_that_is_stopped_at_once_is_not_believed(form: str) -> None:
    """One iteration of SCS: whatever it says, the weights are feasible and their gap is their own.

    Its weights often are a corner without full rank; they are moved inside, so the gap is finite.
    """
    for seed in range(5):
        problem = random_problem(seed, "disjoint")
        r = reference.solve(problem, "SCS", form=form, max_iters=1)
        assert_feasible(problem, r.weights)
        assert r.gap == od.certify(problem, r.weights).gap
        assert np.isfinite(r.gap)
        assert r.converged == (r.relative_gap <= 1e-3)


def test_options_reach_the_solver() -> None:
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(60, 3)))
    loose, tight = (reference.solve(problem, "SCS", eps=eps).gap for eps in (1e-1, 1e-8))
    assert tight < 0.01 * loose


@pytest.mark.parametrize("family", ["gauss", "cone", "same", "cond", "clust"])
def test_many_groups_in_one_block_are_no_trouble(family: str) -> None:
    """With the bounds scaled to one Clarabel solves the dual; unscaled it fails on each of these."""
    problem = od.DesignProblem.shared(instances.features(family, 1000, 10, 3))
    assert reference.solve(problem, form="dual").relative_gap <= 1e-5


def test_bad_form_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"form must be 'auto', 'primal' or 'dual'; got 'both'. Leave it out"
    ):
        reference.solve(od.DesignProblem(np.eye(2)), form="both")


def test_an_unknown_solver_is_an_error() -> None:
    import cvxpy

    with pytest.raises(cvxpy.error.SolverError):
        reference.solve(od.DesignProblem(np.eye(2)), "NO_SUCH_SOLVER")


def test_a_bad_time_limit_is_named() -> None:
    with pytest.raises(ValueError, match=r"time_limit must be positive seconds; got 0. Leave it out"):
        reference.solve(od.DesignProblem(np.eye(2)), time_limit=0)


class Broken:
    """Programs of which some fail: as a list of names, "SOLVER form"."""

    def __init__(self, how: str, names: list[str]) -> None:
        self.how, self.names, self.seen = how, names, []

    def __call__(self, form: str):
        def program(reduced, solver, options):
            name = f"{solver} {form}"
            self.seen.append(name)
            if name not in self.names:
                return programs.PROGRAMS[form](reduced, solver, options)
            if self.how == "raises":
                raise ArithmeticError("no step")
            corner = np.zeros(len(reduced.z))
            corner[reduced.starts[:-1]] = 1.0
            return corner, 1

        return program


@pytest.fixture
def break_down(monkeypatch: pytest.MonkeyPatch):
    def make(how: str, *names: str) -> Broken:
        broken = Broken(how, list(names))
        monkeypatch.setattr(reference, "PROGRAMS", {form: broken(form) for form in ("primal", "dual")})
        return broken

    return make


@pytest.mark.parametrize("how", ["raises", "stops in a corner"])
def test_a_solver_that_breaks_down_is_followed_by_the_other_form_and_scs(break_down, how: str) -> None:
    problem = random_problem(3, "shared")
    order = ["CLARABEL primal", "CLARABEL dual", "SCS primal", "SCS dual"]
    names = [name.replace(" ", " (") + ")" for name in order]
    for k in range(4):
        broken = break_down(how, *order[:k])
        r = reference.solve(problem, form="primal")
        assert broken.seen == order[: k + 1]
        after = f", after {', '.join(names[:k])} failed" if k else ""
        assert r.method == f"cvxpy/{names[k]}{after}"
        assert r.relative_gap <= reference.LIMITS.broken_gap


def test_the_error_of_the_last_solver_is_raised(break_down) -> None:
    break_down("raises", "CLARABEL primal", "CLARABEL dual", "SCS primal", "SCS dual")
    with pytest.raises(ArithmeticError, match="no step"):
        reference.solve(random_problem(3, "shared"))


def test_of_several_poor_answers_the_best_is_taken(break_down) -> None:
    break_down("stops in a corner", "CLARABEL primal", "CLARABEL dual", "SCS primal", "SCS dual")
    r = reference.solve(random_problem(3, "shared"))
    assert r.status is od.Status.STALLED
    assert len(r.history.gaps) == 4
    assert r.gap == r.history.gaps.min()


def test_options_are_for_the_solver_that_was_asked_for(break_down) -> None:
    """SCS does not know this one."""
    break_down("raises", "CLARABEL primal", "CLARABEL dual")
    r = reference.solve(random_problem(3, "shared"), tol_gap_rel=1e-9)
    assert r.converged


def many() -> od.DesignProblem:
    """More entries than a solver is given at once, in two groups and two blocks."""
    rng = np.random.default_rng(0)
    n = 20_000
    problem = od.DesignProblem(
        rng.normal(size=(n, 4)), rng.integers(2, size=n), rng.integers(2, size=n), budgets=[1.0, 3.0]
    )
    assert reference._entries(problem.ranks, problem.parameter_blocks) == 10 * n
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
    monkeypatch.setattr(reference, "_first_rows", reference._basis)
    r = reference.solve(problem)
    assert r.relative_gap <= 1e-4
    assert len(r.history.gaps) >= 2
    assert r.history.gaps[0] > 10 * r.gap


def test_rounds_that_end_in_failure_leave_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, entries=100_000)
    problem = many()
    monkeypatch.setattr(reference, "_first_rows", reference._basis)
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
    monkeypatch.setattr(reference, "_first_rows", reference._basis)
    r = reference.solve(many())
    assert r.status is od.Status.STALLED
    assert len(r.history.gaps) == 1


def test_weights_without_full_rank_are_moved_inside() -> None:
    problem = od.DesignProblem(np.eye(3))
    weights, certificate = reference._certified(problem, reduce(problem), np.array([1.0, 0.0, 0.0]))
    assert np.isfinite(certificate.gap)
    assert weights.min() > 0


def test_every_group_and_block_keeps_candidates() -> None:
    problem = many()
    rows = reference._first_rows(problem)
    certificate = od.certify(problem, problem.uniform())
    bound = reference._largest(problem, rows, certificate.variances)
    more = reference._next_rows(problem, rows, problem.uniform(), certificate.variances, bound)
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
    seen = []
    blocked(before=lambda: seen.append(None))
    limit(monkeypatch, call_seconds=0.05)
    with pytest.raises(TimeoutError):
        reference.solve(random_problem(3, "shared"))
    assert len(seen) == 2  # CLARABEL and SCS


def test_a_slow_solver_with_a_poor_answer_is_not_tried_in_the_other_form(
    break_down, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, solver_share=0.0)
    broken = break_down("stops in a corner", "CLARABEL primal", "SCS primal")
    r = reference.solve(random_problem(3, "shared"), form="primal")
    assert broken.seen == ["CLARABEL primal", "SCS primal"]
    assert r.status is od.Status.STALLED


def test_blocks_that_are_too_wide_for_clarabel_are_for_scs(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, clarabel_rank=2)
    r = reference.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(30, 3))), form="dual")
    assert r.method == "cvxpy/SCS (dual), after CLARABEL (dual), CLARABEL (primal) failed"
    assert r.relative_gap <= 1e-2


@pytest.mark.parametrize("form", ["primal", "dual"])
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


def test_progress_is_told_of_every_tick(monkeypatch: pytest.MonkeyPatch, break_down) -> None:
    said = []
    monkeypatch.setattr(reference.Progress, "update", lambda _, *where: said.append(where))
    break_down("stops in a corner", "CLARABEL primal")
    r = reference.solve(random_problem(3, "shared"), form="primal", progress=True)
    assert said[0] == (0, np.inf)
    assert said[-1] == (1, r.history.gaps[0])


def test_repair_clips_rescales_and_fills_in() -> None:
    problem = od.DesignProblem(np.eye(6), groups=[0, 0, 1, 1, 2, 2])
    raw = np.array([3.0, -1.0, 0.0, 0.0, np.nan, 2.0])
    got = programs.repaired(raw, reduce(problem))
    np.testing.assert_array_equal(got, [1.0, 0.0, 0.5, 0.5, 0.0, 1.0])


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_a_group_that_informs_nothing(form: str) -> None:
    """Zero vectors only, in a block of rank 0: its bound is zero, and the others are as without it."""
    x = np.random.default_rng(0).normal(size=(12, 2))
    groups, blocks = np.repeat([0, 1, 2], 4), np.repeat([0, 0, 1], 4)
    x[8:] = 0.0
    problem = od.DesignProblem(x, groups, blocks, budgets=[1.0, 2.0, 5.0])
    alone = od.DesignProblem(x[:8], groups[:8], budgets=[1.0, 2.0])
    r, expected = reference.solve(problem, form=form), od.solve(alone, tol=1e-9)
    assert np.isfinite(r.gap)
    assert r.relative_gap <= 1e-4
    assert abs(r.log_det - expected.log_det) <= max(r.gap, expected.gap) + 1e-12
    assert r.weights[8:].sum() == pytest.approx(5.0, rel=1e-12)


def test_the_best_of_several_poor_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attempt breaks down, the later ones more than the first."""
    problem = random_problem(0, "shared")
    best, uniform = od.solve(problem).weights, problem.uniform()
    shares = {"primal": 0.3, "dual": 0.9}

    def program(form: str):
        def run(reduced, *_):
            return reduced.restrict((1 - shares[form]) * best + shares[form] * uniform, problem), 3

        return run

    monkeypatch.setattr(reference, "PROGRAMS", {form: program(form) for form in shares})
    r = reference.solve(problem, form="primal")
    gaps = {f: od.certify(problem, (1 - s) * best + s * uniform).gap for f, s in shares.items()}
    assert reference.LIMITS.broken_gap * problem.rank < gaps["primal"] < gaps["dual"]
    assert r.gap == pytest.approx(gaps["primal"], rel=1e-9)
    assert r.method == "cvxpy/CLARABEL (primal)"
    assert r.iterations == 12
    assert r.history.gaps.tolist() == pytest.approx([gaps[f] for f in ("primal", "dual") * 2], rel=1e-9)
