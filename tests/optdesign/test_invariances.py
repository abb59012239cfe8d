"""What may not change the answer: maps of a block, order, duplicates, signs, units, labels, zero vectors.

Each invariance is tested twice. *On any weights*, where F and the gap must agree to rounding: the bound is
``Plain.error`` of either side, which knows the condition. *On the optimum*, found afresh by a solver:
each F lies within its gap below the common maximum, so |F1 - F2 - shift| <= max(gap1, gap2), and the
relative eigenvalues of two pulled-back designs obey the interval that follows from both gaps.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import (
    EPS,
    KINDS,
    METHODS,
    Plain,
    assert_certified,
    eigenvalue_interval,
    plain,
    random_problem,
    relative_eigenvalues,
)

import optdesign as od
from optdesign.testing import problems, weighted


class Change(NamedTuple):
    """A changed problem, how weights follow it and come back, and by how much F shifts."""

    problem: od.DesignProblem
    push: Callable[[np.ndarray], np.ndarray]
    pull: Callable[[np.ndarray], np.ndarray]
    shift: float


def identity(w: np.ndarray) -> np.ndarray:
    return w


def invertible_maps(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    """Another invertible map in every block; where a block has full rank F shifts by log det^2."""
    x = np.array(p.candidates)
    shift = 0.0
    for b in range(p.n_parameter_blocks):
        q1, q2 = (np.linalg.qr(rng.normal(size=(p.dim, p.dim)))[0] for _ in range(2))
        m = (q1 * np.exp2(rng.uniform(-3, 3, size=p.dim))) @ q2
        rows = p.parameter_blocks == b
        before = x[rows]
        x[rows] = before @ m
        if p.ranks[b]:
            # With B an orthonormal basis of the span, volumes in it are multiplied by |B' M|.
            basis = np.linalg.svd(before)[2][: p.ranks[b]]
            shift += np.linalg.slogdet(basis @ m @ m.T @ basis.T)[1]
    return Change(od.DesignProblem(x, p.groups, p.parameter_blocks, p.budgets), identity, identity, shift)


def permutation(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    order = rng.permutation(p.n_candidates)
    back = np.argsort(order)
    q = od.DesignProblem(p.candidates[order], p.groups[order], p.parameter_blocks[order], p.budgets)
    return Change(q, lambda w: w[order], lambda w: w[back], 0.0)


def duplicates(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    """Some candidates appear several times; what they carry together is what counts."""
    copies = rng.integers(1, 4, size=p.n_candidates)
    source = np.repeat(np.arange(p.n_candidates), copies)
    share = rng.exponential(size=len(source)) + 0.1
    share /= np.bincount(source, weights=share)[source]
    q = od.DesignProblem(p.candidates[source], p.groups[source], p.parameter_blocks[source], p.budgets)
    return Change(q, lambda w: w[source] * share, lambda w: np.bincount(source, weights=w), 0.0)


def signs(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    flip = rng.choice([-1.0, 1.0], size=(p.n_candidates, 1))
    return Change(
        od.DesignProblem(p.candidates * flip, p.groups, p.parameter_blocks, p.budgets),
        identity,
        identity,
        0.0,
    )


def budget_scale(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    c = float(10.0 ** rng.uniform(-6, 6))
    q = od.DesignProblem(p.candidates, p.groups, p.parameter_blocks, c * p.budgets)
    return Change(q, lambda w: c * w, lambda w: w / c, p.rank * np.log(c))


def relabelling(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    group, block = (
        rng.permutation(p.n_groups),
        rng.permutation(p.n_parameter_blocks + 2)[: p.n_parameter_blocks],
    )
    budgets = np.empty(p.n_groups)
    budgets[group] = p.budgets
    q = od.DesignProblem(p.candidates, group[p.groups], block[p.parameter_blocks], budgets)
    return Change(q, identity, identity, 0.0)


def zero_vectors(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    """Zero vectors join groups and blocks, and one group has nothing else; F and G do not notice."""
    k = int(rng.integers(1, 4))
    x = np.vstack([p.candidates, np.zeros((k + 1, p.dim))])
    groups = np.concatenate([p.groups, rng.integers(0, p.n_groups, size=k), [p.n_groups]])
    blocks = np.concatenate([p.parameter_blocks, rng.integers(0, p.n_parameter_blocks, size=k + 1)])
    q = od.DesignProblem(x, groups, blocks, [*p.budgets, 2.5])
    tail = np.array([0.0] * k + [2.5])

    def pull(w: np.ndarray) -> np.ndarray:
        """Give what zero vectors carry back to their groups: F can only grow by it."""
        kept = w[: p.n_candidates]
        total = np.bincount(p.groups, weights=kept)
        return kept * (p.budgets / total)[p.groups]

    return Change(q, lambda w: np.concatenate([w, tail]), pull, 0.0)


def column_units(p: od.DesignProblem, rng: np.random.Generator) -> Change:
    """Powers of two, so that nothing is rounded; the shift is that of the map, computed per block."""
    scale = np.exp2(rng.integers(-10, 11, size=p.dim))
    shift = 0.0
    for b in range(p.n_parameter_blocks):
        if p.ranks[b]:
            basis = np.linalg.svd(p.candidates[p.parameter_blocks == b])[2][: p.ranks[b]]
            # Rows scaled one at a time: the QR factor keeps relative accuracy that a Gram matrix loses.
            r = np.linalg.qr((basis * scale).T, mode="r")
            shift += 2 * np.sum(np.log(np.abs(np.diag(r))))
    return Change(
        od.DesignProblem(p.candidates * scale, p.groups, p.parameter_blocks, p.budgets),
        identity,
        identity,
        shift,
    )


CHANGES = [
    invertible_maps,
    permutation,
    duplicates,
    signs,
    budget_scale,
    relabelling,
    zero_vectors,
    column_units,
]


@given(case=weighted(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_certificates_do_not_notice(case: tuple[od.DesignProblem, np.ndarray], seed: int) -> None:
    problem, w = case
    a, p = od.certify(problem, w), plain(problem, w)
    for change in CHANGES:
        other, push, pull, shift = change(problem, np.random.default_rng(seed))
        b, q = od.certify(other, push(w)), plain(other, push(w))
        # The changed data are themselves rounded, by eps times the condition of the map (at most 2^6 for
        # invertible_maps, exact otherwise), which enters like the rounding of the other side.
        rounding = 2 * (p.error + 64 * q.error)
        assert a.rank == b.rank, change
        assert abs(a.gap - b.gap) <= rounding, change
        allowed = rounding + 100 * EPS * (abs(shift) + abs(a.log_det))
        assert abs(b.log_det - a.log_det - shift) <= allowed, change
        np.testing.assert_allclose(pull(push(w)), w, rtol=100 * EPS)


@cache
def solved(seed: int, kind: str, method: str, tol: float) -> tuple[od.DesignResult, Plain]:
    """Return the certified optimum of a random problem before it is changed."""
    result = od.solve(random_problem(seed, kind, deficient=seed == 2), tol=tol, method=method)
    return result, assert_certified(result, tol)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_optima_do_not_notice(change, kind: str, method: str) -> None:
    tol = 1e-5
    for seed in range(3):
        r, p = solved(seed, kind, method, tol)
        other, _, pull, shift = change(r.problem, np.random.default_rng(seed))
        s = od.solve(other, tol=tol, method=method)
        q = assert_certified(s, tol)
        rounding = 2 * (p.error + 64 * q.error) + 100 * EPS * (abs(shift) + abs(p.log_det))
        assert abs(s.log_det - r.log_det - shift) <= max(r.gap, s.gap) + rounding
        back = plain(r.problem, pull(s.weights))
        low_r, high_r = eigenvalue_interval(r.gap + rounding)
        low_s, high_s = eigenvalue_interval(s.gap + rounding)
        values = relative_eigenvalues(back, p)
        slack = 1 + rounding
        assert low_s / high_r / slack <= values.min()
        assert values.max() <= high_s / low_r * slack


@given(problems(), st.floats(-6, 6))
def test_gap_is_unchanged_by_the_unit_of_budgets(problem: od.DesignProblem, exponent: float) -> None:
    c = 10.0**exponent
    other = od.DesignProblem(
        problem.candidates, problem.groups, problem.parameter_blocks, c * problem.budgets
    )
    a, b = od.certify(problem, problem.uniform()), od.certify(other, other.uniform())
    rounding = 2 * plain(problem, problem.uniform()).error
    assert abs(a.gap - b.gap) <= 2 * rounding
    assert abs(b.log_det - a.log_det - problem.rank * np.log(c)) <= 2 * rounding + 1e3 * EPS
