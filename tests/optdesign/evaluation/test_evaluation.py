"""Evaluations against plain NumPy, known designs, and invariances."""

from itertools import combinations, product

import numpy as np
import pytest

import optdesign as od

RNG = np.random.default_rng(7)
MODEL = "~ temp * cat + I(temp**2) + speed"
TABLE = {
    "temp": RNG.choice([20, 40, 60], 17),
    "cat": RNG.choice(["a", "b", "c"], 17),
    "speed": RNG.choice([1.0, 1.5, 3.0], 17),
}
SUM = {"a": (1, 0), "b": (0, 1), "c": (-1, -1)}


def coded(table):
    """Return the model matrix of MODEL in the standard coding, in the order of the terms of formulaic."""
    t = (np.asarray(table["temp"]) - 40) / 20
    s = np.asarray(table["speed"]) - 2.0
    c = np.array([SUM[level] for level in table["cat"]], float)
    return np.column_stack([np.ones(len(t)), t, c, t**2, s, t[:, None] * c])


def two_level(names, generators=()):
    """Return a fractional factorial as a table; a generator is a new name and the names of its product."""
    table = dict(zip(names, np.array(list(product([-1, 1], repeat=len(names)))).T, strict=True))
    for new, parents in generators:
        table[new] = np.prod([table[p] for p in parents], axis=0)
    return table


def plackett_burman():
    first = np.array([1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1])
    x = np.vstack([np.roll(first, k) for k in range(11)] + [-np.ones(11)])
    return {f"x{j + 1}": x[:, j] for j in range(11)}


def test_figures_are_those_of_plain_least_squares():
    e = od.evaluate(TABLE, MODEL, sigma=2.5)
    x = coded(TABLE)
    c = np.linalg.inv(x.T @ x)
    assert e.terms == (
        "Intercept", "temp", "cat[S.a]", "cat[S.b]", "I(temp ** 2)", "speed", "temp:cat[S.a]",
        "temp:cat[S.b]",
    )  # fmt: skip
    assert e.effect_terms == ("Intercept", "temp", "cat", "I(temp ** 2)", "speed", "temp:cat")
    np.testing.assert_allclose(e.relative_variances, np.diag(c), rtol=1e-10)
    np.testing.assert_allclose(e.standard_errors, 2.5 * np.sqrt(np.diag(c)), rtol=1e-10)
    d = np.sqrt(np.diag(c))
    np.testing.assert_allclose(e.correlation, c / np.outer(d, d), atol=1e-12)
    np.testing.assert_allclose(e.leverages, np.diag(x @ c @ x.T), rtol=1e-9)
    for j in range(1, 8):
        others = np.delete(x, j, axis=1)
        residual = x[:, j] - others @ np.linalg.lstsq(others, x[:, j], rcond=None)[0]
        total = np.sum((x[:, j] - x[:, j].mean()) ** 2)
        assert e.vif[j] == pytest.approx(total / np.sum(residual**2))
    rows = np.array(list(product([20, 40, 60], "abc", [1.0, 1.5, 3.0])), dtype=object).T
    grid = coded({"temp": rows[0].astype(float), "cat": rows[1], "speed": rows[2].astype(float)})
    v = np.einsum("ij,jk,ik->i", grid, c, grid)
    assert e.average_variance == pytest.approx(v.mean())
    assert e.largest_variance == pytest.approx(v.max())
    assert (e.n_runs, e.rank, e.error_df) == (17, 8, 9)
    assert e.lack_of_fit_df == len(np.unique(x, axis=0)) - 8
    assert e.lack_of_fit_df + e.pure_error_df == 9
    assert pytest.approx(np.linalg.det(x.T @ x) ** (1 / 8) / 17) == e.measures.D
    assert pytest.approx(8 / (17 * np.trace(c))) == e.measures.A
    assert e.g_efficiency == pytest.approx(8 / (17 * v.max()))
    assert pytest.approx(8 / (17 * v.max())) == e.measures.G
    assert pytest.approx(8 / (17 * v.mean())) == e.measures.I


def test_alias_matrix_is_the_regression_of_terms_left_out():
    e = od.evaluate(TABLE, "~ temp + cat")
    x = coded(TABLE)
    own, left = x[:, :4], x[:, [6, 7, 4]]
    assert e.alias_terms == ("I(temp ** 2)", "temp:cat[S.a]", "temp:cat[S.b]")
    expected = np.linalg.lstsq(own, left, rcond=None)[0]
    np.testing.assert_allclose(e.alias, expected[:, [2, 0, 1]], atol=1e-12)
    chosen = od.evaluate(TABLE, "~ temp + cat", alias="~ speed + temp")
    assert chosen.alias_terms == ("speed",)
    np.testing.assert_allclose(chosen.alias[:, 0], np.linalg.lstsq(own, x[:, 5], rcond=None)[0], atol=1e-12)


@pytest.mark.parametrize("model", ["~ a + b + c", "~ (a + b + c)**2", "~ a * b * c"])
def test_orthogonal_designs_have_no_inflation(model):
    e = od.evaluate(two_level("abc"), model)
    np.testing.assert_allclose(e.vif, 1, rtol=1e-12)
    np.testing.assert_allclose(e.correlation, np.eye(len(e.terms)), atol=1e-12)
    np.testing.assert_allclose(e.relative_variances, 1 / 8)
    np.testing.assert_allclose(e.measures[:3], 1)
    assert min(e.d_efficiency, e.a_efficiency, e.g_efficiency, e.i_efficiency) > 0.999999


def test_aliases_of_fractional_factorials():
    """In the half fraction with c = a b every main effect is aliased with the interaction of the others."""
    e = od.evaluate(two_level("ab", [("c", "ab")]), "~ a + b + c")
    at = {(i, j): e.alias[m, k] for m, i in enumerate(e.terms) for k, j in enumerate(e.alias_terms)}
    assert set(e.alias_terms) == {"a:b", "a:c", "b:c"}
    for (term, left), value in at.items():
        assert value == pytest.approx(
            float(sorted(f"{term}{left}".replace(":", "")) == list("abc")), abs=1e-12
        )
    # 2^(7-4): 8 runs of 7 factors; every interaction is aliased with exactly one main effect.
    generators = [("d", "ab"), ("e", "ac"), ("f", "bc"), ("g", "abc")]
    e = od.evaluate(two_level("abc", generators), "~ a + b + c + d + e + f + g")
    assert e.alias.shape == (8, 21)
    np.testing.assert_allclose(np.sort(np.abs(e.alias), axis=0)[-2:].T, [[0, 1]] * 21, atol=1e-12)
    assert e.error_df == 0
    assert np.isnan(e.power).all()
    assert any("degrees of freedom" in note for note in e.notes)


def test_plackett_burman_aliases_are_thirds():
    table = plackett_burman()
    e = od.evaluate(table, "~ " + " + ".join(table))
    np.testing.assert_allclose(e.vif, 1, rtol=1e-12)
    for k, (i, j) in enumerate(combinations(range(11), 2)):
        expected = np.full(12, 1 / 3)
        expected[[0, i + 1, j + 1]] = 0
        np.testing.assert_allclose(np.abs(e.alias[:, k]), expected, atol=1e-12)
        assert e.alias_terms[k] == f"x{i + 1}:x{j + 1}"


def test_permuting_runs_permutes_leverages_only():
    order = RNG.permutation(17)
    e, f = od.evaluate(TABLE, MODEL), od.evaluate({k: v[order] for k, v in TABLE.items()}, MODEL)
    np.testing.assert_allclose(f.leverages, e.leverages[order], rtol=1e-9)
    for name in ("standard_errors", "vif", "power", "effect_power", "alias", "variances"):
        np.testing.assert_allclose(getattr(f, name), getattr(e, name), rtol=1e-8, atol=1e-10)


def test_units_and_scale_do_not_matter():
    e = od.evaluate(TABLE, MODEL, effect=3, sigma=2)
    units = od.evaluate(TABLE | {"temp": 32 + 1.8 * TABLE["temp"]}, MODEL, effect=3, sigma=2)
    scale = od.evaluate(TABLE, MODEL, effect=1.5, sigma=1)
    for name in ("vif", "power", "effect_power", "relative_variances", "variances"):
        np.testing.assert_allclose(getattr(units, name), getattr(e, name), rtol=1e-8)
        np.testing.assert_allclose(getattr(scale, name), getattr(e, name), rtol=1e-12)
    np.testing.assert_allclose(e.standard_errors, 2 * scale.standard_errors)


def test_predictions_do_not_depend_on_the_coding():
    e, own = od.evaluate(TABLE, MODEL), od.evaluate(TABLE, MODEL, coded=False)
    assert "cat[T.b]" in own.terms
    np.testing.assert_allclose(e.variances, own.variances, rtol=1e-8)
    np.testing.assert_allclose(e.leverages, own.leverages, rtol=1e-8)
    assert e.d_efficiency == pytest.approx(own.d_efficiency, rel=1e-5)
    at = {"temp": [33.0], "cat": ["b"], "speed": [2.0]}
    np.testing.assert_allclose(e.predict(at), own.predict(at), rtol=1e-8)


def test_replicates_divide_variances():
    e, twice = od.evaluate(TABLE, MODEL), od.evaluate({k: np.tile(v, 2) for k, v in TABLE.items()}, MODEL)
    np.testing.assert_allclose(twice.relative_variances, e.relative_variances / 2)
    np.testing.assert_allclose(twice.vif, e.vif)
    np.testing.assert_allclose(twice.alias, e.alias, atol=1e-10)
    assert twice.pure_error_df == e.pure_error_df + 17
    assert twice.lack_of_fit_df == e.lack_of_fit_df
    assert np.all(twice.power > e.power)


def test_runs_weights_tables_and_files_agree(tmp_path):
    levels = {"temp": [20, 40, 60], "cat": ["a", "b", "c"], "speed": [1.0, 1.5, 3.0]}
    p = od.DesignProblem(od.candidates(levels, MODEL), budgets=17)
    runs = od.exact(p, tries=2)
    e = od.evaluate(runs)
    assert e.formula == MODEL
    assert e.d_efficiency == runs.efficiency
    runs.table().write(tmp_path / "runs.csv")
    od.save(od.DesignResult.given(p, runs.counts), tmp_path / "runs.json")
    by_weights = od.evaluate((p, runs.counts))
    for other in (
        by_weights,
        od.evaluate(runs.table(), MODEL, region=levels),
        od.evaluate(runs.table().to_frame(), MODEL, region=p.settings),
        od.evaluate(tmp_path / "runs.csv", MODEL, region=od.candidates(levels, MODEL)),
        od.evaluate(str(tmp_path / "runs.json")),
    ):
        assert other.terms == e.terms
        np.testing.assert_allclose(other.leverages, e.leverages, rtol=1e-9)
        np.testing.assert_allclose(other.variances, e.variances, rtol=1e-9)
        np.testing.assert_allclose(other.power, e.power, rtol=1e-9)
    assert by_weights.d_efficiency == pytest.approx(runs.efficiency, rel=1e-5)
    assert e.leverages.sum() == pytest.approx(8)


def test_a_smaller_model_gets_its_own_certificate():
    p = od.DesignProblem(od.candidates({"a": [-1, 0, 1], "b": [-1, 0, 1]}, "~ a + b + I(a**2)"), budgets=9)
    runs = od.exact(p, tries=2)
    e = od.evaluate(runs, "~ a + b")
    assert e.d_efficiency != runs.efficiency
    corner = od.DesignProblem(od.candidates({"a": [-1, 0, 1], "b": [-1, 0, 1]}, "~ a + b"), budgets=9)
    assert e.d_efficiency == pytest.approx(
        od.efficiency(corner, runs.counts, best=od.solve(corner)), rel=1e-6
    )


def test_weights_are_scaled_to_runs():
    c = od.candidates({"a": [-1, 0, 1], "b": ["u", "v"]}, "~ a * b")
    r = od.solve(od.DesignProblem(c))
    bare = od.evaluate(r)
    assert bare.n_runs == pytest.approx(1)
    assert np.isnan(bare.power).all()
    assert any("runs=" in note for note in bare.notes)
    e = od.evaluate(r, runs=12, effect=2)
    assert e.error_df == pytest.approx(8)
    np.testing.assert_allclose(e.relative_variances, bare.relative_variances / 12)
    assert e.leverages.sum() == pytest.approx(4)
    assert e.d_efficiency == r.efficiency
    np.testing.assert_allclose(
        e.power, od.evaluate(two_level("ab"), "~ a * b", runs=12, effect=2).power, rtol=1e-5
    )


def test_parameter_blocks_are_evaluated_one_by_one():
    levels = {"x": [-1, 0, 1], "arm": ["left", "right"]}
    p = od.DesignProblem(od.candidates(levels, "~ x + I(x**2)"), parameter_blocks="arm", budgets=14)
    runs = od.exact(p, tries=2)
    e = od.evaluate(runs, effect={"x": 3, "left: Intercept": 5})
    assert e.terms[:3] == ("left: Intercept", "left: x", "left: I(x ** 2)")
    assert e.coefficients.tolist() == [2.5, 1.5, 0.5, 0.5, 1.5, 0.5]
    assert e.error_df == 8
    table = runs.table().to_frame()
    for b, arm in enumerate(("left", "right")):
        alone = od.evaluate(table[table["arm"] == arm], "~ x + I(x**2)")
        own = slice(3 * b, 3 * b + 3)
        np.testing.assert_allclose(e.standard_errors[own], alone.standard_errors)
        np.testing.assert_allclose(e.vif[own], alone.vif)
        np.testing.assert_allclose(e.correlation[own, own], alone.correlation, atol=1e-12)
    assert np.all(e.correlation[:3, 3:] == 0)
    assert e.leverages.sum() == pytest.approx(6)
    assert e.alias.shape == (6, 0)


def test_features_without_a_formula_are_evaluated_as_they_are():
    x = np.column_stack([np.ones(6), RNG.normal(size=(6, 2))])
    p = od.DesignProblem(x, budgets=12)
    w = np.array([2, 3, 1, 4, 1, 1])
    e = od.evaluate((p, w), effect=2)
    c = np.linalg.inv(x.T @ (w[:, None] * x))
    assert e.terms == ("x0", "x1", "x2")
    np.testing.assert_allclose(e.relative_variances, np.diag(c))
    np.testing.assert_allclose(e.coefficients, 2 * np.array([0.5, 1 / np.ptp(x[:, 1]), 1 / np.ptp(x[:, 2])]))
    np.testing.assert_allclose(e.variances, np.diag(x @ c @ x.T))
    np.testing.assert_allclose(e.leverages, np.repeat(e.variances, w))
    assert e.alias.shape == (3, 0)
    np.testing.assert_allclose(od.evaluate((p, w), region=x[:2]).variances, e.variances[:2])


@pytest.mark.parametrize(
    "model", ["~ C(day) * x", "~ x + C(day)", "~ C(day, contr.sum) * x", "~ C(day, contr.sum) + x"]
)
def test_categories_of_numbers_are_evaluated_as_those_of_text(model: str) -> None:
    found = []
    for days in ([1, 2, 10], ["1", "2", "9"]):
        c = od.candidates({"x": [0, 5, 20], "day": days}, model)
        p = od.DesignProblem(c, budgets=14)
        found.append(od.evaluate(od.Runs.given(p, [2, 1, 2, 1, 2, 1, 2, 1, 2])))
    numbers, text = found
    assert numbers.terms == tuple(name.replace("9", "10") for name in text.terms)
    assert "C(day)[S.1]" in numbers.terms or "C(day, contr.sum)[S.1]" in numbers.terms
    for name in ("standard_errors", "coefficients", "vif", "correlation", "alias"):
        np.testing.assert_allclose(getattr(numbers, name), getattr(text, name), atol=1e-12, err_msg=name)
    assert numbers.measures == pytest.approx(text.measures)


def test_mixtures_keep_their_units_beside_a_category_of_numbers() -> None:
    m = od.simplex_lattice(["a", "b", "c"], 2)
    found = []
    for days in ([1, 2], ["1", "2"]):
        table = {name: np.tile(m[name], 2).tolist() for name in m} | {"day": np.repeat(days, 6).tolist()}
        found.append(od.evaluate(table, "~ 0 + a + b + c + C(day)"))
    assert [note for note in found[1].notes if not note.startswith("factor 'day' is text")] == [
        *found[0].notes
    ]
    np.testing.assert_array_equal(found[0].coefficients, found[1].coefficients)


def test_units_of_the_formula_keep_its_terms() -> None:
    model = "~ x + cat"
    c = od.candidates({"x": [1, 2, 3.5, 7], "cat": ["u", "v", "w"]}, model, coded=True)
    runs = od.exact(od.DesignProblem(c, budgets=9), seed=0)
    table = {name: column[runs.table()["candidate"]].tolist() for name, column in c.settings.items()}
    e, listed = od.evaluate(runs, coded=False), od.evaluate(table, model, coded=False, region=c)
    assert e.terms == listed.terms == ("Intercept", "x", "cat[T.v]", "cat[T.w]")
    assert e.effect_terms == listed.effect_terms == ("Intercept", "x", "cat")
    assert e.alias_terms == listed.alias_terms
    for name in ("coefficients", "standard_errors", "power", "effect_power", "alias", "variances"):
        np.testing.assert_allclose(getattr(e, name), getattr(listed, name), atol=1e-12, err_msg=name)
    assert e.predict({"x": [2], "cat": ["v"]}) == pytest.approx(listed.predict({"x": [2], "cat": ["v"]}))


def test_mixtures_beside_a_process_factor_are_evaluated_at_mixtures() -> None:
    m = od.simplex_lattice(["a", "b", "c"], 2)
    table = {name: np.tile(m[name], 2).tolist() for name in m} | {"temp": np.repeat([20.0, 60.0], 6).tolist()}
    e = od.evaluate(table, "~ 0 + a + b + c + temp")
    assert e.notes[0].startswith("'a', 'b', 'c' have a constant sum, so the runs are the only candidates")
    assert e.experiment.model is not None
    assert e.experiment.model.scaled == {"temp"}
    x = np.column_stack([table["a"], table["b"], table["c"], (np.array(table["temp"]) - 40) / 20])
    covariance = np.linalg.inv(x.T @ x)
    np.testing.assert_allclose(e.relative_variances, np.diag(covariance))
    assert e.average_variance == pytest.approx(np.mean(np.sum(x @ covariance * x, axis=1)))
