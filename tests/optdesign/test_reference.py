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
    assert_feasible,
    eigenvalue_interval,
    plain,
    random_problem,
    relative_eigenvalues,
)
from structures import instances

import optdesign as od
from optdesign import reference

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


def test_repair_clips_rescales_and_fills_in() -> None:
    from optdesign.reduced import reduce

    problem = od.DesignProblem(np.eye(6), groups=[0, 0, 1, 1, 2, 2])
    raw = np.array([3.0, -1.0, 0.0, 0.0, np.nan, 2.0])
    got = reference._repair(raw, reduce(problem))
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
