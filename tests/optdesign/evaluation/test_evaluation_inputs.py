"""Tables as people have them, designs that do not determine the model, and the forms of the result."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import optdesign as od
from optdesign.evaluation.experiment import UNLISTED, common_region

FRAME = pd.DataFrame(
    {
        "run": range(1, 13),
        "temp (°C)": [20, 60, 20, 60, 40, 40, 20, 60, 20, 60, 40, 40],
        "cat": pd.Categorical(["lo", "hi"] * 6, categories=["lo", "mid", "hi"]),
        "day": [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4],
        "note": ["x", None] * 6,
        "y": [np.nan] * 12,
    }
)


def test_frames_with_categories_numbers_as_labels_and_other_columns():
    e = od.evaluate(FRAME, "~ `temp (°C)` + cat + C(day)")
    assert e.terms[:3] == ("Intercept", "temp (°C)", "cat[S.lo]")
    assert e.effect_terms == ("Intercept", "temp (°C)", "cat", "C(day)")
    assert e.effect_df.tolist() == [1, 1, 1, 3]
    day = np.eye(4)[FRAME["day"] - 1]
    x = np.column_stack(
        [
            np.ones(12),
            FRAME["temp (°C)"] / 20 - 2,
            np.where(FRAME["cat"] == "lo", 1, -1),
            day[:, :3] - day[:, 3:],
        ]
    )
    np.testing.assert_allclose(e.relative_variances, np.diag(np.linalg.inv(x.T @ x)))
    assert not any("day" in name and "I(" in name for name in e.alias_terms)
    assert "temp (°C):cat[S.lo]" in e.alias_terms


def test_missing_settings_are_refused_with_their_row():
    with pytest.raises(od.InputError, match="'note' is missing in row 2"):
        od.evaluate(FRAME, "~ cat + note")


def test_functions_of_factors_keep_their_units():
    table = {"dose": [1.0, 10.0, 100.0] * 3, "temp": [1, 2, 3, 3, 1, 2, 2, 3, 1]}
    e = od.evaluate(table, "~ log(dose) + temp", effect=2)
    assert e.terms == ("Intercept", "log(dose)", "temp")
    np.testing.assert_allclose(e.coefficients, [1, 2 / np.log(100), 1])
    same = od.evaluate({"z": np.log10(table["dose"]), "temp": table["temp"]}, "~ z + temp", effect=2)
    np.testing.assert_allclose(e.power[1:], same.power[1:])


def test_contrasts_that_the_formula_names_remain():
    e = od.evaluate(FRAME, "~ C(cat, contr.treatment)")
    assert e.terms[1].endswith("[T.hi]")
    np.testing.assert_allclose(e.relative_variances, [1 / 6, 1 / 3])


def test_a_model_without_an_intercept_has_uncentred_inflation():
    e = od.evaluate({"a": [1.0, 2.0, 3.0], "b": [2.0, 1.0, 1.0]}, "~ 0 + a + b", coded=False)
    x = np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 1.0]])
    c = np.linalg.inv(x.T @ x)
    np.testing.assert_allclose(e.vif, np.diag(c) * np.sum(x**2, axis=0))


def test_mixtures_are_predicted_at_their_runs():
    blends = od.simplex_lattice(["water", "oil", "flour"], 2)
    e = od.evaluate(blends, "~ 0 + water + oil + flour + water:oil")
    assert len(e.variances) == 6
    assert any("constant sum" in note for note in e.notes)
    assert e.largest_variance == pytest.approx(e.leverages.max())
    finer = od.evaluate(blends, e.formula, region=od.simplex_lattice(["water", "oil", "flour"], 4))
    assert len(finer.variances) == 15


def test_coefficients_that_are_not_estimable():
    """b equals a in every run: neither is estimable, and the intercept and c are."""
    a = np.array([-1, 1, -1, 1, -1, 1])
    table = {"a": a, "b": a, "c": [1, 1, -1, -1, 1, -1]}
    e = od.evaluate(table, "~ a + b + c", effect=2)
    alone = od.evaluate(table, "~ a + c", effect=2)
    assert np.isinf(e.standard_errors).tolist() == [False, True, True, False]
    assert np.isinf(e.vif).tolist() == [False, True, True, False]
    assert np.isnan(e.power).tolist() == [False, True, True, False]
    np.testing.assert_allclose(e.standard_errors[[0, 3]], alone.standard_errors[[0, 2]])
    np.testing.assert_allclose(e.power[[0, 3]], alone.power[[0, 2]])
    np.testing.assert_allclose(e.leverages, alone.leverages)
    assert (e.rank, e.error_df) == (3, 3)
    assert any("'a', 'b'" in note for note in e.notes)
    assert e.largest_variance == np.inf
    assert np.isfinite(e.variances).sum() == 4
    assert np.isnan(e.correlation[1]).all()
    assert np.isnan(e.alias[1]).all()
    assert e.d_efficiency == e.a_efficiency == e.measures.D == e.measures.A == 0
    assert "inf" in str(e)


def test_nearly_collinear_columns_are_estimable():
    x = np.array([-1.0, 1.0, -1.0, 1.0, 0.0])
    e = od.evaluate({"a": x, "b": x + 1e-5 * np.array([1, 1, -1, -1, 0])}, "~ a + b")
    assert np.isfinite(e.standard_errors).all()
    assert e.vif[1] > 1e9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 0}, "sigma must be positive"),
        ({"alpha": 1}, "alpha must lie between 0 and 1"),
        ({"effect": np.inf}, "effect must be finite"),
        ({"runs": -1}, "runs must be a positive number"),
        ({"model": None}, "model must be given with a table"),
        ({"alias": "~ z"}, "there is no factor 'z'"),
    ],
)
def test_values_that_are_not_possible(options, message):
    with pytest.raises(od.InputError, match=message):
        od.evaluate({"a": [-1, 1, 1]}, **({"model": "~ a"} | options))


def test_arguments_of_other_types():
    with pytest.raises(TypeError, match="got ndarray"):
        od.evaluate(np.eye(3), "~ a")
    with pytest.raises(TypeError, match="sigma must be a number"):
        od.evaluate({"a": [-1, 1, 1]}, "~ a", sigma="2")
    p = od.DesignProblem(np.eye(2))
    with pytest.raises(od.InputError, match="needs the settings"):
        od.evaluate((p, [1, 1]), "~ a")
    with pytest.raises(od.InputError, match="2 finite numbers of at least 0"):
        od.evaluate((p, [1, -1]))
    with pytest.raises(od.InputError, match="with 2 columns"):
        od.evaluate((p, [1, 1]), region=np.ones((3, 3)))


def test_saved_designs_with_weights(tmp_path):
    c = od.candidates({"a": [-1, 0, 1], "b": [-1, 0, 1]}, "~ a * b")
    r = od.solve(od.DesignProblem(c, budgets=8))
    frame = r.to_frame()
    frame.to_csv(tmp_path / "design.csv", index=False)
    e, saved = od.evaluate(r), od.evaluate(tmp_path / "design.csv", "~ a * b")
    np.testing.assert_allclose(saved.relative_variances, e.relative_variances, rtol=1e-6)
    np.testing.assert_allclose(saved.variances, r.variances, rtol=1e-5)
    assert "read as those of a saved design" in saved.notes[0]


def test_a_model_without_the_slack_component_of_a_mixture(tmp_path):
    lattice = pd.DataFrame(dict(od.simplex_lattice(["a", "b", "c"], 2)))
    e = od.evaluate(lattice.assign(y=[1, 2, np.nan, 4, 5, 6]), "~ a + b + a:b")
    same = od.evaluate(lattice, "~ 0 + a + b + c + a:b")
    np.testing.assert_allclose(e.variances, same.variances)
    lines = [axes.lines[0].get_xydata() for axes in od.plot.profiles(e).axes]
    expected = [axes.lines[0].get_xydata() for axes in od.plot.profiles(same).axes]
    np.testing.assert_allclose(lines, expected[:2])
    paths = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for path in paths:
        lattice.to_csv(path, index=False)
    assert common_region(paths, "~ a + b + a:b").n_rows == 2 * len(lattice)


def test_mixtures_with_a_component_in_common():
    """The runs are the region: other combinations of their levels are no mixtures."""
    cells = [(x, y) for x in range(5) for y in range(5 - x)]
    table = {"x": [x / 4 for x, _ in cells], "y": [y / 4 for _, y in cells]}
    table["z"] = [1 - (x + y) / 4 for x, y in cells]
    table["u"] = [(x + y) / 4 for x, y in cells]
    e = od.evaluate(table, "~ 0 + x + y + z + x:u")
    assert len(e.variances) == len(cells)
    assert e.notes[0].startswith("the numeric factors have a constant sum")
    with pytest.raises(od.InputError, match="must not have a component in common"):
        od.plot.profiles(e)
    with pytest.raises(od.InputError, match="must not have a component in common"):
        od.refine(od.DesignProblem(od.candidates(pd.DataFrame(table), "~ 0 + x + y + z + x:u")))


def test_local_designs_are_evaluated_by_their_features():
    c = od.candidates({"dose": [0.0, 1.0, 2.0, 3.0]}, "~ dose")
    scaled = od.local(c, [-1.0, 1.0], family="logistic")
    r = od.solve(od.DesignProblem(scaled, budgets=10))
    e = od.evaluate(r)
    assert e.formula is None
    np.testing.assert_allclose(e.variances, r.variances, rtol=1e-9)


def test_tables_html_and_json(tmp_path):
    table = {"a": [-1, 1, -1, 1, 0], "<b>": ["u", "v", "w", "u", "v"]}
    e = od.evaluate(table, "~ a + `<b>`", effect={"a": 2})
    frame = e.to_frame()
    assert frame.index.tolist() == list(e.terms)
    np.testing.assert_array_equal(frame["standard_error"], e.standard_errors)
    assert "<b>" not in e._repr_html_()
    assert "&lt;b&gt;" in e._repr_html_()
    for word in ("a 2, others 1", "degrees of freedom", "VIF", "on these candidates", "term"):
        assert word in str(e)
    read = json.loads(e.to_json(tmp_path / "e.json"))
    assert read == json.loads((tmp_path / "e.json").read_text()) == e.to_dict()
    assert [line["term"] for line in read["coefficients"]] == list(e.terms)
    assert read["coefficients"][1]["power"] == e.power[1]
    assert [read[f"{name}_efficiency"] for name in "dagi"] == [
        e.d_efficiency, e.a_efficiency, e.g_efficiency, e.i_efficiency,
    ]  # fmt: skip
    assert read["measures"] == e.measures._asdict()
    saturated = od.evaluate({"a": [-1, 1]}, "~ a")
    assert json.loads(saturated.to_json())["coefficients"][0]["power"] == "nan"


def test_large_tables_are_predicted_at_their_runs():
    x = np.random.default_rng(0).normal(size=(40, 4))
    e = od.evaluate({name: x[:, j] for j, name in enumerate("abcd")}, "~ a + b + c + d")
    assert len(e.variances) == 40
    assert any("combinations" in note for note in e.notes)


def test_a_level_that_may_be_a_missing_cell_has_a_note(tmp_path):
    """R writes NA for missing cells, also in columns of text."""
    path = tmp_path / "theirs.csv"
    path.write_text('"","temp","cat"\n"1",20,"a"\n"2",40,NA\n"3",60,"b"\n"4",20,"b"\n"5",40,"a"\n')
    e = od.evaluate(path, "~ temp + cat")
    assert e.n_runs == 5
    assert any("'cat' has the level 'NA'" in note for note in e.notes)
    assert any("'NA'" in note for note in od.candidates(path, "~ temp + cat").notes)
    assert not any("'NA'" in note for note in od.evaluate(path, "~ temp").notes)


def test_a_model_that_leaves_out_lower_powers_keeps_its_units():
    """In coded units, ~ I(x**2) would be another model: a parabola about the centre of the range."""
    table = {"x": [20.0, 30, 40, 60, 20], "cat": list("abbab")}
    e = od.evaluate(table, "~ I(x**2) + cat")
    x = np.column_stack([np.ones(5), np.square(table["x"]), [1, -1, -1, 1, -1]])
    np.testing.assert_allclose(np.sort(e.relative_variances), np.sort(np.diag(np.linalg.inv(x.T @ x))))
    assert any("keep their units" in note for note in e.notes)
    whole = od.evaluate(table, "~ x + I(x**2) + cat")
    assert whole.notes == ()
    np.testing.assert_allclose(
        whole.variances, od.evaluate(table, "~ x + I(x**2) + cat", coded=False).variances, rtol=1e-8
    )


def test_mixtures_keep_their_units_and_so_do_terms_left_out():
    blends = od.simplex_lattice(["a", "b", "c"], 3)
    e = od.evaluate(blends, "~ 0 + a + b + c", alias="~ 0 + a:b")
    x = np.column_stack([np.asarray(blends[name], float) for name in "abc"])
    np.testing.assert_allclose(e.relative_variances, np.diag(np.linalg.inv(x.T @ x)))
    expected = np.linalg.lstsq(x, x[:, 0] * x[:, 1], rcond=None)[0]
    np.testing.assert_allclose(e.alias[:, 0], expected, atol=1e-12)


def test_refined_designs_keep_their_names():
    c = od.candidates({"x": [-1, -0.5, 0, 0.5, 1]}, model="~ x + I(x**2) + I(x**3)")
    found = od.refine(od.DesignProblem(c))
    e = od.evaluate(found.design, runs=8)
    assert e.terms == ("Intercept", "x", "I(x ** 2)", "I(x ** 3)")
    assert tuple(e.measures) == pytest.approx(tuple(found.design.measures), rel=1e-6)


def test_roots_keep_the_units_of_their_factor() -> None:
    problem = od.DesignProblem(od.candidates({"x": [1, 2, 3, 4]}, "~ x + I(x**0.5)"), budgets=6)
    runs = od.exact(problem, seed=0)
    assert "measures" in str(runs)
    x = np.array([1, 2, 3, 4])[runs.table()["candidate"]]
    rows = np.column_stack([np.ones(6), x, np.sqrt(x)])
    covariance = np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(od.evaluate(runs).relative_variances, np.diag(covariance), rtol=1e-6)


def refined_splines() -> od.DesignProblem:
    c = od.candidates({"x": np.array([0, 1, 2, 3, 5, 8, 10.0])}, "~ bs(x, df=5)")
    return od.refine(od.DesignProblem(c, budgets=12)).problem


def coded_candidates(model: str) -> od.DesignProblem:
    levels = {"x": [20, 40, 60.0], "z": [1, 2, 5]}
    return od.DesignProblem(od.candidates(levels, model, coded=True), budgets=12)


@pytest.mark.parametrize("coded", [False, True])
@pytest.mark.parametrize(
    "made", [refined_splines, lambda: coded_candidates("~ I(x*z)"), lambda: coded_candidates("~ 0 + x")]
)
def test_evaluation_is_of_the_model_of_the_candidates(
    made: Callable[[], od.DesignProblem], coded: bool, tmp_path: Path
) -> None:
    """Another fit of these formulas to the settings gives another model."""
    p = made()
    runs = od.exact(p)
    x = p.candidates
    variances = np.einsum("ni,ij,nj->n", x, np.linalg.inv((x.T * runs.counts) @ x), x)
    od.save(runs, tmp_path / "runs.json")
    for given in (runs, od.load(tmp_path / "runs.json")):
        e = od.evaluate(given, coded=coded)
        assert e.largest_variance == pytest.approx(variances.max())
        assert e.average_variance == pytest.approx(variances.mean())
        assert e.g_efficiency == pytest.approx(runs.measures.G)
        assert given.measures == pytest.approx(runs.measures)


@pytest.mark.parametrize(
    ("braces", "same"),
    [("~ x + {x**2}", "~ x + I(x**2)"), ("~ {x*z}", "~ I(x*z)"), ("~ x + {-z}", "~ x + z")],
)
def test_terms_in_braces_are_terms(braces: str, same: str) -> None:
    found = []
    for model in (braces, same):
        p = od.DesignProblem(od.candidates({"x": [20, 40, 60.0], "z": [1, 2, 5]}, model), budgets=12)
        runs = od.exact(p)
        e = od.evaluate(runs)
        found.append((len(e.terms), e.rank, e.error_df, e.largest_variance, *runs.measures))
        assert "measures" in str(runs)
    assert found[0] == pytest.approx(found[1])


def test_runs_without_a_list_of_candidates_have_a_note() -> None:
    runs = od.exact(od.MainEffects({f"f{k}": [-1, 1] for k in range(5)}, runs=6), tries=2)
    assert UNLISTED in od.evaluate(runs).notes
    e = od.evaluate(runs.table(), "~ " + " + ".join(f"f{k}" for k in range(5)))
    assert e.largest_variance == pytest.approx(1.4)
    assert UNLISTED not in e.notes
