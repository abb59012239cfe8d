"""Verification agrees with right answers, differs from wrong ones, and raises nothing."""

import contextlib
import dataclasses
import threading

import numpy as np
import pytest
from forged import LEFT_OUT, NAMES, forged, given, pair_of_lengths, wrong
from problems import KINDS, KNOWN, METHODS, plain, random_problem, relative_eigenvalues
from reference_limits import limit
from scipy.special import lambertw

import optdesign as od
from optdesign import reference
from optdesign.verification import audit
from optdesign.verification import verify as verification


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deficient", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_right_answers_agree(kind: str, deficient: bool, method: str) -> None:
    r = od.solve(random_problem(50, kind, deficient=deficient), tol=1e-6, method=method)
    v = od.verify(r)
    assert v.agrees
    assert v
    assert v.verdict == "agrees"
    assert [c.name for c in v.comparisons if c.name != LEFT_OUT] == NAMES
    assert (LEFT_OUT in str(v)) == bool(v.notes)
    assert not v.refuted
    assert v.reference is not None
    assert v.reference.problem is r.problem
    assert "cvxpy/CLARABEL" in str(v)
    assert "differs" not in str(v)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_solvers_and_forms(solver: str, form: str) -> None:
    r = od.solve(random_problem(51, "disjoint"), tol=1e-6)
    v = od.verify(r, solver, form=form)
    assert v.agrees
    assert v.reference.method == f"cvxpy/{solver} ({form})"


@pytest.mark.parametrize("known", KNOWN, ids=[k.name for k in KNOWN])
def test_known_optima_agree(known) -> None:
    assert od.verify(od.solve(known.problem, tol=1e-9, method="bca"))


def test_poor_but_honest_answers_agree() -> None:
    """A large gap admits to being far off, so the tolerances that follow from it are wide."""
    r = od.solve(random_problem(52, "shared"), tol=1e-15, method="bca", max_iter=1)
    assert od.verify(r)


def blocked(*_: object) -> None:
    """A solver that does not come back, within the patience of a test."""
    threading.Event().wait(1.0)


def test_what_is_allowed_comes_from_the_claimed_gap() -> None:
    """An honest gap admits to being far off. Against the solver's answer a false one does not help."""
    problem = random_problem(53, "shared")
    uniform = given(problem, problem.uniform())
    assert uniform.gap > 0.1
    theirs = reference.solve(problem)
    v = verification.compare(uniform, theirs)
    assert v
    differences = {c.name: c.difference for c in v.comparisons}
    tight = verification.compared_with(forged(uniform, gap=1e-8), theirs, audit.audit(uniform))[0]
    assert [c.agrees for c in tight] == [False, False]
    assert [c.difference for c in tight] == [differences[c.name] for c in tight]


@pytest.mark.parametrize(("one", "other"), [(1e-3, 0.5), (0.5, 1e-3), (0.2, 0.2), (0.0, 0.3)])
def test_two_designs_may_differ_by_what_their_gaps_allow_and_no_more(one: float, other: float) -> None:
    """F by the larger gap; log eigenvalues by the largest distance of numbers in the two ranges."""
    problem = random_problem(53, "shared")
    r = given(problem, problem.uniform())
    objective, information = verification.compared_with(
        forged(r, gap=one), forged(r, gap=other), audit.audit(r)
    )[0]
    assert objective.tolerance == pytest.approx(max(one, other), abs=1e-7)
    first, second = (verification.log_eigenvalue_range(gap) for gap in (one, other))
    farthest = max(abs(a - b) for a in first for b in second)
    assert information.tolerance == pytest.approx(farthest, abs=1e-4)


def test_it_does_not_matter_which_of_two_designs_is_ours() -> None:
    """Eigenvalues of one relative to the other are those the other way round, inverted."""
    problem = random_problem(53, "shared")
    a, b = given(problem, problem.uniform()), od.solve(problem, tol=1e-2, max_iter=1)
    there, back = (verification.compared_with(x, y, audit.audit(x))[0] for x, y in ((a, b), (b, a)))
    for one, other in zip(there, back, strict=True):
        assert one.difference == pytest.approx(other.difference, rel=1e-9)
        assert one.tolerance == pytest.approx(other.tolerance, rel=1e-9)


def test_an_answer_of_the_solver_that_contradicts_ours_differs() -> None:
    """Both lines: a reference that is not optimal, and claims to be."""
    problem = random_problem(53, "shared")
    r, uniform = od.solve(problem, tol=1e-8), given(problem, problem.uniform())
    uniform = dataclasses.replace(uniform, method="cvxpy/CLARABEL (primal)")
    v = verification.compare(r, forged(uniform, gap=1e-8, relative_gap=1e-8 / r.rank))
    assert v.verdict == "differs"
    assert not v.refuted
    assert wrong(v) == NAMES[-2:]
    assert v.message.startswith(
        "objective against cvxpy, information against cvxpy (log eigenvalues) against"
    )


def test_a_refuted_design_is_not_compared_with_any() -> None:
    r = od.solve(random_problem(53, "shared"))
    v = verification.compare(forged(r, gap=-1.0), r)
    assert v.refuted
    assert wrong(v) == ["gap"]
    assert v.reference is r


def test_equal_objectives_with_other_information_differ() -> None:
    """diag(2, 1/2) and the identity have one determinant: only the eigenvalues tell them apart."""
    problem = od.DesignProblem(np.diag([1.0, 1.0, 2**0.5, 2**-0.5]) @ np.vstack([np.eye(2), np.eye(2)]))
    ours = given(problem, np.array([0.5, 0.5, 0.0, 0.0]))
    theirs = forged(given(problem, np.array([0.0, 0.0, 0.5, 0.5])), gap=1e-3)
    own = audit.audit(ours)
    tight = verification.compared_with(forged(ours, gap=1e-3), theirs, own)[0]
    assert [c.agrees for c in tight] == [True, False]
    assert tight[1].difference == pytest.approx(np.log(2), rel=1e-12)


def test_large_problems_are_compared_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A false variance is found wherever it counts: in the support, and where it is or should be largest."""
    r = od.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(4000, 3)), np.arange(4000) % 2))
    monkeypatch.setattr(audit, "LIMITS", audit.LIMITS._replace(work=25_000))
    v = od.verify(r)
    assert v
    assert "variances were computed exactly for" in v.notes[0]
    assert "of 4,000 candidates" in v.notes[0]
    for at in (
        r.support[0],
        np.argmax(r.variances),
        np.flatnonzero(r.variances > 0.9 * r.variances.max())[-1],
    ):
        variances = r.variances.copy()
        variances[at] = 0.0
        assert "variances" in wrong(od.verify(forged(r, variances=variances)))
    elsewhere = r.variances.copy()
    elsewhere[np.argmin(r.variances)] = 10.0
    assert wrong(od.verify(forged(r, variances=elsewhere))) == ["variances"]


def test_information_of_the_reference_that_is_too_large_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    monkeypatch.setattr(verification, "LIMITS", verification.LIMITS._replace(work=1))
    v = od.verify(r)
    assert v
    assert [c.name for c in v.comparisons] == NAMES[:-1]
    assert "the information of the two designs was not compared" in v.notes[-1]


@pytest.mark.parametrize("value", [od.DesignProblem(np.eye(2)), np.ones(2), None])
def test_what_is_no_result_is_named(value: object) -> None:
    with pytest.raises(TypeError, match=r"result must be a DesignResult or Runs; got \w+. Pass solve"):
        od.verify(value)


def test_an_unknown_solver_is_inconclusive() -> None:
    v = od.verify(od.solve(od.DesignProblem(np.eye(2))), "NO_SUCH_SOLVER")
    assert v.verdict == "inconclusive"
    assert not v
    assert "NO_SUCH_SOLVER failed" in str(v)
    assert [c.name for c in v.comparisons] == NAMES[:-2]
    assert v.reference is None


def test_a_solver_that_cannot_do_it_is_replaced() -> None:
    v = od.verify(od.solve(od.DesignProblem(np.eye(2))), "HIGHS")
    assert v
    assert "cvxpy/SCS (primal), after HIGHS (primal), HIGHS (dual) failed" in str(v)


def test_solvers_that_all_fail_are_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ArithmeticError("no step")

    monkeypatch.setattr(reference, "PROGRAMS", {"primal": fail, "dual": fail})
    r = od.solve(od.DesignProblem(np.eye(2)))
    v = od.verify(r)
    assert v.verdict == "inconclusive"
    assert v.message == (
        "CLARABEL failed: ArithmeticError: no step, "
        "after CLARABEL (primal), CLARABEL (dual), SCS (primal), SCS (dual)"
    )
    # What exact arithmetic says needs no solver.
    assert od.verify(forged(r, gap=-1.0)).verdict == "differs"


def test_a_time_limit_is_inconclusive_if_nothing_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "PROGRAMS", {"primal": blocked, "dual": blocked})
    limit(monkeypatch, grace=0.05)
    v = od.verify(od.solve(pair_of_lengths()), time_limit=0.1)
    assert v.verdict == "inconclusive"
    assert v.message.endswith("too far from the optimum (time limit)")
    assert v.reference.status is od.Status.TIME_LIMIT


@pytest.mark.parametrize("time_limit", [0.0, -1.0])
def test_a_bad_time_limit_is_inconclusive(time_limit: float) -> None:
    v = od.verify(od.solve(od.DesignProblem(np.eye(2))), time_limit=time_limit)
    assert "time_limit must be positive" in v.message


def test_an_unknown_form_is_inconclusive() -> None:
    assert od.verify(od.solve(od.DesignProblem(np.eye(2))), form="both").verdict == "inconclusive"


def test_a_reference_that_stops_early_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "INCONCLUSIVE_GAP", 1e-300)
    v = od.verify(od.solve(random_problem(54, "shared"), tol=1e-6))
    assert v.verdict == "inconclusive"
    assert "too far from the optimum" in v.message
    assert v.reference is not None


@pytest.mark.parametrize("gap", [1e-2, 1.0, 30.0, 500.0])
def test_eigenvalue_range_is_lamberts(gap: float) -> None:
    """t - 1 - log t = gap is solved by t = -W(-exp(-1 - gap)), on the two real branches of W."""
    at = -np.exp(-1 - gap)
    expected = [np.log(-lambertw(at, branch).real) for branch in (0, -1)]
    # W near its branch point at -1/e is as good as sqrt(eps) only, and 1e-2 is near it.
    assert verification.log_eigenvalue_range(gap) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("gap", [0.0, 1e-14, 1e-10, 1e-6])
def test_eigenvalue_range_of_small_gaps(gap: float) -> None:
    """s^2 / 2 + s^3 / 6 + ... = gap has the roots s = +-sqrt(2 gap) - gap / 3 + O(gap^1.5)."""
    low, high = verification.log_eigenvalue_range(gap)
    root = np.sqrt(2 * gap)
    # brentq stops at 2e-12; expm1(s) - s is known to eps s, which moves the root by eps.
    assert low == pytest.approx(-root - gap / 3, abs=gap * root + 1e-11)
    assert high == pytest.approx(root - gap / 3, abs=gap * root + 1e-11)


@pytest.mark.parametrize("gap", [-1e-300, -1e-9, -0.5, -2.0])
def test_a_gap_below_zero_allows_no_more_than_none(gap: float) -> None:
    """No certificate has one, but anybody can claim it; nothing is raised."""
    assert verification.log_eigenvalue_range(gap) == (0.0, 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_relative_eigenvalues(kind: str) -> None:
    problem = random_problem(55, kind)
    a, b = od.solve(problem, tol=1e-6, max_iter=1), od.solve(problem, tol=1e-6)
    p, q = plain(problem, a.weights), plain(problem, b.weights)
    got = verification.relative_eigenvalues(audit.audit(b), a)
    expected = np.sort(relative_eigenvalues(p, q))
    np.testing.assert_allclose(np.sort(got), expected, rtol=2 * (p.error + q.error))


def test_verifications_are_frozen() -> None:
    v = od.verify(od.solve(od.DesignProblem(np.eye(2))))
    with pytest.raises(dataclasses.FrozenInstanceError):
        v.verdict = "agrees"  # type: ignore[misc]


def test_the_range_of_eigenvalues_is_bracketed_for_any_gap() -> None:
    for gap in 10.0 ** np.random.default_rng(0).uniform(-12, 8, size=5000):
        low, high = verification.log_eigenvalue_range(float(gap))
        assert low <= 0 <= high
    for gap in np.linspace(63, 64, 500):
        verification.log_eigenvalue_range(float(gap))


@pytest.mark.parametrize(
    ("relative", "conclusive"), [(0.05, True), (0.1, True), (0.11, False), (0.9, False), (np.nan, False)]
)
def test_a_reference_is_believed_up_to_a_tenth(
    relative: float, conclusive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = od.solve(random_problem(53, "shared"))
    monkeypatch.setattr(reference, "solve", lambda *_, **__: forged(r, relative_gap=relative))
    assert (od.verify(r).verdict != "inconclusive") == conclusive


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_what_is_allowed_beyond_the_gaps(scale: float) -> None:
    """Rounding of log Det, relative to its size or to one, and the noise of noted ranks by dimension."""
    problem = od.DesignProblem(scale * np.sqrt(2) * np.eye(2))
    r = od.solve(problem)
    own = dataclasses.replace(audit.audit(r), noise=1e-3)
    objective, information = verification.compared_with(forged(r, gap=0.2), forged(r, gap=0.1), own)[0]
    size = max(1.0, abs(r.log_det))
    assert objective.tolerance == pytest.approx(0.2 + 1e-9 * size + 1e-3 * r.rank, abs=1e-12)
    without = verification.compared_with(forged(r, gap=0.2), forged(r, gap=0.1), audit.audit(r))[0][1]
    assert information.tolerance == pytest.approx(without.tolerance + 1e-3, abs=1e-12)


@pytest.mark.parametrize("progress", [False, True])
def test_nothing_is_shown_unless_asked_for(progress: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def waiting(text: str) -> contextlib.nullcontext:
        shown.append(text)
        return contextlib.nullcontext()

    monkeypatch.setattr(verification, "waiting", waiting)
    r = od.solve(od.DesignProblem(np.eye(2)))
    v = od.verify(r, progress=True) if progress else od.verify(r)
    assert bool(shown) == progress
    assert "reference=" not in repr(v)
