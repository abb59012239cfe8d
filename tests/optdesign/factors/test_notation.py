"""Formulas, conditions and files as users of R and of spreadsheets have them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import optdesign as od

LEVELS: dict[str, Any] = {"x": [-1, 0, 1], "y": [1, 2, 4], "cat": ["a", "b"], "k": [1, 2, 3]}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("~ x + I(x^2)", "~ x + I(x**2)"),
        ("~ (x + y)^2 + log(y^2 + 1)", "~ (x + y)**2 + log(y**2 + 1)"),
        ("~ quad(x, y)", "~ (x + y)**2 + I(x**2) + I(y**2)"),
        ("~ cat * quad(x, y)", "~ cat * ((x + y)**2 + I(x**2) + I(y**2))"),
        ("~ sqrt(y) + abs(x)", "~ I(y**0.5) + I((x**2)**0.5)"),
    ],
)
def test_formulas_of_r(theirs: str, ours: str) -> None:
    one, other = od.candidates(LEVELS, model=theirs), od.candidates(LEVELS, model=ours)
    np.testing.assert_allclose(one.features, other.features)
    np.testing.assert_allclose(one.rows({k: v[0] for k, v in LEVELS.items()}), other.features[:1])


def test_a_quadratic_in_names_that_need_backticks() -> None:
    levels = {"bath (°C), left": [20, 30, 40], "y": [1, 2, 4], "quad(y)": [1, 2, 3]}
    model = "~ quad(`bath (°C), left`, y) + `quad(y)`"
    long = "~ (`bath (°C), left` + y)**2 + I(`bath (°C), left`**2) + I(y**2) + `quad(y)`"
    np.testing.assert_allclose(od.candidates(levels, model).features, od.candidates(levels, long).features)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("~ factor(k)", r"factor\(\) is not known; a category is C\(x\)"),
        ("~ as.factor(k)", r"a category is C\(x\)"),
        ("~ C(cat, sum)", r"contrasts are named contr\.sum: C\(x, contr\.sum\)"),
        ("~ x + offset(y)", "an offset has no parameter"),
    ],
)
def test_spellings_that_are_not_evaluated_name_the_one_that_is(model: str, said: str) -> None:
    with pytest.raises(od.InputError, match=said):
        od.candidates(LEVELS, model=model)


def test_categories_of_whole_numbers_are_named_as_such() -> None:
    assert od.candidates(LEVELS, model="~ C(k)").names == ("Intercept", "C(k)[T.2]", "C(k)[T.3]")
    names = od.candidates(LEVELS, model="~ x:C(k, contr.sum) + C(y)").names
    assert "x:C(k, contr.sum)[1]" in names
    assert "C(y)[T.4]" in names
    text = {"k": ["1.0", "2.0"], "half": [0.5, 1.5]}  # labels and fractions stay
    assert od.candidates(text, model="~ k + C(half)").names == ("Intercept", "k[T.2.0]", "C(half)[T.1.5]")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("abs(x) < 1", "-1 < x < 1"),
        ("sqrt(y) <= 2 && x > 0", "y <= 4 and x > 0"),
        ("x^2 == 1", "x != 0"),
        ("!(x > 0)", "x <= 0"),
        ("!(x > 0) || cat != 'a'", "x <= 0 or cat == 'b'"),
        ("abs(x) + sqrt(y) < 2.5 && !(cat == 'b')", "(x == 0 or y <= 2) and cat == 'a'"),
    ],
)
def test_conditions_of_r(theirs: str, ours: str) -> None:
    kept = [od.candidates(LEVELS, model="~ x", where=where).settings for where in (theirs, ours)]
    for name in LEVELS:
        assert kept[0][name].tolist() == kept[1][name].tolist()


def test_roots_and_sizes_allow_for_round_off() -> None:
    settings = {"v": [0.1 + 0.2, -0.3, 0.09, 0.31]}
    assert len(od.candidates(settings, model="~ v", where="abs(v) <= 0.3")) == 3
    assert od.candidates(settings, model="~ v", where="sqrt(v) == 0.3").settings["v"].tolist() == [0.09]


def test_other_functions_and_lists_of_r_are_explained() -> None:
    with pytest.raises(od.InputError, match=r"Functions are abs and sqrt; otherwise pass a function"):
        od.candidates(LEVELS, model="~ x", where="exp(x) < 1")
    with pytest.raises(od.InputError, match=r'A list is .cat in \["a", "b"\].'):
        od.candidates(LEVELS, model="~ x", where="cat %in% c('a', 'b')")
    hidden = {"abs": [1, 2, 3]}  # a factor of that name is no function
    assert len(od.candidates(hidden, model="~ 1", where="abs > 1")) == 2


def test_workbooks_are_read(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    path = tmp_path / "f.xlsx"
    book = openpyxl.Workbook()
    for row in (
        ["temp", "cat", "day"],
        [20, "a", datetime.date(2024, 5, 1)],
        [40.5, "b", None],
        [60, "a", None],
    ):
        book.active.append(row)
    book.save(path)
    c = od.candidates(path, model="~ temp + cat")
    assert c.settings["temp"].tolist() == [20, 40.5, 60]
    assert set(c.names) == {"Intercept", "cat[T.b]", "temp"}
    book.active.cell(3, 1).value = None
    book.save(path)
    with pytest.raises(od.InputError, match=r"'temp' is missing in row 3 of .*f\.xlsx"):
        od.candidates(path, model="~ temp")
    book.active.insert_rows(3, 2)  # rows without entries, which are left out
    book.save(path)
    with pytest.raises(od.InputError, match=r"'temp' is missing in row 5 of .*f\.xlsx"):
        od.candidates(path, model="~ temp")
    book.active.cell(6, 2).value = 7
    book.save(path)
    with pytest.raises(od.InputError, match=r"it holds 'a', and 7 in row 6 of .*f\.xlsx"):
        od.candidates(path, model="~ cat")
    (tmp_path / "no.xlsx").write_text("temp\n1\n")
    with pytest.raises(od.InputError, match=r"must be an Excel workbook"):
        od.candidates(tmp_path / "no.xlsx", model="~ temp")
    with pytest.raises(od.InputError, match=r"must end in .*got '.*f\.xls'. Export the sheet as \.csv"):
        od.candidates(tmp_path / "f.xls", model="~ temp")


def test_rows_count_from_one_in_words_and_from_zero_in_brackets() -> None:
    with pytest.raises(od.InputError, match=r"'t' is missing in row 2\.") as caught:
        od.candidates(pd.DataFrame({"t": [1.0, np.nan]}), model="~ t")
    assert caught.value.row == 1
    with pytest.raises(od.InputError, match=r"candidates\[1\] = \[nan\]"):
        od.DesignProblem([[1.0], [np.nan]])
    twice = od.candidates(pd.DataFrame({"t": [1.0, 2.0, 1.0]}), model="~ t")
    assert "the first in rows 1 and 3" in twice.notes[-1]


def test_main_effects_have_no_weights() -> None:
    with pytest.raises(
        TypeError, match=r"got MainEffects\. It has no list of candidates, .* pass it to exact"
    ):
        od.solve(od.MainEffects({"a": [-1, 1]}, runs=4))  # type: ignore[arg-type]
