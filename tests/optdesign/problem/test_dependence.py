"""Rank in words: which columns depend on which, and what an efficiency is one of."""

import numpy as np
import pytest

import optdesign as od
from optdesign.problem.dependence import dependences, in_words

NAMES = ["one", "p", "c", "pp", "pc", "cc"]


def quadratic(p: np.ndarray, c: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(p)), p, c, p * p, p * c, c * c])


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e5, 1e-6), (1e-20, 1e20)])
def test_two_levels_cannot_bend(units: tuple[float, float]) -> None:
    """With c at two levels, 1 and 3, c^2 is 4 c - 3; with p at three there is a parabola."""
    p, c = (a.ravel() for a in np.meshgrid([1.0, 2.0, 4.0], [1.0, 3.0]))
    problem = od.DesignProblem(quadratic(p * units[0], c * units[1]))
    assert problem.rank == 5
    assert dependences(problem, 0) == [(5, [0, 2])]
    assert in_words(problem, NAMES) == "cc is a combination of one, c"
    text = str(od.solve(problem))
    assert "rank 5 of 6" in text
    assert ", for the 5 of 6 parameters that are estimable" in text
    assert "column 5 is a combination of column 0, column 2" in text


def test_full_rank_needs_no_words() -> None:
    problem = od.DesignProblem(np.random.default_rng(0).normal(size=(20, 3)))
    assert in_words(problem) == ""
    text = str(od.solve(problem))
    assert "rank 3 of 3" in text
    assert "note" not in text
    assert "estimable" not in text


def test_zero_columns_and_many() -> None:
    x = np.column_stack([np.zeros(9), np.arange(9.0), *(k * np.arange(9.0) for k in range(2, 6))])
    problem = od.DesignProblem(x)
    assert dependences(problem, 0) == [(0, []), (2, [1]), (3, [1]), (4, [1]), (5, [1])]
    assert in_words(problem).startswith("column 0 is zero; column 2 is a combination of column 1; ")
    assert in_words(problem).endswith("and 2 more")


def test_a_block_without_candidates() -> None:
    problem = od.DesignProblem(np.eye(2), parameter_blocks=[1, 1])
    assert problem.n_parameters == 4
    assert in_words(problem, ["a", "b"]) == "a is zero; b is zero"


def test_the_first_deficient_block_is_described() -> None:
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0], [2.0, 4.0]])
    assert (
        in_words(od.DesignProblem(x, parameter_blocks=[0, 0, 1, 1]), ["a", "b"]) == "b is a combination of a"
    )


def test_as_many_sentences_as_dimensions_are_missing() -> None:
    """A column that is nearly another counts for the rank, and so it is not called a combination."""
    rng = np.random.default_rng(0)
    c = rng.normal(size=10)
    problem = od.DesignProblem(np.column_stack([c, c * (1 + 1e-10 * rng.normal(size=10)), 2 * c]))
    assert problem.rank == 2
    assert [column for column, _ in dependences(problem, 0)] == [2]


@pytest.mark.parametrize(("a", "b"), [(1.0, 2.0**-21), (2.0**20, 0.25)])
def test_small_parts_of_a_combination_are_named(a: float, b: float) -> None:
    x, y = (part.ravel() for part in np.meshgrid(np.arange(4.0), np.arange(4.0)))
    assert dependences(od.DesignProblem(np.column_stack([x, y, a * x + b * y])), 0) == [(2, [0, 1])]


@pytest.mark.parametrize("unit", [1.0, 1e9, 1e12])
def test_a_column_in_a_large_unit_hides_no_other(unit: float) -> None:
    """Column 2 is 1 less column 1, and the last column is zero in some rows."""
    drug = np.array([1.0, 1, 0, 0, 1, 0])
    dose = drug * np.array([1, 3, 1, 1, 2, 1]) * unit
    problem = od.DesignProblem(np.column_stack([np.ones(6), drug, 1 - drug, dose]))
    assert dependences(problem, 0) == [(2, [0, 1])]


@pytest.mark.parametrize(
    ("x", "others"),
    [
        (np.vander([0.158, 3160.0, 1.58e-5, 126.0, 2.51e-4], 6, increasing=True), [0, 1, 2, 3, 4]),
        (np.array([[256, 0, 512.0], [0, 9e-13, 9e-13]]), [0, 1]),
    ],
)
def test_columns_that_only_short_rows_need_are_named(x: np.ndarray, others: list[int]) -> None:
    assert dependences(od.DesignProblem(x), 0) == [(len(others), others)]


def test_round_off_needs_no_column() -> None:
    a, b = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), np.array([0.3, 0.1, 0.7, 0.2, 0.5, 0.6])
    problem = od.DesignProblem(np.column_stack([np.ones(6), a, b, a + b]))
    assert dependences(problem, 0) == [(3, [1, 2])]
