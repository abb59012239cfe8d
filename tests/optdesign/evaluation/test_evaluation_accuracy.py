"""Evaluations of ill-conditioned designs, and of designs without runs in a parameter block."""

from fractions import Fraction

import numpy as np
import pytest

import optdesign as od


def solved(x: np.ndarray, w: np.ndarray, right: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return (X'WX)^-1 R, by elimination in fractions."""
    d = x.shape[1]
    rows = [[Fraction(v) for v in row] for row in x.tolist()]
    runs = [Fraction(v) for v in w.tolist()]
    u = [
        [sum((c * r[i] * r[j] for c, r in zip(runs, rows, strict=True)), Fraction(0)) for j in range(d)]
        + right[i]
        for i in range(d)
    ]
    for k in range(d):
        at = next(i for i in range(k, d) if u[i][k] != 0)
        u[k], u[at] = u[at], u[k]
        u[k] = [v / u[k][k] for v in u[k]]
        for i in range(d):
            if i != k:
                factor = u[i][k]
                u[i] = [a - factor * b for a, b in zip(u[i], u[k], strict=True)]
    return [row[d:] for row in u]


def variances(x: np.ndarray, w: np.ndarray) -> list[float]:
    """Return the diagonal of (X'WX)^-1."""
    d = x.shape[1]
    inverse = solved(x, w, [[Fraction(int(i == k)) for k in range(d)] for i in range(d)])
    return [float(inverse[i][i]) for i in range(d)]


def test_aliases_of_years_in_their_own_units_are_accurate() -> None:
    """The normal equations have the square of the condition, and lose all digits."""
    year, temp = (
        np.array([2018, 2018, 2019, 2019, 2021, 2021, 2018, 2021]),
        np.array([20, 40, 70] * 2 + [70, 20]),
    )
    batch = np.array([2018, 2019, 2019, 2021, 2021, 2018, 2018, 2021])
    table = {"year": year, "temp": temp, "batch": batch}
    e = od.evaluate(table, model="~ year + temp + batch + I(batch**2)", alias="~ year:batch", coded=False)
    x, z = np.column_stack([np.ones(8), year, temp, batch, batch**2]), year * batch
    right = [[Fraction(int(v))] for v in x.T.astype(np.int64) @ z]
    exact = [float(row[0]) for row in solved(x, np.ones(8), right)]
    assert e.alias_terms == ("year:batch",)
    np.testing.assert_allclose(e.alias[:, 0], exact, rtol=1e-5)


def test_powers_of_years_are_estimable() -> None:
    """The scaled singular values span more than 10 digits, and the rank is full."""
    years = np.arange(2018.0, 2024.0)
    x = np.vander(years, 4, increasing=True)
    w = np.array([2.0, 1.0, 1.0, 1.0, 1.0, 2.0])
    e = od.evaluate((od.DesignProblem(x, budgets=8.0), w))
    assert (e.rank, e.error_df) == (4, 4.0)
    np.testing.assert_allclose(e.relative_variances, variances(x, w), rtol=1e-6)


def test_rows_of_very_different_sizes_are_estimable() -> None:
    x = np.array([[1.0, 2.0], [1.0, 2.0 + 1e-7], [1e-6, 3e-6], [2.0, 4.0]])
    w = np.array([1.0, 0.0, 1e-9, 1.0 - 1e-9])
    e = od.evaluate((od.DesignProblem(x, budgets=2.0), w * np.array([1.0, 1.0, 1.0, 1.0])), runs=2)
    assert e.rank == 2
    np.testing.assert_allclose(e.relative_variances, variances(x, w), rtol=1e-6)


def test_exactly_dependent_columns_stay_not_estimable() -> None:
    x = np.column_stack([np.ones(4), np.arange(4.0), 2 * np.arange(4.0)])
    e = od.evaluate((od.DesignProblem(x, budgets=4.0), np.ones(4)))
    assert e.rank == 2
    assert np.isfinite(e.standard_errors).tolist() == [True, False, False]
    assert "linearly dependent up to round-off" in " ".join(e.notes)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_parameter_block_without_runs_has_infinite_standard_errors(lost: int) -> None:
    x = np.array([[1.0, -1.0], [1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    blocks = np.array([0, 0, 1, 1])
    w = np.where(blocks == lost, 0.0, 1.0)
    e = od.evaluate((od.DesignProblem(x, parameter_blocks=blocks, budgets=2.0), w))
    assert e.rank == 2
    assert np.isinf(e.standard_errors).tolist() == np.repeat([lost == 0, lost == 1], 2).tolist()
    assert np.isinf(e.vif).tolist() == np.isinf(e.standard_errors).tolist()


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e-15])
def test_a_column_of_zeros_in_the_runs_predicts_nothing_beside_them(unit: float) -> None:
    x = np.array([[1.0, 0.0], [1.0, unit], [1.0, -unit]])
    e = od.evaluate((od.DesignProblem(x, budgets=3), np.array([3.0, 0.0, 0.0])))
    assert np.isinf(e.variances).tolist() == [False, True, True]
    assert e.largest_variance == np.inf


@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e12, 1e20])
def test_measures_of_columns_in_other_units(unit: float) -> None:
    t = np.array([-1.0, -1, 1, 1, 0, 0])
    problem = od.DesignProblem(np.column_stack([np.ones(6), unit * t, (unit * t) ** 2]), budgets=6)
    e = od.evaluate((problem, np.ones(6)))
    trace = sum(variances(np.asarray(problem.candidates), np.ones(6)))
    expected = 3 / (6 * trace)
    assert pytest.approx(expected, rel=1e-9) == e.measures.A
    assert pytest.approx(expected, rel=1e-9) == od.Runs.given(problem, np.ones(6, int)).measures.A
    assert pytest.approx((32 * unit**6) ** (1 / 3) / 6, rel=1e-9) == e.measures.D


def test_a_category_with_one_level_has_no_term() -> None:
    table = {"cat": ["a"] * 6, "t": [1.0, 2, 3, 1, 2, 3]}
    e, alone = od.evaluate(table, "~ cat + t"), od.evaluate({"t": table["t"]}, "~ t")
    assert e.effect_terms == alone.effect_terms == ("Intercept", "t")
    np.testing.assert_allclose(e.power, alone.power)


@pytest.mark.parametrize("unit", [2.0**5, 2.0**15, 2.0**33])
def test_measures_of_a_lower_rank_are_accurate_or_not_given(unit: float) -> None:
    """Column 2 is twice column 1; the pseudo-inverse of the information is that of two columns, stretched.

    With columns of sizes 1e-10 and 1e10, round-off of the row space exceeds the smallest column.
    """
    z = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0], [1.0, 5.0]])
    x = np.column_stack([z[:, 0] / unit, z[:, 1] * unit, 2 * z[:, 1] * unit])
    # U = S' Z'Z S with the rows (1 / unit, 0, 0) and (0, unit, 2 unit) of S.
    inverse = np.linalg.inv(z.T @ z)
    trace = inverse[0, 0] * unit**2 + inverse[1, 1] / (5 * unit**2)
    log_det = np.log(np.linalg.det(z.T @ z)) + np.log(5.0)
    problem = od.DesignProblem(x, budgets=4.0)
    for found in (
        od.evaluate((problem, np.ones(4))).measures,
        od.DesignResult.given(problem, np.ones(4)).measures,
    ):
        if unit > 1e9:
            assert np.isnan(found.A)
            continue
        assert pytest.approx(2 / (4 * trace), rel=1e-14 * unit**2 + 1e-12, abs=0) == found.A
        assert pytest.approx(np.exp(log_det / 2) / 4, rel=1e-14 * unit**2 + 1e-12, abs=0) == found.D


@pytest.mark.parametrize("exponent", [0, 20, 25, 28, 40])
def test_bounds_of_dependent_columns_hold_in_any_units(exponent: int) -> None:
    """Column 2 is twice column 1. In large units, A is the variance of the extrapolation to 0."""
    z = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 4.0], [1.0, 5.0]])
    x = np.column_stack([z[:, 0] / 2.0**exponent, z[:, 1] * 2.0**exponent, z[:, 1] * 2.0 ** (exponent + 1)])
    e = od.evaluate((od.DesignProblem(x, budgets=4.0), np.ones(4)))
    largest = (2.25 / 4) / (46 / 40) if exponent else 0.5
    assert e.a_efficiency <= largest
    assert e.a_efficiency > (0.3 if exponent < 25 else -1)
    # Half of the runs at 1 and half at 5: variances (1 + ((t - 3) / 2)^2) / 4, with the mean 13/32.
    assert 0.81 < e.i_efficiency <= 0.8125


def test_a_parameter_block_of_rank_0_has_efficiencies_and_measures() -> None:
    x = np.array([[1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    e = od.evaluate((od.DesignProblem(x, parameter_blocks=[0, 0, 1], budgets=4.0), np.array([2.0, 2.0, 0.0])))
    assert e.rank == 2
    np.testing.assert_allclose([e.a_efficiency, e.measures.A, e.measures.D], 1.0, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e-100, 1.0])
def test_short_rows_outside_the_row_space_have_infinite_variance(size):
    x = np.array([[1.0, 2, 3], [2, 4, 1], [1, 2, 5]])
    problem = od.DesignProblem(x, budgets=3)
    e = od.evaluate((problem, [1, 1, 1]))
    np.testing.assert_array_equal(e.predict(size * np.array([[1.0, 0, 0], [0, 0, 0]])), [np.inf, 0])
    assert e.predict(size * x).max() < 1
    longer = od.evaluate((problem, [1, 1, 1]), region=np.array([[1.0, 2, 3], [size, 0, 0]]))
    assert np.isnan(longer.i_efficiency)
    several = od.DesignProblem(np.vstack([x, [size, 0, 0]]), budgets=3)
    assert od.evaluate((several, [1, 1, 1, 0])).largest_variance == np.inf


def test_measures_without_correct_digits_are_not_numbers():
    """Four of these rows are independent only because 0.1, 0.2 and 0.3 are rounded."""
    x = np.array([[1, -2, -2, -2], [1, -1, 0, 1], [1, 2, -3, -2], [1, -3, 1, 0], [1, -1, -1, 0]])
    x = x * np.array([1e5, 10.0**-1, 10.0**-1, 1e3])
    found = od.DesignResult.given(od.DesignProblem(x, budgets=10), [1, 5, 0, 1, 3]).measures
    assert found.D > 0
    assert found.A == 0 or np.isnan(found.A)


@pytest.mark.parametrize("size", [1e6, 1e7, 1e9])
def test_small_columns_in_a_combination_are_not_estimable(size: float) -> None:
    """x2 = x1 + x3 exactly, and x3 is short beside them."""
    a, b = np.array([1, 2, 3, 5, 1, 4.0]), np.array([0, 1, 0, 2, 3, 1.0])
    p = od.DesignProblem(np.column_stack([np.ones(6), size * a, size * a + b, b]), budgets=6)
    e = od.evaluate((p, np.ones(6)))
    assert e.rank == 3
    assert np.isinf(e.standard_errors).tolist() == [False, True, True, True]
    assert np.isinf(e.predict([[1.0, size, size, 1.0]])).all()
    assert np.isfinite(e.predict([[1.0, size, size + 1, 1.0]])).all()


@pytest.mark.parametrize("first", [100, 19_000, 100_000])
def test_models_far_from_zero_are_not_exchanged(first: int) -> None:
    p = od.DesignProblem(od.candidates({"day": first + np.arange(7.0)}, "~ day + I(day**3)"), budgets=7)
    counts = [2, 1, 0, 1, 1, 0, 2]
    rows = [[Fraction(v) for v in row] for row in p.candidates.tolist()]
    solution = solved(p.candidates, np.array(counts), [list(part) for part in zip(*rows, strict=True)])
    variances = [float(sum(row[i] * solution[i][n] for i in range(3))) for n, row in enumerate(rows)]
    for coded in (False, True):
        e = od.evaluate((p, counts), coded=coded)
        assert e.largest_variance == pytest.approx(max(variances), rel=1e-6)
        assert e.average_variance == pytest.approx(np.mean(variances), rel=1e-6)


@pytest.mark.parametrize("first", [100, 19_000, 101_325, 10**6])
def test_aliases_far_from_zero_are_found(first: int) -> None:
    e = od.evaluate({"x": [first + k for k in range(5)] * 2}, "~ x", coded=False)
    assert e.alias_terms == ("I(x ** 2)",)
    assert e.alias[1, 0] == pytest.approx(2 * first + 4, rel=1e-6)


def test_terms_within_the_span_are_no_aliases() -> None:
    e = od.evaluate({"x": [101_325 + k for k in range(5)] * 2, "z": [0, 1] * 5}, "~ x + z", coded=False)
    assert e.alias_terms == ("I(x ** 2)", "x:z")  # z ** 2 is z


@pytest.mark.parametrize("budget", [1e9, 1e17, 1e40])
def test_very_many_runs_need_no_list(budget: float) -> None:
    e = od.evaluate(od.solve(od.DesignProblem([[1, -1.0], [1, 0], [1, 1]], budgets=budget)))
    np.testing.assert_allclose(e.standard_errors, budget**-0.5)


def test_variances_beyond_the_range_are_refused() -> None:
    for size in (1e-148, 1e-155):
        p = od.DesignProblem([[1, -size], [1, 0], [1, 2 * size]], budgets=6)
        if size < 1e-150:
            with pytest.raises(od.InputError, match="that of 'x1' is larger"):
                od.evaluate((p, [3, 1, 2]))
        else:
            assert od.evaluate((p, [3, 1, 2])).correlation[0, 1] == pytest.approx(-2 / np.sqrt(6 * 44))


@pytest.mark.parametrize(
    ("years", "degree"),
    [
        ([2016.5, 2017, 2017.5, 2018, 2018.5, 2019, 2019.5], 3),
        ([1975, 1980, 1985, 1990, 1995, 2000, 2005], 4),
    ],
)
def test_power_of_a_term_of_nearly_dependent_columns(years: list[float], degree: int) -> None:
    e = od.evaluate({"x": years * 2}, f"~ poly(x, {degree}, raw=True)", effect=3)
    x, b = e.experiment.features, [Fraction(v) for v in e.coefficients[1:].tolist()]
    d = degree + 1
    c = solved(x, np.ones(len(x)), [[Fraction(int(i == k)) for k in range(d)] for i in range(d)])
    part = [[*row[1:], value] for row, value in zip(c[1:], b, strict=True)]
    for k in range(degree):  # elimination of (C_LL, b)
        at = next(i for i in range(k, degree) if part[i][k] != 0)
        part[k], part[at] = part[at], part[k]
        for i in range(degree):
            if i != k:
                factor = part[i][k] / part[k][k]
                part[i] = [v - factor * w for v, w in zip(part[i], part[k], strict=True)]
    expected = float(sum(b[k] * part[k][-1] / part[k][k] for k in range(degree)))
    assert e.effect_noncentrality[1] == pytest.approx(expected, rel=1e-9)
