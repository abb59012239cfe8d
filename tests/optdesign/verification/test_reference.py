"""The convex reference, and our answers against it on random instances.

Both answers are certified by plain NumPy first. Then each F lies within its own gap below the common
maximum, so |F1 - F2| <= max(gap1, gap2) up to the rounding that ``Plain.error`` bounds, and the relative
eigenvalues of the information lie between quotients of the roots that follow from the gaps.
"""

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

# 4 kinds x 2 x 4 = 32 instances, primal and dual by turns, Clarabel mostly and SCS on every fourth.
INSTANCES = [
    (kind, deficient, seed, "SCS" if seed % 4 == 3 else "CLARABEL", "primal" if seed % 2 else "dual")
    for kind in KINDS
    for deficient in (False, True)
    for seed in range(4)
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
    with pytest.raises(ValueError, match=r"form must be one of auto, primal, dual; got 'both'. Leave it out"):
        reference.solve(od.DesignProblem(np.eye(2)), form="both")


def test_an_unknown_solver_is_an_error() -> None:
    import cvxpy

    with pytest.raises(cvxpy.error.SolverError):
        reference.solve(od.DesignProblem(np.eye(2)), "NO_SUCH_SOLVER")


def test_a_bad_time_limit_is_named() -> None:
    with pytest.raises(ValueError, match=r"time_limit must be positive seconds; got 0. Leave it out"):
        reference.solve(od.DesignProblem(np.eye(2)), time_limit=0)


FORMS = ("primal", "dual")


class Broken:
    """Programs of which some fail: as a list of names, "SOLVER form"."""

    def __init__(self, how: str, names: list[str]) -> None:
        self.how, self.names = how, names
        self.seen: list[str] = []

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


def test_a_slow_solver_with_a_poor_answer_is_not_tried_in_the_other_form(
    break_down, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, solver_share=0.0)
    broken = break_down("stops in a corner", "CLARABEL primal", "SCS primal")
    r = reference.solve(random_problem(3, "shared"), form="primal")
    assert broken.seen == ["CLARABEL primal", "SCS primal"]
    assert r.status is od.Status.STALLED


def test_weights_without_full_rank_are_moved_inside(break_down) -> None:
    break_down("stops in a corner", *(f"{solver} {form}" for solver in ("CLARABEL", "SCS") for form in FORMS))
    r = reference.solve(od.DesignProblem(np.eye(3)))
    assert np.isfinite(r.gap)
    assert r.weights.min() > 0


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
            return reduced.restrict((1 - shares[form]) * best + shares[form] * uniform), 3

        return run

    monkeypatch.setattr(reference, "PROGRAMS", {form: program(form) for form in shares})
    r = reference.solve(problem, form="primal")
    gaps = {f: od.certify(problem, (1 - s) * best + s * uniform).gap for f, s in shares.items()}
    assert reference.LIMITS.broken_gap * problem.rank < gaps["primal"] < gaps["dual"]
    assert r.gap == pytest.approx(gaps["primal"], rel=1e-9)
    assert r.method == "cvxpy/CLARABEL (primal)"
    assert r.iterations == 12
    assert r.history.gaps.tolist() == pytest.approx([gaps[f] for f in ("primal", "dual") * 2], rel=1e-9)
