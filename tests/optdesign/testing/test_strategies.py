"""Strategies draw what their options state, and shrink to small examples."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from searches import few, seen, smallest

import optdesign as od
from optdesign.testing import (
    FAMILIES,
    STRUCTURES,
    assert_certified,
    assert_feasible,
    feasible_weights,
    matrices,
    problems,
    random_problems,
    semidefinite,
    ugly_problem,
    ugly_problems,
)


def of_rank(p: od.DesignProblem) -> np.ndarray:
    """Ranks of the blocks by exact elimination modulo a prime that the package's ranks do not use."""
    from optdesign.verification.exact_arithmetic import exact_rank

    members = [p.candidates[p.parameter_blocks == b] for b in range(p.n_parameter_blocks)]
    return np.array([exact_rank(x, np.arange(len(x)))[1] if len(x) else 0 for x in members])


@pytest.mark.parametrize("structure", STRUCTURES)
def test_structures_are_what_they_are_called(structure: str) -> None:
    @few
    @given(problems(structure=structure, max_candidates=9, max_groups=3, max_blocks=2, max_dim=2))
    def holds(p: od.DesignProblem) -> None:
        assert p.n_candidates <= 9
        assert p.n_groups <= (1 if structure == "classical" else 3)
        assert p.n_parameter_blocks <= (2 if structure in ("disjoint", "mixed") else 1)
        assert p.dim <= 2
        assert (p._grid is not None) == (structure in ("disjoint", "shared"))
        assert p.rank_note == ""
        np.testing.assert_array_equal(p.ranks, of_rank(p))

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_options_are_obeyed(structure: str) -> None:
    @few
    @given(problems(structure=structure, deficient=True), problems(structure=structure, deficient=False))
    def ranks(less: od.DesignProblem, full: od.DesignProblem) -> None:
        assert np.all(less.ranks < less.dim)
        assert full.rank == full.n_parameters

    @few
    @given(problems(structure=structure, duplicates=True, deficient=False))
    def copies(p: od.DesignProblem) -> None:
        rows = np.column_stack([p.parameter_blocks, p.candidates])
        assert len(np.unique(rows, axis=0)) < len(rows) <= 12
        assert p.rank == p.n_parameters

    @few
    @given(problems(structure=structure, budgets=0))
    def ones(p: od.DesignProblem) -> None:
        assert np.all(p.budgets == 1)

    for test in (ranks, copies, ones):
        test()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_copies_of_scaled_rows_are_equal(structure: str) -> None:
    @few
    @given(problems(structure=structure, duplicates=True, scales=6.0))
    def holds(p: od.DesignProblem) -> None:
        rows = np.column_stack([p.parameter_blocks, p.candidates])
        assert len(np.unique(rows, axis=0)) < len(rows) <= 12

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("structure", STRUCTURES)
def test_every_structure_occurs_in_each_of_its_forms(structure: str) -> None:
    """Each is found, not only allowed: degenerate ranks, unequal budgets, scales, inactive arms."""
    drawn = problems(structure=structure)
    find(drawn, lambda p: p.rank < p.n_parameters, settings=seen)
    find(drawn, lambda p: p.rank == p.n_parameters > 1, settings=seen)
    find(drawn, lambda p: not p.candidates.any(axis=1).all(), settings=seen)
    find(drawn, lambda p: p.budgets.max() > 5 or p.budgets.min() < 0.2, settings=seen)
    scaled = problems(structure=structure, scales=9.0)
    find(scaled, lambda p: np.abs(p.candidates).max() > 1e8, settings=seen)
    if structure in ("disjoint", "shared"):
        find(drawn, lambda p: p._grid[2] is not None, settings=seen)
    if structure != "classical":
        find(drawn, lambda p: p.n_groups >= 3, settings=seen)
    if structure == "mixed":
        find(drawn, lambda p: 0 in np.bincount(p.parameter_blocks), settings=seen)


def size(p: od.DesignProblem) -> float:
    """Numbers, and how large they are."""
    return p.candidates.size + float(np.abs(p.candidates).sum())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wanted", "most"),
    [
        (lambda _: True, 2),
        (lambda p: p.n_groups >= 2 and p.rank >= 2, 6),
        (lambda p: p.n_parameter_blocks >= 2 and p.rank >= 2, 6),
        (lambda p: p.rank >= 3, 12),
        (lambda p: p.rank < p.dim, 5),
        (lambda p: np.abs(p.candidates).max() > 1.2, 3),
    ],
    ids=["any", "two groups, rank 2", "two blocks", "rank 3", "deficient", "large entry"],
)
def test_problems_shrink_to_few_small_numbers(wanted, most: float) -> None:
    p = find(problems(), wanted, settings=smallest)
    assert size(p) <= most, p.candidates
    np.testing.assert_array_equal(p.candidates, np.round(p.candidates))
    assert np.all(p.budgets == 1)


def test_budgets_shrink_to_whole_numbers() -> None:
    p = find(problems(), lambda p: p.budgets[0] > 1.5, settings=smallest)
    assert p.n_candidates == 1
    assert p.budgets.tolist() == [2.0]


@pytest.mark.slow
def test_a_failing_problem_is_printed_as_the_call_that_makes_it() -> None:
    @given(problems(structure=("strata", "disjoint")))
    def never(p: od.DesignProblem) -> None:
        assert p.n_groups == 1

    with pytest.raises(AssertionError) as caught:
        never()
    call = re.search(r"p=(.*),\n\)", "\n".join(caught.value.__notes__), flags=re.DOTALL)
    assert call is not None
    made = eval(call.group(1), {"DesignProblem": od.DesignProblem})
    assert made.n_groups == 2
    assert made.n_candidates == 2


@pytest.mark.slow
def test_weights_are_feasible_and_shrink_to_equal_shares() -> None:
    @given(problems().flatmap(lambda p: st.tuples(st.just(p), feasible_weights(p, zeros=True))))
    def holds(case: tuple[od.DesignProblem, np.ndarray]) -> None:
        assert_feasible(*case)

    holds()
    p = find(problems(), lambda p: p.n_candidates == 3 and p.n_groups == 1, settings=smallest)
    np.testing.assert_allclose(find(feasible_weights(p), lambda _: True, settings=smallest), p.uniform())
    assert (
        find(feasible_weights(p, zeros=True), lambda w: (w == 0).sum() == 2, settings=smallest).max()
        == p.budgets[0]
    )
    assert find(feasible_weights(p), lambda w: w.max() > 3 * w.min(), settings=smallest).min() > 0


def test_matrices_shrink() -> None:
    assert find(matrices(), lambda _: True, settings=smallest).tolist() == [[1.0]]
    assert find(matrices(entries=st.just(0.0)), lambda _: True, settings=smallest).tolist() == [[1.0]]
    assert find(semidefinite(), lambda a: len(a) == 2, settings=smallest).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    a = find(semidefinite(), lambda a: len(a) == 2 and a[0, 1] != 0, settings=smallest)
    values = np.linalg.eigvalsh(a)
    assert np.all((np.abs(values) < 1e-12) | ((values > 0.2499) & (values < 4.001)))


@pytest.mark.parametrize("family", FAMILIES)
def test_ugly_families(family: str) -> None:
    p = ugly_problem(family, 3)
    np.testing.assert_array_equal(p.candidates, ugly_problem(family, 3).candidates)
    r = od.solve(p, time_limit=20)
    if r.gap == np.inf:  # beyond double precision, and said so
        assert r.status is od.Status.STALLED
        with pytest.raises(AssertionError, match="rank of the design"):
            assert_certified(r)
    else:
        assert_certified(r)


@few
@given(random_problems(max_candidates=10), ugly_problems("budgets", "hilbert"))
def test_seeded_problems_obey_their_sizes(p: od.DesignProblem, q: od.DesignProblem) -> None:
    assert p.n_candidates <= 10
    assert q.n_candidates < 30


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: problems(structure="grid"), "structure must be of classical, .*; got 'grid'. Leave it out"),
        (lambda: problems(structure=()), "structure must be of .*; got none"),
        (lambda: problems(max_dim=0), "max_dim must be at least 1; got 0"),
        (lambda: problems(scales=-1.0), "scales must lie between 0 and 20 orders; got -1"),
        (lambda: problems(budgets=30.0), "budgets must lie between 0 and 20 orders; got 30"),
        (lambda: problems(deficient=True, max_dim=1), "max_dim must be at least 2 for deficient"),
        (lambda: problems(duplicates=True, max_candidates=1), "duplicates need max_candidates of at least 2"),
        (lambda: problems(duplicates=True, max_groups=1), "duplicates need .* max_groups of at least 2"),
        (lambda: ugly_problems("pretty"), "families must be of clustered_pool, .*; got 'pretty'"),
    ],
)
def test_options_are_checked_where_they_are_given(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
