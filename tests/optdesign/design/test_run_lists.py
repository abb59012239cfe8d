"""Whole runs are checked, saved, tabled and shown like weights, with one meaning of efficiency."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import optdesign as od

LEVELS = {"temp": np.linspace(0, 1, 11), "plant": ["Turin", "Lyon"]}
MODEL = "~ temp + I(temp**2) + plant"


@pytest.fixture(scope="module")
def runs() -> od.Runs:
    c = od.candidates(LEVELS, model=MODEL)
    return od.exact(od.DesignProblem(c, groups="plant", budgets={"Lyon": 4, "Turin": 6}), seed=0)


def exact_efficiency(runs: od.Runs) -> float:
    """Return the efficiency of runs against weights that are optimal to 1e-10."""
    best = od.solve(runs.problem, tol=1e-10)
    return float(np.exp((runs.log_det - best.log_det) / runs.rank))


def test_the_efficiency_of_counts_is_that_of_the_search(runs: od.Runs) -> None:
    for design in (runs, runs.counts, runs.counts.tolist()):
        found = od.certify(runs.problem, design)
        assert found.efficiency == pytest.approx(runs.efficiency, abs=1e-6)
        assert found.efficiency <= exact_efficiency(runs)
        assert found.g_efficiency == pytest.approx(runs.measures.G, rel=1e-9)
        assert found.g_efficiency < found.efficiency - 0.05
    # Weights are certified without a solver, unless a solved design is given.
    as_weights = od.certify(runs.problem, runs.counts.astype(float))
    assert as_weights.efficiency == as_weights.g_efficiency
    assert od.certify(runs.problem, runs.counts.astype(float), best=runs.best).efficiency == runs.efficiency
    assert od.certify(runs.problem, runs.best).gap == runs.best.gap  # type: ignore[arg-type, union-attr]


def test_runs_of_any_origin(runs: od.Runs) -> None:
    given = od.Runs.given(runs.problem, runs.counts, best=runs.best)
    assert given.status is od.RunStatus.GIVEN
    assert (given.efficiency, given.log_det) == (runs.efficiency, pytest.approx(runs.log_det))
    alone = od.Runs.given(runs.problem, runs.counts)
    assert alone.efficiency == alone.certificate.g_efficiency
    with pytest.raises(od.InputError, match=r"counts must be whole numbers; counts\[0\] = 0.5"):
        od.Runs.given(runs.problem, [0.5] * runs.problem.n_candidates)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([5_000_000, 0, 5_000_003], "group 0 has 10000003 runs, its budget is 10000000"),
        ([-3, 5_000_000, 5_000_003], r"counts must not be negative; counts\[0\] = -3"),
    ],
)
def test_counts_that_nearly_meet_the_budget_are_refused(counts: list[int], message: str) -> None:
    """Weights may miss it by a millionth, and counts may not."""
    problem = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=10_000_000)
    with pytest.raises(od.InputError, match=message):
        od.Runs.given(problem, counts)
    given = od.Runs.given(problem, [5_000_000, 0, 5_000_000])
    outcome = od.verify(replace(given, counts=np.array(counts)))
    assert outcome.verdict == "differs"
    assert "numbers of runs against the budgets" in outcome.message


@pytest.mark.parametrize(
    ("budget", "counts", "message"),
    [
        (2.0**53, [2.0**53, 0, 1], "at most 2.53 in a group; group 0 has 9007199254740993"),
        (2.0**52, [2.0**52, 0, 1], "group 0 has 4503599627370497 runs, its budget is 4503599627370496"),
        (1e17, [1e17 - 2000, 2001, 3], "at most 2.53 in a group"),
        (1e19, [1e19 - 4096, 2048, 2048], "at most 2.53 in a group"),
        (10.0, [5, 5, np.inf], "counts must be whole numbers"),
    ],
)
def test_sums_of_large_counts_are_exact(budget: float, counts: list[float], message: str) -> None:
    problem = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=budget)
    with pytest.raises(od.InputError, match=message):
        od.Runs.given(problem, counts)


def test_verification_compares_sums_of_large_counts_exactly() -> None:
    most = 2**53
    problem = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=most)
    given = od.Runs.given(problem, [most // 2, 0, most // 2])
    outcome = od.verify(replace(given, counts=np.array([most, 0, 1])))
    assert "numbers of runs against the budgets" in outcome.message


def test_an_efficiency_that_is_not_a_number_is_refuted(runs: od.Runs) -> None:
    assert od.verify(replace(runs, efficiency=np.nan)).verdict == "differs"


def test_verification_of_runs(runs: od.Runs) -> None:
    outcome = od.verify(runs)
    assert outcome.agrees, outcome
    assert "on these candidates" in outcome.message
    for claim in (
        {"efficiency": runs.efficiency + 0.02},
        {"log_det": runs.log_det + 1e-3},
        {"rank": runs.rank - 1},
        {"counts": np.roll(runs.counts, 2)},
    ):
        assert od.verify(replace(runs, **claim)).verdict == "differs", claim  # type: ignore[arg-type]
    levels = od.exact(od.MainEffects({"a": [-1, 1]}, runs=4))
    assert od.verify(levels).verdict == "inconclusive"


@pytest.mark.parametrize("listed", [True, False])
def test_runs_come_back_from_a_file(runs: od.Runs, listed: bool, tmp_path: Path) -> None:
    saved = runs if listed else od.exact(od.MainEffects({"a": [-1, 1], "b": ["u", "v", "w"]}, runs=6))
    od.save(saved, tmp_path / "runs.json")
    back = od.load(tmp_path / "runs.json")
    assert isinstance(back, od.Runs)
    for name in ("efficiency", "log_det", "rank", "status", "method", "tries", "unlisted", "seconds"):
        assert getattr(back, name) == getattr(saved, name)
    assert back.counts.tolist() == saved.counts.tolist()
    assert str(back.table()) == str(saved.table())
    assert not back.counts.flags.writeable


def test_a_forged_efficiency_is_refused(runs: od.Runs, tmp_path: Path) -> None:
    path = tmp_path / "runs.json"
    od.save(replace(runs, efficiency=runs.efficiency + 1e-4), path)
    with pytest.raises(od.InputError, match=r"the efficiency of the runs in .* must be that of the counts"):
        od.load(path)
    assert json.loads(path.read_text())["format"] == "optdesign"


def test_groups_are_listed_as_given_and_stay_together(runs: od.Runs) -> None:
    plain, mixed = runs.table()["plant"].tolist(), runs.table(randomise=1)["plant"].tolist()
    assert plain == ["Turin"] * 6 + ["Lyon"] * 4
    assert mixed != plain
    together = runs.table(randomise=1, keep_groups=True)
    assert together["plant"].tolist() == plain
    assert together["candidate"].tolist() != runs.table()["candidate"].tolist()
    assert sorted(together["candidate"].tolist()) == sorted(runs.table()["candidate"].tolist())
    # Labels in an array are numbered in sorted order; the list has them as the candidates do.
    x = np.column_stack([np.ones(4), [-1, 1, -1, 1]])
    p = od.DesignProblem(x, groups=["Turin", "Turin", "Lyon", "Lyon"], budgets=2)
    assert p.group_names == ("Lyon", "Turin")
    assert od.exact(p).table()["group"].tolist() == ["Turin", "Turin", "Lyon", "Lyon"]


def test_settings_are_shown_and_written_as_given(tmp_path: Path) -> None:
    c = od.candidates({"conc": 0.1 * np.arange(1, 8), "mass": [1234567.5, 1234568.5]}, model="~ conc + mass")
    assert 0.30000000000000004 in c.settings["conc"]
    p = od.DesignProblem(c, budgets=14)
    table = od.Runs.given(p, np.ones(14)).table()
    for shown in (str(table), table._repr_html_()):
        assert "0.3" in shown
        assert "1234567.5" in shown
        assert "0000000" not in shown
    table.write(tmp_path / "list.csv")
    assert "0.3,1234567.5" in (tmp_path / "list.csv").read_text()
    assert "0000000" not in (tmp_path / "list.csv").read_text()


def test_html_and_frames(runs: od.Runs) -> None:
    html = runs._repr_html_()
    assert "on these candidates" in html
    assert "<th>plant</th>" in html
    assert html.count("<tr>") > 10 + 3
    assert ", rank " in html
    frame = runs.to_frame()
    assert list(frame.columns) == ["temp", "plant", "group", "parameter_block", "runs", "variance"]
    assert frame["runs"].tolist() == runs.counts.tolist()
    many = od.Runs.given(od.DesignProblem(np.eye(3), budgets=110), [10, 50, 50]).table()
    assert "10 runs more" in many._repr_html_()
    assert "10 runs more" in str(many)


def test_usual_efficiencies() -> None:
    """D, A, G and I by their formulas; an orthogonal design in coded units has 1."""
    corners = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    x = np.column_stack([np.ones(8), corners])
    full = od.Runs.given(od.DesignProblem(x, budgets=8), np.ones(8))
    assert tuple(full.measures) == pytest.approx((1, 1, 1, 1))
    some = np.array([1, 1, 1, 0, 1, 0, 0, 1])
    m = od.Runs.given(od.DesignProblem(x, budgets=5), some).measures
    u = (x.T * some) @ x
    inverse = np.linalg.inv(u)
    g = np.einsum("ni,ij,nj->n", x, inverse, x)
    expected = (
        np.linalg.det(u) ** 0.25 / 5,
        4 / (5 * np.trace(inverse)),
        4 / (5 * g.max()),
        4 / (5 * g.mean()),
    )
    assert tuple(m) == pytest.approx(expected)
    result = od.solve(od.DesignProblem(x, budgets=5))
    assert pytest.approx(result.efficiency, abs=1e-6) == result.measures.G
    assert f"D {result.measures.D:.4g}" in str(result)
    lost = od.Runs.given(od.DesignProblem(x, budgets=5), [5, 0, 0, 0, 0, 0, 0, 0])
    assert tuple(lost.measures) == (0, 0, 0, 0)


def test_tables_keep_different_settings_apart() -> None:
    levels = np.linspace(100_000, 100_001, 4)
    runs = od.exact(od.DesignProblem(od.candidates({"x": levels}, "~ C(x)"), budgets=4))
    shown = [line.split()[2] for line in str(runs.table()).splitlines()[1:]]
    assert shown == ["100000", "100000.3333", "100000.6667", "100001"]
    assert all(f"<td>{level}</td>" in runs._repr_html_() for level in shown)
