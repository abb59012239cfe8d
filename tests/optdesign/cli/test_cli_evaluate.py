"""The command evaluate on run lists and saved designs."""

import json

import numpy as np
import pytest
from command_line import refused, run

import optdesign as od

MODEL = "~ a * b"


@pytest.fixture(autouse=True)
def lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    c = od.candidates({"a": [-1, 0, 1], "b": ["u", "v"]}, MODEL)
    for n in (8, 12):
        od.exact(od.DesignProblem(c, budgets=n), tries=1).table().write(f"runs{n}.csv")
    od.save(od.solve(od.DesignProblem(c)), "weights.json")


def test_figures_are_those_of_python():
    done = run("evaluate", "runs8.csv", "--model", MODEL, "--effect", 2, "--json")
    assert done.exit_code == 0, done.stderr
    e = od.evaluate("runs8.csv", MODEL, effect=2)
    read = json.loads(done.stdout)
    np.testing.assert_allclose([line["power"] for line in read["coefficients"]], e.power)
    text = run("evaluate", "runs8.csv", "--model", MODEL, "--effect", 2).stdout
    assert str(e) in text


def test_two_designs_side_by_side(tmp_path):
    done = run("evaluate", "runs8.csv", "--model", MODEL, "--against", "runs12.csv", "--plot", "both.png")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "both.png").stat().st_size > 0
    line = next(line for line in done.stdout.splitlines() if line.startswith("a "))
    pair = [od.evaluate(f"runs{n}.csv", MODEL) for n in (8, 12)]
    expected = [f"{getattr(e, name)[1]:.4f}" for name in ("standard_errors", "vif", "power") for e in pair]
    assert line.split()[1:] == expected
    both = json.loads(
        run("evaluate", "runs8.csv", "--model", MODEL, "--against", "runs12.csv", "--json").stdout
    )
    assert [one["file"] for one in both["designs"]] == ["runs8.csv", "runs12.csv"]


def test_saved_weights_are_scaled_to_runs():
    done = run("evaluate", "weights.json", "--runs", 12, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["error_df"] == pytest.approx(8)


def test_bad_input():
    assert "model must be given" in refused("evaluate", "runs8.csv").replace("--model", "model")
    assert "sigma must be positive" in refused(
        "evaluate", "runs8.csv", "--model", MODEL, "--sigma", 0
    ).replace("--sigma", "sigma")


def solved(tmp_path, model="~ x + I(x**2) + I(x^3) + cat"):
    """Write candidates, and a run list with its recipe."""
    rows = "\n".join(f"{x},{c}" for x in (20, 30, 40, 50, 60) for c in "ab")
    (tmp_path / "c.csv").write_text("x,cat\n" + rows)
    return run("solve", "c.csv", "--model", model, "--runs", 12, "--tries", 1, "--out", "list.csv", "--json")


def test_a_run_list_with_a_recipe_needs_no_model(tmp_path):
    done = solved(tmp_path)
    assert done.exit_code == 0, done.stderr
    found = json.loads(run("evaluate", "list.csv", "--effect", 2, "--json").stdout)
    assert found["model"] == "~ x + I(x**2) + I(x^3) + cat"
    assert found["d_efficiency"] == json.loads(done.stdout)["efficiency"]
    p = od.DesignProblem(od.candidates(tmp_path / "c.csv", found["model"]), budgets=12)
    x, own = p.source.whole(), p.model.features(od.candidates("list.csv", "~ x + cat").settings)
    expected = np.einsum("ij,jk,ik->i", x, np.linalg.inv(own.T @ own), x)
    assert len(own) == 12
    assert found["average_variance"] == pytest.approx(expected.mean(), rel=1e-6)
    assert found["largest_variance"] == pytest.approx(expected.max(), rel=1e-6)
    # Another model is evaluated on the same candidates.
    plain = json.loads(run("evaluate", "list.csv", "--model", "~ x + cat", "--json").stdout)
    assert [line["term"] for line in plain["coefficients"]] == ["Intercept", "x", "cat[S.a]"]


def test_a_list_beside_one_with_a_recipe_is_evaluated_on_its_candidates(tmp_path):
    solved(tmp_path)
    (tmp_path / "other.csv").write_text("x,cat\n30,a\n30,b\n50,a\n50,b\n40,a\n40,b\n35,a\n45,b\n")
    both = json.loads(run("evaluate", "list.csv", "--against", "other.csv", "--json").stdout)["designs"]
    levels = {"x": [20, 30, 40, 50, 60], "cat": ["a", "b"]}
    e = od.evaluate("other.csv", both[0]["model"], region=levels)
    assert both[1]["average_variance"] == pytest.approx(e.average_variance)
    assert [c["power"] for c in both[1]["coefficients"]] == pytest.approx(e.power.tolist())


def test_two_lists_are_compared_on_the_levels_of_both(tmp_path):
    (tmp_path / "one.csv").write_text("x,cat\n20,a\n60,a\n40,b\n40,a\n20,b\n")
    (tmp_path / "two.csv").write_text("x,cat\n30,a\n50,a\n30,c\n50,c\n40,b\n")
    done = run("evaluate", "one.csv", "--model", "~ x", "--against", "two.csv", "--json")
    both = json.loads(done.stdout)["designs"]
    region = {"x": [20, 30, 40, 50, 60]}
    for name, found in zip(("one.csv", "two.csv"), both, strict=True):
        e = od.evaluate(name, "~ x", region=region)
        assert found["largest_variance"] == pytest.approx(e.largest_variance)
        assert found["coefficients"][1]["power"] == pytest.approx(e.power[1])
    # A level that one list alone has is a level of both: its coefficient is not estimable in the other.
    both = json.loads(run("evaluate", "one.csv", "--model", "~ cat", "--against", "two.csv", "--json").stdout)
    assert [c["term"] for c in both["designs"][0]["coefficients"]] == ["Intercept", "cat[S.a]", "cat[S.b]"]
    assert both["designs"][0]["coefficients"][1]["standard_error"] == "inf"


def test_designs_of_other_candidates_are_compared_on_one_region_or_refused(tmp_path):
    narrow = {"temp": [20, 40, 60], "z": [1, 2]}
    wide = {"temp": [0, 50, 100], "z": [1, 5]}
    for name, levels in (("narrow", narrow), ("wide", wide)):
        rows = [f"{temp},{z}" for temp in levels["temp"] for z in levels["z"]]
        (tmp_path / f"{name}.csv").write_text("\n".join(["temp,z", *rows]) + "\n")
        run("solve", f"{name}.csv", "--model", "~ temp + z", "--runs", "8", "--out", f"{name}8.csv")
        od.save(od.solve(od.DesignProblem(od.candidates(levels, "~ temp + z"))), tmp_path / f"{name}.json")
    both = json.loads(run("evaluate", "narrow8.csv", "--against", "wide8.csv", "--json").stdout)["designs"]
    e = od.evaluate("wide8.csv", "~ temp + z", region=narrow)
    found = [line["standard_error"] for line in both[1]["coefficients"]]
    assert found == pytest.approx(e.standard_errors.tolist())
    assert both[1]["average_variance"] == pytest.approx(e.average_variance)
    message = refused("evaluate", "narrow.json", "--against", "wide.json")
    assert "two designs must have the same candidates to be compared" in message
    assert run("evaluate", "narrow.json", "--against", "narrow.json").exit_code == 0


def test_a_recipe_whose_candidates_are_gone(tmp_path):
    solved(tmp_path)
    (tmp_path / "c.csv").unlink()
    assert "must be where the recipe states" in refused("evaluate", "list.csv")
    assert run("evaluate", "list.csv", "--model", "~ x + cat").exit_code == 0


def test_finer_grids_are_offered(tmp_path):
    done = solved(tmp_path)
    assert "a power of 3 or more" in json.loads(done.stdout)["grid_note"]
    text = run("solve", "c.csv", "--model", "~ x + I(x**3)", "--runs", 8, "--tries", 1).stdout
    assert "optdesign.refine(problem)" in text
    assert "refine" not in run("solve", "c.csv", "--model", "~ x + cat", "--runs", 8, "--tries", 1).stdout
    measures = json.loads(run("evaluate", "list.csv", "--json").stdout)["measures"]
    p = od.DesignProblem(od.candidates("c.csv", "~ x + I(x**2) + I(x^3) + cat"), budgets=12)
    assert measures["D"] == pytest.approx(od.exact(p, tries=1).measures.D, rel=1e-6)
