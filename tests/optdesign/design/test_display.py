"""What people see of a design: frames, and its representations in a terminal and a notebook."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import optdesign as od
from optdesign.design.display import texts, without_roundoff


@pytest.fixture(scope="module")
def result() -> od.DesignResult:
    c = od.candidates({"t": [20, 30, 40], "<b>": ["u&v", "w"]}, model="~ t + `<b>`")
    return od.solve(od.DesignProblem(c, groups="<b>", budgets=[12, 8]))


def test_a_frame_has_settings_labels_and_numbers(result: od.DesignResult) -> None:
    frame = result.to_frame()
    assert list(frame.columns) == ["t", "<b>", "group", "parameter_block", "weight", "variance"]
    assert frame["t"].tolist() == [20, 20, 30, 30, 40, 40]
    assert frame["group"].tolist() == frame["<b>"].tolist() == ["u&v", "w"] * 3
    assert frame.index.name == "candidate"  # as arrays count: from 0
    np.testing.assert_array_equal(frame.index, np.arange(6))
    np.testing.assert_array_equal(frame["weight"], result.weights)
    np.testing.assert_array_equal(frame["variance"], result.variances)
    frame.loc[0, "weight"] = 7.0  # a copy, which may be changed
    assert result.weights[0] != 7.0


def test_frames_of_named_features_and_of_plain_arrays() -> None:
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert list(od.solve(od.DesignProblem(x)).to_frame().columns) == [
        "group",
        "parameter_block",
        "weight",
        "variance",
    ]
    named = od.solve(od.DesignProblem(x, names=["weight", "b"])).to_frame()
    assert list(named.columns) == ["weight_setting", "b", "group", "parameter_block", "weight", "variance"]
    assert named["weight_setting"].tolist() == [1.0, 0.0]


def test_a_factor_called_group_stays_in_tables_beside_the_labels() -> None:
    c = od.candidates({"group": ["a", "b"], "group_setting": [-1, 1]}, model="~ group + group_setting")
    problem = od.DesignProblem(c, groups=np.array(["m", "n", "n", "m"]), budgets=2)
    runs = od.Runs.given(problem, [1, 1, 1, 1])
    table = runs.table()
    assert list(table.columns) == ["run", "candidate", "group", "group_setting", "group_"]
    assert table["group"].tolist() == c.settings["group"][table["candidate"]].tolist()
    assert table["group_"].tolist() == ["m", "m", "n", "n"]
    frame = runs.to_frame()
    assert frame["group_setting_"].tolist() == ["a", "a", "b", "b"]
    assert frame["group_setting"].tolist() == [-1, 1, -1, 1]
    assert frame["group"].tolist() == ["m", "n", "n", "m"]
    assert "<th>group_</th>" in od.solve(problem)._repr_html_()


def test_repr_says_gap_and_efficiency(result: od.DesignResult) -> None:
    assert repr(result).startswith("DesignResult(CONVERGED, gap ")
    assert "efficiency at least 0.99999" in repr(result)
    assert "rank 3 of 3, support 4 of 6" in repr(result)
    aliased = od.candidates(od.simplex_lattice(["a", "b"], 2), model="~ a + b")
    r = od.solve(od.DesignProblem(aliased))
    assert "for the 2 of 3 parameters that are estimable" in repr(r)
    assert "b is a combination of Intercept, a" in str(r)
    assert "b is a combination of Intercept, a" in r._repr_html_()


def test_html_shows_settings_and_escapes_them(result: od.DesignResult) -> None:
    html = result._repr_html_()
    assert "<b>" not in html
    assert "<th>&lt;b&gt;</th>" in html
    assert "<tr><th>row</th>" in html
    assert "<tr><td>1</td><td>20</td><td>u&amp;v</td><td>6.000000</td>" in html  # rows count from 1
    assert "<th>group</th>" not in html  # the factor says it already
    assert "not shown" not in html
    many = od.solve(od.DesignProblem(np.eye(30), groups=np.repeat(["x", "y"], 15)))._repr_html_()
    assert "10 smaller weights are not shown" in many
    assert "<th>group</th>" in many


def test_tab_completion_shows_the_public_names_only() -> None:
    assert {name for name in dir(od) if not name.startswith("__")} == set(od.__all__)
    for name in od.__all__:
        assert hasattr(od, name)


def test_missing_pandas_names_the_extra(result: od.DesignResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"from a clone: python -m pip install .\.\[frames\]"):
        result.to_frame()


@pytest.mark.parametrize(
    ("seconds", "compile_seconds", "shown"), [(8.5, 8.25, True), (0.05, 0.04, False), (100.0, 0.5, False)]
)
def test_seconds_of_first_use_are_shown_unless_negligible(
    seconds: float, compile_seconds: float, shown: bool
) -> None:
    r = replace(od.solve(od.DesignProblem(np.eye(2))), seconds=seconds, compile_seconds=compile_seconds)
    for text in (str(r), r._repr_html_()):
        assert f"{seconds:.3g} s" in text
        assert ("for first use" in text) == shown


def test_settings_in_single_precision_are_shown_as_given() -> None:
    x = np.array([100000.3, 100000.4, 100001.7, 16777216, 16777214, 0.1], dtype=np.float32)
    shown = ["100000.3", "100000.4", "100001.7", "16777216", "16777214", "0.1"]
    assert texts(x) == shown


@pytest.mark.parametrize("levels", [1.7e18 + np.array([0.0, 512, 1024]), 1e16 + np.array([0.0, 4, 8])])
def test_run_lists_keep_whole_numbers_that_differ_in_the_last_digits(levels: np.ndarray) -> None:
    c = od.candidates({"t": levels, "k": ["a", "b"]}, "~ t*k", coded=True)
    runs = od.exact(od.DesignProblem(c, budgets=8))
    written = without_roundoff(runs.table()["t"])
    assert set(written) == {levels[0], levels[2]}
    shown = [line.split()[2] for line in str(runs.table()).splitlines()[1:]]
    assert [float(v) for v in shown] == written.tolist()
