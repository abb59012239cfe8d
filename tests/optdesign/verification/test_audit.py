"""Exact arithmetic refutes every false claim about a design, and no true one.

Every comparison has a test in which it alone, or with those that follow from it, makes the difference.
"""

import dataclasses
from functools import cache

import numpy as np
import pytest
from forged import LEFT_OUT, NAMES, forged, given, pressures, with_rank, wrong
from problems import KINDS, random_problem

import optdesign as od
from optdesign.testing import families
from optdesign.verification import audit
from optdesign.verification import verify as verification


@cache
def verified(kind: str) -> od.DesignResult:
    """Return the uniform design of a problem, after a check that exact arithmetic finds no false claim."""
    problem = random_problem(53, kind)
    honest = given(problem, problem.uniform())
    assert od.verify(honest)
    return honest


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
    honest = verified(kind)
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


def test_what_is_too_large_for_exact_arithmetic_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    monkeypatch.setattr(audit, "LIMITS", audit.LIMITS._replace(work=1))
    v = od.verify(r)
    assert v
    assert v.message.startswith("with exact ranks and with cvxpy")
    assert "log Det and variances of 1 of 1 parameter block(s) were not computed exactly" in v.notes[0]
    assert "the information of the two designs was not compared" in v.notes[1]
    assert "log Det" not in [c.name for c in v.comparisons]
    assert wrong(od.verify(forged(r, rank=r.rank + 1)))[0] == "rank of the candidates"
    assert wrong(od.verify(forged(r, variances=2 * r.variances))) == ["sum of weight times variance"]


@pytest.mark.parametrize("short", [0, 1])
def test_the_limit_of_work_may_be_reached(short: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(53, "shared")
    r, own = od.solve(problem, tol=1e-8), given(problem, problem.uniform())
    work = audit.information_work(problem, problem.n_candidates)
    monkeypatch.setattr(verification, "LIMITS", verification.LIMITS._replace(work=work - short))
    comparisons, notes = verification.compared_with(r, own, audit.audit(r))
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
