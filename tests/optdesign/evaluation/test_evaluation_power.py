"""Power against SciPy's distributions and simulated experiments."""

import numpy as np
import pytest
from published import coffee_table
from scipy import stats

import optdesign as od
from optdesign.evaluation.estimation import least_squares
from optdesign.evaluation.power import noncentrality, power_of_f


@pytest.mark.parametrize("error_df", [1, 2.5, 7, 40])
@pytest.mark.parametrize("alpha", [0.01, 0.2])
def test_power_is_that_of_the_noncentral_distributions(error_df, alpha):
    for delta in (0.3, 1.0, 3.0, 6.0):
        t = stats.t.isf(alpha / 2, error_df)
        by_t = stats.nct.sf(t, error_df, delta) + stats.nct.cdf(-t, error_df, delta)
        assert power_of_f(np.array([delta**2]), np.array([1]), error_df, alpha)[0] == pytest.approx(
            by_t, abs=1e-9
        )
        for df in (2, 5):
            by_f = stats.ncf.sf(stats.f.isf(alpha, df, error_df), df, error_df, delta**2)
            own = power_of_f(np.array([delta**2]), np.array([df]), error_df, alpha)[0]
            assert own == pytest.approx(by_f, abs=1e-9)


def test_power_at_the_ends():
    """SciPy has NaN or a negative power at some of these."""
    ends = power_of_f(np.array([0, 1e-300, 1e4, 1e30, np.nan]), np.ones(5), 23, 0.05)
    np.testing.assert_allclose(ends, [0.05, 0.05, 1, 1, np.nan], rtol=1e-12)
    assert np.isnan(power_of_f(np.array([1.0]), np.ones(1), 0, 0.05)).all()


@pytest.mark.parametrize(("error_df", "alpha"), [(0.01, 0.01), (0.001, 0.2), (0.1, 1e-200), (1, 1e-300)])
def test_power_without_an_effect_is_alpha_if_critical_values_are_beyond_the_range(error_df, alpha):
    powers = power_of_f(np.array([0.0, 1e-3]), np.ones(2), error_df, alpha)
    np.testing.assert_allclose(powers, alpha, rtol=1e-3)


def test_power_of_large_effects_with_few_degrees_of_freedom():
    """The statistic of 1 degree of freedom is nearly delta / |z|, with z normal."""
    alpha, deltas = 1e-6, np.array([3e5, 1e6, 2e6])
    power = power_of_f(deltas**2, np.ones(3), 1, alpha)
    expected = 1 - 2 * stats.norm.sf(deltas * np.tan(np.pi * alpha / 2))
    np.testing.assert_allclose(power, expected, rtol=1e-8)


def test_power_of_a_term_does_not_depend_on_its_coding():
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(15), rng.normal(size=(15, 3))])
    beta, recoding = rng.normal(size=4), np.eye(4)
    recoding[1:, 1:] = rng.normal(size=(3, 3))
    terms = [np.array([0]), np.array([1, 2, 3])]
    z, gamma = x @ recoding, np.linalg.solve(recoding, beta)
    c = np.linalg.inv(x.T @ x)
    one = noncentrality(terms, beta, [least_squares(x, np.ones(15))], 1.3)
    other = noncentrality(terms, gamma, [least_squares(z, np.ones(15))], 1.3)
    np.testing.assert_allclose(one, other, rtol=1e-9)
    assert one[1] == pytest.approx(beta[1:] @ np.linalg.inv(c[1:, 1:]) @ beta[1:] / 1.3**2, rel=1e-9)


def test_power_of_other_numbers_of_runs_is_that_of_replicates():
    table = {"a": [-1, 1, 0, 1, -1, 0], "b": ["u", "v", "w", "v", "w", "u"]}
    e = od.evaluate(table, "~ a + b", effect=2)
    many = [od.evaluate({k: list(v) * m for k, v in table.items()}, "~ a + b", effect=2) for m in (1, 2, 5)]
    np.testing.assert_allclose(
        e.power_at([6, 12, 30]), np.transpose([f.effect_power for f in many]), rtol=1e-9
    )
    assert np.isnan(e.power_at(4)).all()


def test_effects_by_name_and_by_coefficient():
    table = coffee_table()
    plain = od.evaluate(table, "~ cost + size + type", effect=2)
    np.testing.assert_allclose(plain.coefficients, [1, 1, 1, -1, 1, -1, 1])
    named = od.evaluate(table, "~ cost + size + type", effect={"type": 4, "size[S.Grande]": 0})
    np.testing.assert_allclose(named.coefficients, [0.5, 0.5, 0, -0.5, 2, -2, 2])
    assert named.power[2] == pytest.approx(0.05)
    listed = od.evaluate(table, "~ cost + size + type", effect=[2, 2, 2, 0, 0, 2, 0])
    np.testing.assert_allclose(listed.coefficients, [1, 1, 1, 0, 0, 1, 0])
    with pytest.raises(od.InputError, match="there is no 'typ' \\(did you mean 'type'"):
        od.evaluate(table, "~ cost + size + type", effect={"typ": 4})
    with pytest.raises(od.InputError, match="or 7 numbers"):
        od.evaluate(table, "~ cost + size + type", effect=[1, 2])


def simulated(x, beta, columns, sigma, alpha, experiments, seed):
    """Return the share of simulated experiments in which the F test of some columns rejects."""
    rng = np.random.default_rng(seed)
    n, p = x.shape
    own, others = np.linalg.qr(x)[0], np.linalg.qr(np.delete(x, columns, axis=1))[0]
    critical = stats.f.isf(alpha, len(columns), n - p)
    rejected = 0
    for _ in range(10):
        y = (x @ beta)[:, None] + sigma * rng.normal(size=(n, experiments // 10))
        full = np.sum((y - own @ (own.T @ y)) ** 2, axis=0)
        reduced = np.sum((y - others @ (others.T @ y)) ** 2, axis=0)
        rejected += np.sum((reduced - full) / len(columns) / (full / (n - p)) > critical)
    return rejected / experiments


@pytest.mark.slow
def test_power_agrees_with_100_000_simulated_experiments():
    table, sigma, experiments = coffee_table(), 1.4, 100_000
    e = od.evaluate(table, "~ cost + size + type", effect=2, sigma=sigma)
    x = e.experiment.features
    cases = [([j], e.power[j]) for j in range(7)] + [
        ([2, 3], e.effect_power[2]),
        ([4, 5, 6], e.effect_power[3]),
    ]
    for k, (columns, power) in enumerate(cases):
        share = simulated(x, e.coefficients, columns, sigma, 0.05, experiments, k)
        assert abs(share - power) <= 3 * np.sqrt(power * (1 - power) / experiments)


@pytest.mark.parametrize(
    ("ratio", "df", "error_df", "alpha", "expected"),
    [(1702.25, 5, 1e4, 1e-4, 1.0), (2211.5, 1, 10.0, 0.01, 1.0), (1.66e-12, 1, 1.0, 1e-4, 1e-4)],
)
def test_power_of_noncentralities_at_which_other_software_fails(
    ratio: float, df: int, error_df: float, alpha: float, expected: float
) -> None:
    assert power_of_f(np.array([ratio]), np.array([df]), error_df, alpha)[0] == pytest.approx(expected)


def test_power_grows_with_the_noncentrality_from_alpha_to_1() -> None:
    ratios = np.concatenate([[0.0], np.geomspace(1e-12, 1e12, 400), [np.inf]])
    for error_df in (1.0, 7.5, 1e5):
        power = power_of_f(ratios, np.full(len(ratios), 2), error_df, 0.05)
        assert power[0] == pytest.approx(0.05)
        assert np.all(np.diff(power) > -1e-9)
        assert power[-1] > 0.9999


def test_effects_name_whole_terms() -> None:
    """A factor may be called as parameter blocks are written in front of terms."""
    table = {"a: b": [-1, 1, -1, 1, -1, 1], "b": [-1, -1, 1, 1, -1, 1]}
    found = od.evaluate(table, "~ `a: b` + b", effect={"b": 5})
    expected = od.evaluate(table, "~ `a: b` + b", effect=[1, 1, 5])
    np.testing.assert_allclose(found.power[2], expected.power[2])
    np.testing.assert_allclose(found.power[1], od.evaluate(table, "~ `a: b` + b").power[1])
    assert found.power[1] < found.power[2]


@pytest.mark.parametrize("unit", [1e-300, 7e-162, 1e155])
def test_power_does_not_depend_on_the_unit_of_effects_and_sigma(unit: float) -> None:
    table = {"a": [-1, 1] * 4}
    expected = od.evaluate(table, "~ a", effect=2.0, sigma=1.0).power
    found = od.evaluate(table, "~ a", effect=2.0 * unit, sigma=unit).power
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_power_of_an_effect_beyond_the_range_is_1() -> None:
    assert od.evaluate({"a": [-1, 1] * 4}, "~ a", effect=1e300, sigma=1e-300).power.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "weights", [[0, 0, 0, 1, 2, 2, 2, 1, 2], [1, 2, 3, 0, 0, 0, 3, 1, 2], [1, 2, 3, 0, 0, 0, 3, 0, 2]]
)
def test_power_of_a_category_beside_columns_that_are_dependent_in_the_runs(weights: list[int]) -> None:
    """A quadratic at two settings; the noncentrality follows from standard errors and correlations."""
    c = od.candidates({"x": [20, 30, 60], "c": ["u", "v", "w"]}, "~ x + I(x**2) + c")
    e = od.evaluate((od.DesignProblem(c, budgets=18), weights), coded=False)
    columns = [k for k, name in enumerate(e.terms) if name.startswith("c[")]
    own = np.outer(e.standard_errors[columns], e.standard_errors[columns])
    own *= e.correlation[np.ix_(columns, columns)]
    b = e.coefficients[columns]
    found = e.effect_noncentrality[e.effect_terms.index("c")]
    assert found == pytest.approx(b @ np.linalg.solve(own, b), rel=1e-9)
