"""Efficiencies against a certified optimum: true, sharp, and never rounded up."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from problems import KINDS, plain, random_problem

import optdesign as od
from optdesign.design.result import rounded_down, rounded_up


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_true_efficiency_up_to_that_of_the_best(kind: str, seed: int) -> None:
    problem = random_problem(seed, kind)
    best = od.solve(problem, tol=1e-9)
    shares = np.random.default_rng(seed).exponential(size=problem.n_candidates)
    w = shares * (problem.budgets / np.bincount(problem.groups, weights=shares))[problem.groups]
    p, q = plain(problem, w), plain(problem, best.weights)
    relative = math.exp((p.log_det - q.log_det) / problem.rank)
    got = od.efficiency(problem, w, best=best)
    rounding = (p.error + q.error) / problem.rank
    assert relative * best.efficiency * (1 - 1e-9) - rounding <= got <= relative * best.efficiency + rounding
    assert got >= od.efficiency(problem, w) == od.certify(problem, w).efficiency


def test_twenty_rounded_runs() -> None:
    """Far from the optimum a gap says little: a design that is good looks poor until it is measured."""
    x = np.linspace(-1, 1, 201)
    problem = od.DesignProblem(np.vander(x, 5))
    best = od.solve(problem, tol=1e-9)
    support = best.support[np.argsort(-best.weights[best.support])[:5]]
    w = np.zeros(len(x))
    w[support] = np.array([5, 4, 4, 4, 3]) / 20
    assert od.certify(problem, w).efficiency < 0.8
    assert od.efficiency(problem, w, best=best) > 0.95


def test_a_design_that_loses_rank_has_none() -> None:
    problem = od.DesignProblem(np.eye(2))
    assert od.efficiency(problem, [1.0, 0.0], best=od.solve(problem)) == 0.0


def test_a_best_without_a_certificate_is_of_no_use() -> None:
    problem = od.DesignProblem(np.eye(2))
    best = od.solve(problem)
    poor = type(best)(
        problem,
        np.array([1.0, 0.0]),
        od.certify(problem, [1.0, 0.0]),
        best.status,
        "given",
        0,
        0.0,
        best.history,
    )
    w = [0.6, 0.4]
    assert od.efficiency(problem, w, best=poor) == od.certify(problem, w).efficiency


def test_what_best_must_be() -> None:
    problem = od.DesignProblem(np.eye(2))
    with pytest.raises(TypeError, match=r"best must be a DesignResult; got ndarray. Pass solve\(problem\)."):
        od.efficiency(problem, [0.5, 0.5], best=np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="best must be a design of the same problem; it has 3 candidates"):
        od.efficiency(problem, [0.5, 0.5], best=od.solve(od.DesignProblem(np.eye(3))))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1 - 1e-12, "0.999999999"),
        (0.9999999999999999, "0.999999999"),
        (1.0, "1.000000000"),
        (0.0, "0.000000000"),
        (0.1234567899, "0.123456789"),
        (0.123456789, "0.123456788"),  # the nearest double lies below
    ],
)
def test_printed_bounds_are_rounded_down(value: float, text: str) -> None:
    assert rounded_down(value) == text


def test_the_sharper_bound() -> None:
    """D / G is more than exp(-gap / D), and still less than the truth."""
    problem = random_problem(0, "classical")
    c, best = od.certify(problem, problem.uniform()), od.solve(problem, tol=1e-9)
    assert math.exp(-c.relative_gap) < c.efficiency < od.efficiency(problem, problem.uniform(), best=best)


def test_the_best_of_another_problem_is_certified_anew() -> None:
    x = np.random.default_rng(3).normal(size=(12, 3))
    y = x.copy()
    y[5] *= 10
    p, q = od.DesignProblem(x), od.DesignProblem(y)
    of_p, of_q = od.solve(p, tol=1e-9), od.solve(q, tol=1e-9)
    truth = od.efficiency(q, of_p.weights, best=of_q)
    assert truth < 0.7
    assert od.efficiency(q, of_p.weights, best=of_p) <= truth + 1e-8


def test_results_stay_frozen_when_pickled() -> None:
    r = pickle.loads(pickle.dumps(od.solve(od.DesignProblem(np.eye(2)))))
    for array in (r.weights, r.problem.candidates):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


@pytest.mark.parametrize("gap", [3.9524e-14, 0.1, 1.0, 123456.0, 9.999e-7, 2.0**-1000])
def test_printed_gaps_are_rounded_up(gap: float) -> None:
    assert gap <= Fraction(rounded_up(gap)) <= gap * Fraction(102, 100)
    assert rounded_up(math.inf) == "inf"
