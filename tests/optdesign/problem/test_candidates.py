"""Candidates from factors: the model matrix made by hand, frames of three kinds, and what is refused."""

import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optdesign as od

ROWS = {"temp": [20, 40, 60, 40], "cat": ["a", "b", "a", "c"], "mg": [0.5, 0.25, 1.0, 2.0]}
FRAMES = [pd.DataFrame(ROWS), pl.DataFrame(ROWS), pa.table(ROWS)]


def test_a_factorial_with_a_model_is_the_matrix_made_by_hand() -> None:
    c = od.candidates({"temp": [20, 40, 60], "cat": ["a", "b"]}, model="~ temp * cat + I(temp**2)")
    t, b = np.repeat([20.0, 40.0, 60.0], 2), np.tile([0.0, 1.0], 3)
    by_hand = {
        "Intercept": np.ones(6),
        "temp": t,
        "cat[T.b]": b,
        "I(temp ** 2)": t**2,
        "temp:cat[T.b]": t * b,
    }
    assert set(c.names) == set(by_hand)
    np.testing.assert_array_equal(c.features, np.column_stack([by_hand[name] for name in c.names]))
    assert c.settings["temp"].tolist() == t.tolist()
    assert c.settings["cat"].tolist() == ["a", "b"] * 3
    assert len(c) == 6
    assert c.notes == ()
    assert repr(c) == "Candidates(6 x 5: Intercept, temp, cat[T.b], I(temp ** 2), temp:cat[T.b])"


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow"])
def test_frames_of_three_kinds_and_files_agree(frame, tmp_path) -> None:
    c = od.candidates(frame, model="~ temp + cat + log(mg)")
    b, d = np.array([0.0, 1.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.0, 1.0])
    by_hand = np.column_stack([np.ones(4), ROWS["temp"], b, d, np.log(ROWS["mg"])])
    np.testing.assert_array_equal(c.features, by_hand)
    pd.DataFrame(ROWS).to_csv(tmp_path / "rows.csv", index=False)
    pq.write_table(pa.table(ROWS), tmp_path / "rows.parquet")
    for name in ("rows.csv", "rows.parquet"):
        again = od.candidates(tmp_path / name, model="~ temp + cat + log(mg)")
        np.testing.assert_array_equal(again.features, by_hand)
        assert again.settings["cat"].tolist() == ROWS["cat"]
    assert od.candidates(str(tmp_path / "rows.csv"), model="~ temp").names == ("Intercept", "temp")


def test_levels_keep_the_order_they_are_listed_in() -> None:
    listed = od.candidates({"dose": ["low", "high", "mid"]}, model="~ dose")
    assert listed.names == ("Intercept", "dose[T.high]", "dose[T.mid]")
    frame = pd.DataFrame({"dose": ["low", "high"]})
    assert od.candidates(frame, model="~ dose").names == ("Intercept", "dose[T.low]")
    ordered = frame.astype(pd.CategoricalDtype(["low", "mid", "high"]))
    c = od.candidates(ordered, model="~ dose")
    assert c.names == ("Intercept", "dose[T.high]")
    assert c.notes == ("levels of 'dose' without candidates, left out of the model: 'mid'",)
    assert od.DesignProblem(c, groups="dose").group_names == ("low", "high")


def test_contrasts_and_categorical_numbers() -> None:
    c = od.candidates({"g": ["u", "v", "w"]}, model="~ C(g, contr.sum)")
    np.testing.assert_array_equal(c.features[:, 1:], [[1, 0], [0, 1], [-1, -1]])
    c = od.candidates({"t": [10, 20, 30]}, model="~ C(t)")
    np.testing.assert_array_equal(c.features, [[1, 0, 0], [1, 1, 0], [1, 0, 1]])
    c = od.candidates(pd.DataFrame({"t": pd.Categorical([3, 1, 2])}), model="~ 0 + t")
    np.testing.assert_array_equal(c.features, [[0, 0, 1], [1, 0, 0], [0, 1, 0]])


def test_factors_may_have_the_names_of_functions_and_any_other() -> None:
    assert od.candidates({"A": 2, "B": 2, "C": 2}, model="~ A*B*C").features.shape == (8, 8)
    assert od.candidates({"a b": 2, "é": 2, "log": 2}, model="~ `a b` + é + log").features.shape == (8, 4)


def test_whole_numbers_do_not_overflow_in_a_model() -> None:
    c = od.candidates({"t": [10, 1000]}, model="~ 0 + I(t**9)")
    np.testing.assert_allclose(c.features[:, 0], [1e9, 1e27], rtol=1e-15)


@given(
    st.lists(st.integers(-50, 50), min_size=2, max_size=5, unique=True),
    st.lists(st.floats(-3, 3).map(lambda v: round(v, 3)), min_size=2, max_size=5, unique=True),
)
@settings(max_examples=20, deadline=None)
def test_coding_is_a_change_of_units(first: list[int], second: list[float]) -> None:
    plain = od.candidates({"a": first, "b": second}, model="~ a * b + I(a**2)")
    coded = od.candidates({"a": first, "b": second}, model="~ a * b + I(a**2)", coded=True)
    np.testing.assert_array_equal(plain.settings["a"], coded.settings["a"])
    by_name = dict(zip(coded.names, coded.features.T, strict=True))
    for name in "ab":
        assert (by_name[name].min(), by_name[name].max()) == (-1, 1)
    some = od.candidates({"a": first, "b": second}, model="~ a + b", coded=["a"])
    np.testing.assert_array_equal(some.features[:, 1], by_name["a"])
    np.testing.assert_array_equal(some.features[:, 2], plain.settings["b"])
    # The determinants differ by a constant factor, so each optimum is one of the other as well.
    tol = 1e-6
    problems = od.DesignProblem(plain), od.DesignProblem(coded)
    best = od.solve(problems[1], tol=tol)
    assert problems[0].rank == problems[1].rank
    assert od.certify(problems[0], best.weights).relative_gap <= tol * 1.001


def test_rows_of_other_settings_have_the_same_coding_contrasts_and_bases() -> None:
    levels = {"t": [10, 20, 40], "g": ["u", "v"]}
    c = od.candidates(
        levels, model="~ center(t) * g + poly(t, 2) + C(g, contr.sum)", where="t < 40 or g == 'v'"
    )
    np.testing.assert_array_equal(c.rows(dict(c.settings)), c.features)
    np.testing.assert_array_equal(c.rows(pd.DataFrame(dict(c.settings)).iloc[[3, 1]]), c.features[[3, 1]])
    one = c.rows({"t": 40, "g": "u"})
    assert one.shape == (1, len(c.names))
    again = pickle.loads(pickle.dumps(c))
    np.testing.assert_array_equal(again.rows({"t": 40, "g": "u"}), one)
    assert not again.features.flags.writeable
    coded = od.candidates({"t": [10, 30]}, model="~ t", coded=True, where="t > 10")
    np.testing.assert_array_equal(coded.rows({"t": [10, 20, 30]})[:, 1], [-1, 0, 1])
    with pytest.raises(ValueError, match=r"'g' has no level 'w'. Its levels are 'u', 'v'"):
        c.rows({"t": 40, "g": "w"})
    with pytest.raises(ValueError, match="there is no 'g'"):
        c.rows({"t": 40})
    for bad in (None, "hot", [1, None]):
        with pytest.raises(ValueError, match="'t' is"):
            coded.rows({"t": bad})


@pytest.mark.parametrize(
    ("factors", "model", "note"),
    [
        (
            {"a": 2, "b": 2},
            "~ a",
            "not in the model: 'b'; such factors may still be groups or parameter blocks",
        ),
        ({"a": [5], "b": 2}, "~ a + b", "only one level, so no effect to estimate: 'a'"),
        ({"a": ["x"], "b": 2}, "~ a + b", "only one level, so no effect to estimate: 'a'"),
        (
            {"a": [1, 2]},
            "~ a + I(a**2)",
            "not all parameters are estimable: I(a ** 2) is a combination of Int",
        ),
        (od.simplex_lattice(["u", "v"], 2), "~ u + v", "estimable: v is a combination of Intercept, u"),
        (pd.DataFrame({"a": [1, 2, 1]}), "~ a", "settings that occur before: 1, the first in rows 1 and 3"),
    ],
)
def test_what_is_odd_is_noted(factors, model: str, note: str) -> None:
    c = od.candidates(factors, model=model)
    assert any(note in said for said in c.notes)
    assert note in repr(c)


@pytest.mark.parametrize(
    ("factors", "model", "message"),
    [
        ({"temp": 3}, "~ tmp", r"there is no factor 'tmp' \(did you mean 'temp'\?\). The factors are 'temp'"),
        ({"temp": 3}, "~ log(tmp)", "there is no factor 'tmp'"),
        (
            {"temp": 3},
            "~ temp +",
            "must be a formula that formulaic can evaluate; '~ temp .' is not: Operator",
        ),
        ({"temp": 3}, "y ~ temp", "right side of a formula alone"),
        ({"temp": 3}, "~ temp | temp", "right side of a formula alone"),
        ({"temp": 3}, "~ 0", "must have a term"),
        (
            {"temp": [0, 1]},
            "~ log(temp)",
            "with temp = 0, 'log.temp.' is -inf in row 1. Leave such settings",
        ),
        ({"C": 2, "g": ["u", "v"]}, "~ C(g)", r"the factor 'C' hides the function C\(\)"),
        ({"class": ["u", "v"]}, "~ C(`class`)", "functions of 'class', a word of Python, are not evaluated"),
        (pd.DataFrame(np.eye(2)), "~ `0`", "must not name factors by constants"),
        ({"True": [1, 2], "z": [0, 1]}, "~ z + I(`True`**2)", "must not name factors by constants"),
        ({"None": ["u", "v"], "z": [0, 1]}, "~ z + C(None)", "must not name factors by constants"),
        (
            pd.DataFrame({"a": [1, None]}),
            "~ a",
            "'a' is missing in row 2. Fill it in or drop the row: none is dropped",
        ),
        (pd.DataFrame({"a": ["x", None]}), "~ a", "'a' is missing in row 2"),
        (pd.DataFrame({"a": pd.date_range("2020", periods=2)}), "~ a", "'a' holds dates"),
        (pd.DataFrame({"a": [2**53 + 1, 1]}), "~ a", "a must fit double precision"),
        (pd.DataFrame({"a": [1, "x"]}, dtype=object), "~ a", "a must be all numbers, all text or all"),
        (
            pd.DataFrame({"a": [[1], [2]]}),
            "~ a",
            "a must hold numbers, text, booleans or dates; row 1 holds a list",
        ),
        (pd.DataFrame({"a": [1j]}), "~ a", "got dtype complex128"),
        (pd.DataFrame({"a": []}), "~ a", "must have a factor and a row"),
        (pd.DataFrame(), "~ a", "must have a factor and a row"),
        ({}, "~ a", "levels must have a factor"),
        ({"a": []}, "~ a", "levels of 'a' must be a list of one or more"),
        ({"a": [1, 1]}, "~ a", "levels of 'a' must differ; 1 occurs twice"),
        ({"a": ["x", None]}, "~ a", "levels of 'a' must not be missing; entry 1"),
        ({"a": 0}, "~ a", "levels of 'a' must be at least 1"),
        ({f"f{k}": 10 for k in range(9)}, "~ f0", "at most 100,000,000 settings; these give 1,000,000,000"),
        ("file.xls", "~ a", "factors must end in .csv or .parquet"),
    ],
)
def test_bad_factors_and_models(factors, model: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        od.candidates(factors, model=model)


@pytest.mark.parametrize(
    ("factors", "model"),
    [({"a": 2.5}, "~ a"), ({"a": "xy"}, "~ a"), ({"a": {1, 2}}, "~ a"), (np.eye(2), "~ a"), ({"a": 2}, None)],
)
def test_bad_types(factors, model) -> None:
    with pytest.raises(TypeError, match="must"):
        od.candidates(factors, model=model)


def test_coded_must_name_numeric_factors() -> None:
    with pytest.raises(ValueError, match=r"coded must name numeric factors; 'g' is none. These are 'a'"):
        od.candidates({"a": 2, "g": ["u", "v"]}, model="~ a", coded=["g"])


def test_ugly_columns_are_read() -> None:
    frame = pd.DataFrame(
        {
            "obj": np.array([1, 2.5, 4], object),
            "flag": [True, False, True],
            "big": pd.array([1, 2, 3], dtype="Int64"),
            "small": np.array([1, 2, 3], np.int8),
            "note": ["kept", None, "as it is"],
            "day": pd.date_range("2020", periods=3, tz="UTC"),
        },
        index=[9, 9, 9],
    )
    c = od.candidates(frame, model="~ 0 + obj + flag + big + small")
    np.testing.assert_array_equal(c.features, [[1, 1, 1, 1], [2.5, 0, 2, 2], [4, 1, 3, 3]])
    assert c.settings["note"].tolist() == ["kept", None, "as it is"]
    assert od.solve(od.DesignProblem(c)).converged


def test_one_candidate() -> None:
    c = od.candidates(pd.DataFrame({"a": [2.0]}), model="~ a")
    r = od.solve(od.DesignProblem(c))
    assert r.converged
    assert r.rank == 1


def test_arrays_are_read_only() -> None:
    c = od.candidates({"a": 2}, model="~ a")
    for array in (c.features, c.settings["a"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


def test_names_and_labels_travel_to_the_problem() -> None:
    c = od.candidates({"t": 3, "machine": ["B", "A"]}, model="~ t + I(t**2)")
    p = od.DesignProblem(c, groups="machine", budgets={"A": 12, "B": 8})
    assert (p.names, p.group_names, p.budgets.tolist()) == (c.names, ("B", "A"), [8, 12])
    assert p.settings is c.settings
    with pytest.raises(TypeError, match="names and settings must not be given with Candidates"):
        od.DesignProblem(c, names=["a", "b", "c"])
    with pytest.raises(ValueError, match="groups must name a column of the settings; there is no 'machin'"):
        od.DesignProblem(c, groups="machin")


def test_missing_libraries_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(ImportError, match=r"from a clone: python -m pip install .\.\[formula\]"):
        od.candidates({"a": 2}, model="~ a")


def test_durations_are_refused_by_name() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "wait": pd.to_timedelta([1, 2], unit="h")})
    with pytest.raises(ValueError, match="the factor 'wait' holds durations"):
        od.candidates(frame, "~ x + wait")
    assert len(od.candidates(frame, "~ x")) == 2


DOTTED = {
    "yes.no": ["a", "b", "c", "a", "b", "c"],
    "temp.in": [1.0, 1, 2, 2, 3, 3],
    "temp": [1, 2, 3, 4, 5, 6],
}


@pytest.mark.parametrize("model", ["~ C(`yes.no`)", "~ `temp.in` + I(`temp.in`**2) + C(`yes.no`, contr.sum)"])
def test_names_with_dots_in_functions_are_factors(model: str) -> None:
    made = od.candidates(pd.DataFrame(DOTTED), model)
    assert "yes.no" in made.model.factors
    assert "temp" not in made.model.factors
    assert made.notes[0] == (
        "not in the model: 'temp'; such factors may still be groups or parameter blocks"
        if "temp.in" in model
        else "not in the model: 'temp.in', 'temp'; such factors may still be groups or parameter blocks"
    )
    with pytest.raises(ValueError, match="has no level 'z'"):
        made.rows({"yes.no": ["z"], "temp.in": [1.0]})
    gone = pd.DataFrame(DOTTED | {"yes.no": ["a", None, "c", "a", "b", "c"]})
    with pytest.raises(ValueError, match=r"'yes.no' is missing in row 2"):
        od.candidates(gone, model)


def test_evaluations_of_names_with_dots_are_those_of_other_names() -> None:
    model = "~ `temp.in` + I(`temp.in`**2) + C(`yes.no`)"
    dotted = od.evaluate(DOTTED, model)
    plain = od.evaluate({k.replace(".", "_"): v for k, v in DOTTED.items()}, model.replace(".", "_"))
    np.testing.assert_allclose(dotted.relative_variances, plain.relative_variances)
    assert dotted.average_variance == pytest.approx(plain.average_variance)
    assert len(dotted.alias_terms) == len(plain.alias_terms)


@pytest.mark.parametrize(
    "model", ["~ C(k, levels=['b', 'a'])", "~ C(x, levels=[1, 2])", "~ C(x > 2, levels=[True])"]
)
def test_categories_that_the_formula_does_not_list_are_refused(model: str) -> None:
    """They were the first level of the list."""
    with pytest.raises(ValueError, match="must have known levels"):
        od.candidates(pd.DataFrame({"k": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}), model)


def test_categories_of_numbers_that_the_candidates_do_not_have_are_refused() -> None:
    made = od.candidates({"day": [1, 2, 3], "x": [0, 1]}, "~ C(day) + x")
    np.testing.assert_allclose(made.rows({"day": [2], "x": [1]}), [[1, 1, 0, 1]])
    with pytest.raises(ValueError, match=r"must have known levels; .* has a category without one: 9"):
        made.rows({"day": [9], "x": [1]})
    e = od.evaluate((od.DesignProblem(made, budgets=6), np.ones(6)))
    with pytest.raises(ValueError, match="must have known levels"):
        e.predict({"day": [9], "x": [1]})


@pytest.mark.parametrize(
    ("factors", "model", "twice"),
    [
        ({"Intercept": [1, 2, 3]}, "~ Intercept", "Intercept"),
        ({"a": [1, 2, 3], "b": [5, 6], "a:b": [1, 2, 5]}, "~ a:b + `a:b`", "a:b"),
        ({"a": ["x", "y"], "a[T.y]": [1, 2, 3]}, "~ a + `a[T.y]`", r"a\[T.y\]"),
        ({"a": [1, 2, 3], "log(a)": [5, 6]}, "~ `log(a)` + log( a )", r"log\(a\)"),
    ],
)
def test_terms_of_one_name_are_refused_because_one_of_them_would_be_dropped(factors, model, twice) -> None:
    with pytest.raises(od.InputError, match=f"are called '{twice}'.*Rename the factor"):
        od.candidates(factors, model)


@pytest.mark.parametrize(
    "model", ["~ I(x - x.mean())", "~ I(x - max(x))", "~ I(x / x.std())", "~ x.rank()", "~ I(x)[::-1] + x"]
)
def test_models_that_depend_on_other_rows_are_refused_for_other_settings(model: str) -> None:
    c = od.candidates({"x": [1.0, 2.0, 6.0], "y": [0, 1]}, model)
    with pytest.raises(od.InputError, match=r"row by row.*depends on other rows.*center"):
        c.rows({"x": [1.0, 2.0]})
    with pytest.raises(od.InputError, match="depends on other rows"):
        od.evaluate({"x": [1, 2, 2, 6]}, model)
    with pytest.raises(od.InputError, match="depends on other rows"):
        od.refine(od.DesignProblem(c))
    assert od.solve(od.DesignProblem(c)).converged


@pytest.mark.parametrize(
    "model", ["~ center(x)", "~ scale(x) + poly(x, 2)", "~ bs(x, df=4)", "~ C(x) + np.log(x)"]
)
def test_models_that_keep_what_they_learned_have_rows_of_other_settings(model: str) -> None:
    c = od.candidates({"x": [1.0, 2.0, 6.0], "y": [0, 1]}, model)
    np.testing.assert_allclose(c.rows({"x": [6.0]})[0], c.features[-1])


def test_coding_leaves_categories_of_numbers_as_they_are() -> None:
    c = od.candidates({"x": [0, 5, 10], "day": [1, 2, 10]}, "~ C(day) + x", coded=True)
    assert c.names == ("Intercept", "C(day)[T.2]", "C(day)[T.10]", "x")
    assert c.rows({"x": 10, "day": 2}).tolist() == [[1.0, 1.0, 0.0, 1.0]]


@pytest.mark.parametrize("levels", [["20", "40"], ["10 %", "20 %"], ["1,5", "2,5"]])
def test_text_that_may_be_meant_as_numbers_is_noted(levels):
    c = od.candidates(pd.DataFrame({"temp": levels * 2, "x": [0, 0, 1, 1]}), "~ temp + x")
    assert f"factor 'temp' is text, such as '{levels[0]}', and so a category" in " ".join(c.notes)
    for clear in ({"temp": levels, "x": [0, 1]}, {"temp": ["2x", levels[0]], "x": [0, 1]}):
        assert not od.candidates(clear, "~ temp + x").notes
