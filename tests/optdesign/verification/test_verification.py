"""Verification agrees with right answers, differs from wrong ones, and raises nothing.

Every comparison has a test in which it alone, or with those that follow from it, makes the difference.
"""

import contextlib
import copy
import dataclasses
import threading
from functools import cached_property

import numpy as np
import pytest
from problems import KINDS, KNOWN, METHODS, plain, random_problem, relative_eigenvalues
from reference_limits import limit
from scipy.special import lambertw

import optdesign as od
from optdesign import reference
from optdesign.testing import families
from optdesign.verification import audit
from optdesign.verification import verify as verification

LEFT_OUT = "what the noted ranks leave out"
NAMES = [
    "weights",
    "rank of the candidates",
    "rank of the design",
    "log Det",
    "sum of weight times variance",
    "variances",
    "gap",
    "efficiency",
    "status",
    "objective against cvxpy",
    "information against cvxpy (log eigenvalues)",
]


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


def pair_of_lengths() -> od.DesignProblem:
    """The uniform design over these is far from optimal."""
    return od.DesignProblem(np.vstack([np.eye(2), np.full((40, 2), [1e-3, 0.0])]))


def forged(r: od.DesignResult, **changes: object) -> od.DesignResult:
    """The result with a certificate that claims something else."""
    return dataclasses.replace(r, certificate=dataclasses.replace(r.certificate, **changes))


def given(problem: od.DesignProblem, weights: np.ndarray) -> od.DesignResult:
    """Any weights with their own certificate."""
    return od.DesignResult.given(problem, weights)


def wrong(v: od.Verification) -> list[str]:
    return [c.name for c in v.comparisons if not c.agrees]


@pytest.mark.parametrize(
    ("field", "change", "names"),
    [
        ("gap", lambda c: 0.9 * c.gap, ["gap"]),
        ("gap", lambda c: c.gap - c.rounding - 1e-12 * c.g_value, ["gap"]),
        ("gap", lambda _: np.nan, ["gap"]),
        ("relative_gap", lambda c: 0.9 * c.relative_gap, ["gap"]),
        ("relative_gap", lambda _: np.nan, ["gap"]),
        ("g_value", lambda c: c.g_value - c.rounding - 1e-12 * c.g_value, ["gap"]),
        ("efficiency", lambda c: c.efficiency + 1e-12, ["efficiency"]),
        ("efficiency", lambda _: np.nan, ["efficiency"]),
        ("log_det", lambda c: c.log_det + 1e-6, ["log Det"]),
        ("log_det", lambda _: np.nan, ["log Det"]),
        ("rank", lambda c: c.rank - 1, ["rank of the candidates"]),
        ("rank", lambda c: c.rank + 1, ["rank of the candidates"]),
        ("variances", lambda c: 1.01 * c.variances, ["sum of weight times variance", "variances"]),
        ("variances", lambda c: c.variances[1:], ["variances"]),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_every_false_claim_is_refuted(kind: str, field: str, change, names: list[str]) -> None:
    """The weights are those of the uniform design, and all but one claim about them are true."""
    problem = random_problem(53, kind)
    honest = given(problem, problem.uniform())
    assert od.verify(honest)
    v = od.verify(forged(honest, **{field: change(honest.certificate)}))
    assert v.verdict == "differs"
    assert v.refuted
    assert wrong(v) == names
    assert v.message == f"{', '.join(names)} against exact arithmetic"
    assert str(v).count("<- differs") == len(names)
    assert v.reference is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_claimed_allowance_for_round_off_excuses_nothing(kind: str) -> None:
    """A large gap and a large allowance leave room for false variances if either is taken as a tolerance."""
    honest = given(random_problem(53, kind), random_problem(53, kind).uniform())
    c = honest.certificate
    forgery = {"rounding": c.gap, "variances": (1 + 1e-6) * c.variances}
    assert wrong(od.verify(forged(honest, **forgery))) == ["sum of weight times variance", "variances"]


@pytest.mark.parametrize("seed", [84, 121, 172, 382, 383])
def test_honest_claims_about_a_nearly_singular_design_are_not_refuted(seed: int) -> None:
    """Two runs differ by 1e-7, so that round-off of 1e-16 moves their difference by a fraction of 1e-9."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 2))
    problem = od.DesignProblem(np.vstack([x, x[0] + 1e-7 * rng.normal(size=2)]))
    result = given(problem, [0.3, 0.0, 0.0, 0.7])
    assert audit.audit(result).wrong == []
    lie = forged(result, variances=(1 + 1e-5) * result.variances)
    assert audit.audit(lie).wrong == ["sum of weight times variance", "variances"]


def test_a_status_that_the_exact_gap_contradicts_is_refuted() -> None:
    r = od.solve(random_problem(53, "classical"), tol=1e-12, max_iter=1)
    assert not r.converged
    lie = dataclasses.replace(r, status=od.Status.CONVERGED)
    assert wrong(od.verify(lie)) == ["status"]
    unknown = od.verify(dataclasses.replace(lie, tol=None))
    assert any("the status was not compared" in note for note in unknown.notes)
    assert od.verify(od.solve(r.problem, tol=1e-9))


@pytest.mark.parametrize(("family", "seed", "tol"), [("vandermonde", 77, 1e-9), ("column_scales", 20, 1e-6)])
def test_information_that_needs_more_digits_gets_them(family: str, seed: int, tol: float) -> None:
    """With 50 digits, I + W W' is not positive definite here, which ended in an exception."""
    problem = families.FAMILIES[family](np.random.default_rng([seed, 9]))
    result = od.solve(problem, tol=tol)
    assert audit.audit(result).wrong == []


def test_the_variance_of_a_single_candidate_without_weight_is_refuted() -> None:
    r = od.solve(random_problem(53, "classical"), tol=1e-8)
    variances = r.variances.copy()
    variances[np.flatnonzero(r.weights == 0)[0]] *= 1 - 1e-6
    assert wrong(od.verify(forged(r, variances=variances))) == ["variances"]


def test_wrong_weights_with_the_certificate_of_others_are_refuted() -> None:
    """Weights far from the optimum that claim to be it: everything that follows from them gives them away."""
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    start = np.random.default_rng(0).exponential(size=len(r.weights)) ** 3 + 1e-3
    total = np.bincount(r.problem.groups, weights=start)
    other = dataclasses.replace(r, weights=start * (r.problem.budgets / total)[r.problem.groups])
    v = od.verify(other)
    assert v.verdict == "differs"
    assert not v
    names = ["log Det", "sum of weight times variance", "variances", "gap", "efficiency", "status"]
    assert wrong(v) == names


def test_a_small_error_shows_in_the_gap_first() -> None:
    """Moving eps of the weight away from (1/3, 1/3, 1/3) costs 9 eps in G, and 9 eps^2 in log Det."""
    problem = od.DesignProblem(np.eye(3))
    eps = 1e-8
    moved = given(problem, np.array([1 / 3 - eps, 1 / 3 + eps, 1 / 3]))
    assert od.verify(moved)
    v = od.verify(forged(moved, gap=1e-9))
    assert wrong(v) == ["gap"]
    difference = next(c.difference for c in v.comparisons if c.name == "gap")
    assert difference == pytest.approx(9 * eps - 1e-9, rel=1e-6)


@pytest.mark.parametrize("change", [1.0 - 1e-5, 1.0 + 1e-5])
def test_weights_that_miss_a_budget_are_refuted(change: float) -> None:
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    v = od.verify(dataclasses.replace(r, weights=r.weights * np.where(r.problem.groups == 1, change, 1.0)))
    assert wrong(v) == ["weights"]
    assert v.comparisons[0].difference == pytest.approx(1e-5, rel=1e-6)


def test_negative_weights_are_refuted() -> None:
    r = od.solve(od.DesignProblem(np.eye(3)))
    assert wrong(od.verify(dataclasses.replace(r, weights=np.array([0.6, 0.5, -0.1])))) == ["weights"]


def test_weights_that_miss_a_budget_by_little_are_those_rescaled() -> None:
    """So it is in :func:`optdesign.certify`."""
    problem = random_problem(53, "shared")
    assert od.verify(given(problem, od.solve(problem).weights * (1 + 5e-7)))


def pressures() -> np.ndarray:
    """A full quadratic in a pressure of 1e5 to 1e6 and a concentration of 1e-6 to 5e-6."""
    p, c = (v.ravel() for v in np.meshgrid(np.linspace(1e5, 1e6, 5), np.linspace(1e-6, 5e-6, 5)))
    return np.column_stack([np.ones(25), p, c, p * p, p * c, c * c])


def with_rank(problem: od.DesignProblem, rank: int) -> od.DesignProblem:
    """The problem as a program would see it that takes its only block for one of lower rank."""
    out = copy.copy(problem)
    pivots = problem.span.pivots.copy()
    pivots[:, rank:] = -1
    maps = problem.span.maps[:, :, :rank].copy()
    span = problem.span._replace(ranks=np.array([rank]), pivots=pivots, maps=maps)
    object.__setattr__(out, "span", span)
    for name, value in vars(od.DesignProblem).items():
        if isinstance(value, cached_property):
            out.__dict__.pop(name, None)
    return out


def test_a_rank_that_is_too_low_because_of_units_is_refuted() -> None:
    """Rank 4 of 6, with six points and an efficiency of one to eight digits, was once confirmed."""
    problem = od.DesignProblem(pressures())
    r = od.solve(problem)
    assert r.rank == 6
    assert od.verify(r)
    assert wrong(od.verify(forged(r, rank=4))) == ["rank of the candidates"]
    # The same with a problem that believes it, and an answer that follows from it. What is left out is far
    # from rounding, so a note that the rank is open to doubt is no excuse.
    lower = with_rank(problem, 4)
    answer = od.solve(lower)
    assert answer.rank == 4
    v = od.verify(answer)
    assert v.verdict == "differs"
    assert LEFT_OUT in wrong(v)


@pytest.mark.parametrize("claimed", [1, 2])
def test_a_singular_design_is_refuted_whatever_it_claims(claimed: int) -> None:
    """Large parallel rows hide the direction of a small one; efficiency 1 was once confirmed."""
    problem = od.DesignProblem([[7, 1], [49, 7], [21, 3], [35, 5], [1e-16, 3e-16]])
    honest = od.solve(problem)
    assert od.verify(honest)
    claims = {"rank": claimed, "gap": 0.0, "relative_gap": 0.0, "efficiency": 1.0, "g_value": float(claimed)}
    v = od.verify(forged(dataclasses.replace(honest, weights=np.array([0.0, 0.5, 0.5, 0.0, 0.0])), **claims))
    assert v.verdict == "differs"
    assert v.message == "our design loses rank"
    assert "rank of the design" in wrong(v)


@pytest.mark.parametrize(("blocks", "lost"), [([0], 1), ([1], 1), ([0, 1], 2)])
def test_rank_lost_in_any_block_counts(blocks: list[int], lost: int) -> None:
    problem = od.DesignProblem(np.vstack([np.eye(2), np.eye(2)]), parameter_blocks=[0, 0, 1, 1])
    honest, w = od.solve(problem), np.full(4, 0.25)
    for b in blocks:
        w[2 * b : 2 * b + 2] = [0.5, 0.0]
    found = audit.audit(dataclasses.replace(honest, weights=w))
    assert found.wrong == ["rank of the design"]
    assert {c.name: c.difference for c in found.comparisons}["rank of the design"] == lost


def test_a_block_of_zeros_is_not_missed() -> None:
    """It has rank 0, and nothing about it is left to compute."""
    problem = od.DesignProblem(np.vstack([np.eye(2), np.zeros((2, 2))]), parameter_blocks=[0, 0, 1, 1])
    v = od.verify(od.solve(problem))
    assert v
    assert v.notes == ()
    assert [c.name for c in v.comparisons] == NAMES


@pytest.mark.parametrize("budget", [1e-6, 4.0, 1e8])
def test_what_a_noted_rank_leaves_out_has_no_unit(budget: float) -> None:
    """Budgets scale the information, and the variances inversely: relative errors stay what they are."""
    celsius = np.linspace(-40, 60, 37)
    x = np.column_stack([np.ones(37), celsius, 1.8 * celsius + 32])
    one, other = (audit.audit(od.solve(od.DesignProblem(x, budgets=f))) for f in (1.0, budget))
    assert other.noise == pytest.approx(one.noise, rel=0.1)
    assert one.noise > 0


@pytest.mark.parametrize("e", [1e-6, 1e-8])
def test_nearly_parallel_rows(e: float) -> None:
    """The certificate of the optimum is a false one for any other design."""
    z = np.random.default_rng(0).normal(size=(60, 2))
    r = od.solve(od.DesignProblem(np.c_[z[:, 0] + e * z[:, 1], 0.7 * z[:, 0] - e * z[:, 1]]), tol=1e-8)
    assert od.verify(r)
    uniform = dataclasses.replace(r, weights=r.problem.uniform())
    assert "gap" in wrong(od.verify(uniform))


def test_columns_in_any_units() -> None:
    x = np.random.default_rng(0).normal(size=(40, 5)) * 10.0 ** np.array([-50, -25, 0, 25, 50])
    r = od.solve(od.DesignProblem(x))
    assert od.verify(r)
    assert wrong(od.verify(forged(r, log_det=r.log_det + 1e-5))) == ["log Det"]


def test_a_rank_that_is_lower_because_of_rounding_is_noted() -> None:
    """The sum of two columns in floating point is outside their span, in exact arithmetic."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    r = od.solve(od.DesignProblem(np.c_[x, x[:, 0] + x[:, 1]]))
    assert r.rank == 3
    v = od.verify(r)
    assert v
    assert "rank_note says so" in v.notes[0]
    assert "note: the exact rank of 1 parameter block(s)" in str(v)
    assert wrong(od.verify(forged(r, log_det=r.log_det + 1e-6))) == ["log Det"]


def test_a_log_det_that_rounding_decides_is_not_compared() -> None:
    """Single precision, in units so different that the rounding of one column exceeds another column."""
    x = np.random.default_rng(0).normal(size=(60, 2))
    columns = np.c_[x, 1e9 * (x[:, 0] + x[:, 1])].astype(np.float32)
    r = od.solve(od.DesignProblem(columns))
    assert r.rank == 2
    v = od.verify(r)
    assert v
    assert "log Det was not compared" in v.notes[-1]
    assert "log Det" not in [c.name for c in v.comparisons]


def test_what_is_allowed_comes_from_the_claimed_gap() -> None:
    """An honest gap admits to being far off. Against the solver's answer a false one does not help."""
    problem = random_problem(53, "shared")
    uniform = given(problem, problem.uniform())
    assert uniform.gap > 0.1
    theirs = reference.solve(problem)
    v = verification.compare(uniform, theirs)
    assert v
    differences = {c.name: c.difference for c in v.comparisons}
    tight = verification._against(forged(uniform, gap=1e-8), theirs, audit.audit(uniform))[0]
    assert [c.agrees for c in tight] == [False, False]
    assert [c.difference for c in tight] == [differences[c.name] for c in tight]


@pytest.mark.parametrize(("one", "other"), [(1e-3, 0.5), (0.5, 1e-3), (0.2, 0.2), (0.0, 0.3)])
def test_two_designs_may_differ_by_what_their_gaps_allow_and_no_more(one: float, other: float) -> None:
    """F by the larger gap; log eigenvalues by the largest distance of numbers in the two ranges."""
    problem = random_problem(53, "shared")
    r = given(problem, problem.uniform())
    objective, information = verification._against(forged(r, gap=one), forged(r, gap=other), audit.audit(r))[
        0
    ]
    assert objective.tolerance == pytest.approx(max(one, other), abs=1e-7)
    first, second = (verification._log_eigenvalue_range(gap) for gap in (one, other))
    farthest = max(abs(a - b) for a in first for b in second)
    assert information.tolerance == pytest.approx(farthest, abs=1e-4)


def test_it_does_not_matter_which_of_two_designs_is_ours() -> None:
    """Eigenvalues of one relative to the other are those the other way round, inverted."""
    problem = random_problem(53, "shared")
    a, b = given(problem, problem.uniform()), od.solve(problem, tol=1e-2, max_iter=1)
    there, back = (verification._against(x, y, audit.audit(x))[0] for x, y in ((a, b), (b, a)))
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
    tight = verification._against(forged(ours, gap=1e-3), theirs, own)[0]
    assert [c.agrees for c in tight] == [True, False]
    assert tight[1].difference == pytest.approx(np.log(2), rel=1e-12)


def test_large_problems_are_compared_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A false variance is found wherever it counts: in the support, and where it is or should be largest."""
    r = od.solve(od.DesignProblem(np.random.default_rng(0).normal(size=(4000, 3)), np.arange(4000) % 2))
    monkeypatch.setattr(audit, "EXACT_WORK", 25_000)
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


def test_what_is_too_large_for_exact_arithmetic_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    monkeypatch.setattr(audit, "EXACT_WORK", 1)
    v = od.verify(r)
    assert v
    assert v.message.startswith("with exact ranks and with cvxpy")
    assert "log Det and variances of 1 of 1 parameter block(s) were not computed exactly" in v.notes[0]
    assert "the information of the two designs was not compared" in v.notes[1]
    assert "log Det" not in [c.name for c in v.comparisons]
    assert wrong(od.verify(forged(r, rank=r.rank + 1)))[0] == "rank of the candidates"
    assert wrong(od.verify(forged(r, variances=2 * r.variances))) == ["sum of weight times variance"]


def test_information_of_the_reference_that_is_too_large_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    monkeypatch.setattr(verification, "EXACT_WORK", 1)
    v = od.verify(r)
    assert v
    assert [c.name for c in v.comparisons] == NAMES[:-1]
    assert "the information of the two designs was not compared" in v.notes[-1]


@pytest.mark.parametrize("short", [0, 1])
def test_the_limit_of_work_may_be_reached(short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(53, "shared")
    r, own = od.solve(problem, tol=1e-8), given(problem, problem.uniform())
    work = audit.information_work(problem, problem.n_candidates)
    monkeypatch.setattr(verification, "EXACT_WORK", work - short)
    comparisons, notes = verification._against(r, own, audit.audit(r))
    assert len(comparisons) == 2 - short
    assert len(notes) == short


def test_digits_that_do_not_suffice_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "factorise", lambda *_: None)
    v = od.verify(od.solve(od.DesignProblem(np.eye(3))))
    assert v
    assert "1 of 1 parameter block(s) were not computed exactly" in v.notes[0]


def test_a_certificate_that_proves_nothing_is_no_confirmation() -> None:
    r = od.solve(random_problem(53, "shared"))
    v = od.verify(forged(r, gap=np.inf, relative_gap=np.inf, efficiency=0.0, g_value=np.inf))
    assert v.verdict == "differs"
    assert not v.refuted
    assert "proves nothing" in v.message


@pytest.mark.parametrize("value", [od.DesignProblem(np.eye(2)), np.ones(2), None])
def test_what_is_no_result_is_named(value: object) -> None:
    with pytest.raises(TypeError, match=r"result must be a DesignResult; got \w+. Pass solve\(problem\)"):
        od.verify(value)


def test_a_design_that_loses_rank_differs() -> None:
    problem = od.DesignProblem(np.eye(2))
    r = od.solve(problem)
    corner = np.array([1.0, 0.0])
    lost = dataclasses.replace(r, weights=corner, certificate=od.certify(problem, corner))
    v = od.verify(lost)
    assert v.verdict == "differs"
    assert "loses rank" in v.message
    # The same weights with a certificate that denies it.
    v = od.verify(dataclasses.replace(r, weights=corner))
    assert v.verdict == "differs"


@pytest.mark.parametrize(
    "weights", [np.array([np.nan, 1.0]), np.array([0.5]), np.array([np.inf, 0.0]), np.zeros(2)]
)
def test_nonsense_weights_differ_and_raise_nothing(weights: np.ndarray) -> None:
    r = od.solve(od.DesignProblem(np.eye(2)))
    assert od.verify(dataclasses.replace(r, weights=weights)).verdict == "differs"


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
    assert verification._log_eigenvalue_range(gap) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("gap", [0.0, 1e-14, 1e-10, 1e-6])
def test_eigenvalue_range_of_small_gaps(gap: float) -> None:
    """s^2 / 2 + s^3 / 6 + ... = gap has the roots s = +-sqrt(2 gap) - gap / 3 + O(gap^1.5)."""
    low, high = verification._log_eigenvalue_range(gap)
    root = np.sqrt(2 * gap)
    # brentq stops at 2e-12; expm1(s) - s is known to eps s, which moves the root by eps.
    assert low == pytest.approx(-root - gap / 3, abs=gap * root + 1e-11)
    assert high == pytest.approx(root - gap / 3, abs=gap * root + 1e-11)


@pytest.mark.parametrize("gap", [-1e-300, -1e-9, -0.5, -2.0])
def test_a_gap_below_zero_allows_no_more_than_none(gap: float) -> None:
    """No certificate has one, but anybody can claim it; nothing is raised."""
    assert verification._log_eigenvalue_range(gap) == (0.0, 0.0)


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
        v.verdict = "agrees"


def test_the_range_of_eigenvalues_is_bracketed_for_any_gap() -> None:
    for gap in 10.0 ** np.random.default_rng(0).uniform(-12, 8, size=5000):
        low, high = verification._log_eigenvalue_range(float(gap))
        assert low <= 0 <= high
    for gap in np.linspace(63, 64, 500):
        verification._log_eigenvalue_range(float(gap))


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
    objective, information = verification._against(forged(r, gap=0.2), forged(r, gap=0.1), own)[0]
    size = max(1.0, abs(r.log_det))
    assert objective.tolerance == pytest.approx(0.2 + 1e-9 * size + 1e-3 * r.rank, abs=1e-12)
    without = verification._against(forged(r, gap=0.2), forged(r, gap=0.1), audit.audit(r))[0][1]
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
