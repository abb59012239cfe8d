"""Ranks, variances and efficiencies of ill-conditioned and rank-deficient designs, against fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest

import optdesign as od


def reduced(rows: list[list[Fraction]]) -> tuple[list[list[Fraction]], list[int]]:
    """Return the reduced row echelon form and its pivot columns."""
    rows = [list(row) for row in rows]
    pivots: list[int] = []
    for j in range(len(rows[0])):
        k = len(pivots)
        at = next((i for i in range(k, len(rows)) if rows[i][j] != 0), None)
        if at is None:
            continue
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [v / rows[k][j] for v in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][j] != 0:
                factor = rows[i][j]
                rows[i] = [v - factor * u for v, u in zip(rows[i], rows[k], strict=True)]
        pivots.append(j)
    return rows[: len(pivots)], pivots


def exact(x: np.ndarray, w: np.ndarray, at: np.ndarray) -> tuple[int, list[float]]:
    """Return the rank of the rows with weight, and x' (X'WX)^- x at some rows, infinite outside."""
    given, target = ([[Fraction(v) for v in row] for row in part.tolist()] for part in (x, at))
    runs = [(Fraction(c), row) for c, row in zip(w.tolist(), given, strict=True) if c > 0]
    d = x.shape[1]
    information = [[sum((c * r[i] * r[j] for c, r in runs), Fraction(0)) for j in range(d)] for i in range(d)]
    rank = len(reduced([row for _, row in runs])[1])
    found = []
    for row in target:
        solution, pivots = reduced([[*u, v] for u, v in zip(information, row, strict=True)])
        inside = d not in pivots
        value = sum((row[j] * solution[k][d] for k, j in enumerate(pivots)), Fraction(0)) if inside else None
        found.append(np.inf if value is None else float(value))
    return rank, found


def powers(y: np.ndarray, degree: int) -> np.ndarray:
    return np.column_stack([y**k for k in range(degree + 1)])


LONG = 2.0**36
WITH_ZEROS = np.array([[LONG, LONG, 0], [1, -2, 0], [2 * LONG, 2 * LONG, 0], [3, 1, 0]])
DATA: dict[str, tuple[np.ndarray, list[int]]] = {
    "cubic in a pressure at 3 settings": (powers(101325 + 100 * np.arange(8.0), 3), [2, 2, 2, 0, 0, 0, 0, 0]),
    "cubic in a year at 3 settings": (powers(2018 + np.arange(8.0), 3), [2, 2, 2, 0, 0, 0, 0, 0]),
    "column of zeros": (WITH_ZEROS, [2, 2, 3, 1]),
    "lost rank": (WITH_ZEROS, [4, 0, 4, 0]),
    "rows of very different sizes": (
        np.array([[2.0**-26, 0, 2.0**-26], [-3 * 2.0**26, 3 * 2.0**26, -3 * 2.0**26], [1, -1, 2]]), [1, 4, 1]
    ),
    "no coefficient is estimable": (
        np.array([[2.0**12], [2.0**-9], [2.0**-8]]) * [[-2, 6, 0, 4], [0, -1, -1, 0], [1, 1, 1, -1]],
        [1, 1, 1],
    ),
    "column without runs": (np.array([[1, 0], [1, 1e6], [1, 1e-7]]), [2, 0, 0]),
    "milliseconds and a category without runs": (
        np.array([[1, 1.7e12 + t, c] for t in (0, 1, 5, 20, 33, 60, 100) for c in (0, 1)]), [1, 0] * 7
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DATA)
def test_ranks_and_variances_are_those_of_exact_arithmetic(name: str) -> None:
    x, w = DATA[name][0], np.array(DATA[name][1], float)
    e = od.evaluate((od.DesignProblem(x, budgets=w.sum()), w))
    rank, variances = exact(x, w, x)
    assert e.rank == rank
    assert e.error_df == w.sum() - rank
    np.testing.assert_allclose(e.variances, variances, rtol=1e-6)
    np.testing.assert_allclose(e.predict(x), variances, rtol=1e-6)
    np.testing.assert_allclose(e.relative_variances, exact(x, w, np.eye(x.shape[1]))[1], rtol=1e-6)
    if np.isinf(variances).any():
        assert (e.a_efficiency, e.measures) == (0.0, (0.0, 0.0, 0.0, 0.0))


def test_a_parameter_block_without_runs_predicts_nothing() -> None:
    p = od.DesignProblem([[1, 0], [0, 1], [1e6, 0], [1e-7, 0]], parameter_blocks=[0, 0, 1, 1], budgets=2)
    assert od.evaluate((p, [1, 1, 0, 0])).variances.tolist() == [1, 1, np.inf, np.inf]


NEAR_256 = 256 + np.array([[3, -8, 0], [1, 24, 0], [0, 0, 0], [-1, -24, 0]]) * [2.0**-13, 2.0**-13, 1]
NEAR_256[:, 2] += np.array([1, 0, -1, 1]) * 2.0**-20


@pytest.mark.parametrize("x", [np.column_stack([np.ones(4), NEAR_256]), powers(np.arange(2016.0, 2020), 3)])
def test_measures_of_evaluations_and_of_designs_are_equal(x: np.ndarray) -> None:
    """Columns are nearly dependent, and weights are from 1e-6 to 1e9."""
    w = np.array([1e4, 1e-6, 1e9, 1e8])
    p = od.DesignProblem(x, budgets=w.sum())
    rows = [[Fraction(v) for v in row] for row in x.tolist()]
    determinant = Fraction(1)
    for k in range(4):
        determinant *= rows[k][k]
        rows = [
            [v - row[k] / rows[k][k] * u for v, u in zip(row, rows[k], strict=True)] if i > k else row
            for i, row in enumerate(rows)
        ]
    log_det = 2 * (math.log(abs(determinant.numerator)) - math.log(determinant.denominator)) + np.sum(
        np.log(w)
    )
    expected = math.exp(log_det / 4) / w.sum()
    assert pytest.approx(expected, rel=1e-6) == od.evaluate((p, w)).measures.D
    assert pytest.approx(expected, rel=1e-6) == od.DesignResult.given(p, w).measures.D


def test_doubt_about_the_rank_of_the_region_is_noted() -> None:
    """A cubic at 4 settings has rank 4 in exact arithmetic, and rank 3 up to round-off."""
    region = {"x": [2018, 2018.25, 2018.5, 2018.75]}
    e = od.evaluate(
        {"x": [2018, 2018.25, 2018.75] * 2}, "~ x + I(x**2) + I(x**3)", region=region, coded=False
    )
    assert e.rank == 3
    assert "In exact arithmetic on the numbers as given it is larger" in e.notes[-1]
