"""Verification agrees with right answers, differs from wrong ones, and raises nothing."""

import dataclasses

import numpy as np
import pytest
from problems import KINDS, KNOWN, METHODS, plain, random_problem, relative_eigenvalues
from scipy.special import lambertw

import optdesign as od
from optdesign import verification


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("deficient", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_right_answers_agree(kind: str, deficient: bool, method: str) -> None:
    r = od.solve(random_problem(50, kind, deficient=deficient), tol=1e-6, method=method)
    v = od.verify(r)
    assert v.agrees
    assert v
    assert v.verdict == "agrees"
    assert len(v.comparisons) == 3
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


def forged(r: od.DesignResult, **changes: float) -> od.DesignResult:
    """The result with a certificate that claims something else."""
    return dataclasses.replace(r, certificate=dataclasses.replace(r.certificate, **changes))


def test_wrong_weights_with_a_forged_certificate_differ() -> None:
    """Weights far from the optimum that claim to be it: everything that follows from them gives them away."""
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    start = np.random.default_rng(0).exponential(size=len(r.weights)) ** 3 + 1e-3
    total = np.bincount(r.problem.groups, weights=start)
    wrong = dataclasses.replace(r, weights=start * (r.problem.budgets / total)[r.problem.groups])
    v = od.verify(wrong)
    assert v.verdict == "differs"
    assert not v
    assert v.message.startswith("objective log Det, G, information (log eigenvalues) against")
    assert str(v).count("<- differs") == 3
    assert [c.agrees for c in v.comparisons] == [False, False, False]


def test_a_small_error_shows_in_g_first() -> None:
    """Moving eps of the weight away from (1/3, 1/3, 1/3) costs 9 eps in G, and 9 eps^2 in log Det.

    With a claimed gap of 1e-8, eps = 1e-5 is too much for G alone.
    """
    problem = od.DesignProblem(np.eye(3))
    eps = 1e-5
    r = od.solve(problem, tol=1e-9)
    wrong = forged(dataclasses.replace(r, weights=np.array([1 / 3 - eps, 1 / 3 + eps, 1 / 3])), gap=1e-8)
    v = verification.compare(wrong, r)  # the uniform design is optimal, to rounding
    assert v.message.startswith("G against")
    assert [c.agrees for c in v.comparisons] == [True, False, True]
    assert v.comparisons[1].difference == pytest.approx(9 * eps, rel=1e-3)
    assert v.comparisons[0].difference == pytest.approx(9 * eps**2, abs=1e-14)


@pytest.mark.parametrize("changes", [{"log_det": -0.1}, {"g_value": 0.5}])
def test_what_is_compared_comes_from_the_weights(changes: dict) -> None:
    """A certificate may claim any F and G: they are computed afresh."""
    r = od.solve(random_problem(53, "shared"), tol=1e-8)
    claims = {name: getattr(r, name) + by for name, by in changes.items()}
    v, honest = od.verify(forged(r, **claims)), od.verify(r)
    assert v
    assert v.comparisons == honest.comparisons
    start = dataclasses.replace(r, weights=r.problem.uniform())
    assert [c.difference for c in od.verify(forged(start, **claims)).comparisons] == [
        c.difference for c in od.verify(start).comparisons
    ]


def test_what_is_allowed_comes_from_the_claimed_gap() -> None:
    problem = random_problem(53, "shared")
    r = od.solve(problem, tol=1e-8)
    uniform = dataclasses.replace(
        r, weights=problem.uniform(), certificate=od.certify(problem, problem.uniform())
    )
    assert uniform.gap > 0.1
    assert od.verify(uniform)
    assert od.verify(forged(uniform, gap=1e-8)).verdict == "differs"


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
    assert v.comparisons == ()


def test_a_solver_that_cannot_do_it_is_inconclusive() -> None:
    assert od.verify(od.solve(od.DesignProblem(np.eye(2))), "HIGHS").verdict == "inconclusive"


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


@pytest.mark.parametrize("kind", KINDS)
def test_relative_eigenvalues(kind: str) -> None:
    problem = random_problem(55, kind)
    a, b = od.solve(problem, tol=1e-6, max_iter=1), od.solve(problem, tol=1e-6)
    p, q = plain(problem, a.weights), plain(problem, b.weights)
    values = relative_eigenvalues(p, q)
    rounding = 2 * (p.error + q.error)
    assert verification._relative_eigenvalues(a, b) == pytest.approx(
        (values.min(), values.max()), rel=rounding
    )


def test_verifications_are_frozen() -> None:
    v = od.verify(od.solve(od.DesignProblem(np.eye(2))))
    with pytest.raises(dataclasses.FrozenInstanceError):
        v.verdict = "agrees"
