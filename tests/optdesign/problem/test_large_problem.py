"""Problems that are larger than memory: the same answers as in memory, from chunks."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from chunked_problems import assert_same_optimum, drawn_problem

import optdesign as od
from optdesign.problem.large import LargeProblem, Part
from optdesign.runtime import memory
from optdesign.sources import arrays


def compare(seed: int) -> None:
    given = drawn_problem(seed)
    large, small = LargeProblem(*given), od.DesignProblem(*given)
    assert large.ranks.tolist() == small.ranks.tolist()
    assert (large.group_names, large.budgets.tolist()) == (small.group_names, small.budgets.tolist())
    assert large.exact_rank.tolist() == small.exact_rank.tolist()
    result = od.solve(large)
    # The certificate in memory covers all candidates, so it is a check of the one from chunks.
    in_memory = od.certify(small, result.weights)
    assert in_memory.gap <= 1e-6 * small.rank
    np.testing.assert_allclose(result.g_value, in_memory.g_value, rtol=1e-8)
    np.testing.assert_allclose(result.variances, in_memory.variances, rtol=1e-6, atol=1e-9)
    assert_same_optimum(result, od.solve(small))


@pytest.mark.parametrize("seed", [0, 3, 4, 6, 10, 15])
def test_chunks_give_the_design_of_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "ROWS", 97)
    compare(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_chunks_give_the_design_of_memory_on_200_problems(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "ROWS", 97)
    compare(seed)


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_designs_do_not_depend_on_the_chunks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for rows in (53, 200, 100_000):
        monkeypatch.setattr(arrays, "ROWS", rows)
        results.append(od.solve(LargeProblem(*drawn_problem(seed))))
    for other in results[1:]:
        assert other.support.tobytes() == results[0].support.tobytes()
        assert other.support_weights.tobytes() == results[0].support_weights.tobytes()
        assert other.gap == results[0].gap


def test_coordinates_that_cancel_are_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "ROWS", 97)
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(500), 1e9 + rng.uniform(size=500), rng.normal(size=500)])
    x[:, 2] += x[:, 1]
    large, small = LargeProblem(x), od.DesignProblem(x)
    assert small.rows is small.refined  # or this test would not test them
    result = od.solve(large)
    assert od.certify(small, result.weights).gap <= 1e-6 * 3
    assert_same_optimum(result, od.solve(small))


def test_ranks_are_compared_with_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "ROWS", 97)
    x = np.random.default_rng(0).integers(-9, 9, size=(400, 3)).astype(float)
    x[:, 2] = x[:, 0] + x[:, 1]
    assert LargeProblem(x).rank_note == ""
    x[371, 2] += 1e-14
    note = LargeProblem(x).rank_note
    assert "rank 2" in note
    assert "it is larger" in note


def test_large_memory_maps_stay_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(5000, 3)).astype(np.float32))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert not isinstance(od.DesignProblem(x), LargeProblem)
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    groups = rng.integers(0, 3, 5000).astype(np.int8)
    problem = od.DesignProblem(x, groups, budgets=[1, 2, 3])
    assert isinstance(problem, LargeProblem)
    assert repr(problem) == "DesignProblem(5000 candidates x 3, 3 groups, 1 parameter block, rank 3)"
    monkeypatch.undo()
    small = od.DesignProblem(x, groups, budgets=[1, 2, 3])
    assert_same_optimum(od.solve(problem), od.solve(small))


def test_arrays_of_length_n_are_built_on_request() -> None:
    x = np.random.default_rng(0).normal(size=(3000, 3))
    result = od.solve(LargeProblem(x))
    str(result), repr(result), result._repr_html_()
    assert "weights" not in vars(result)
    usual = od.solve(od.DesignProblem(x)).measures
    np.testing.assert_allclose(result.measures[:3], usual[:3], rtol=1e-5)
    assert "variances" not in vars(result.certificate)
    assert result.weights[result.support].tolist() == result.support_weights.tolist()
    assert np.count_nonzero(result.weights) == len(result.support)
    assert result.variances.shape == (3000,)
    assert result.to_frame().index.tolist() == result.support.tolist()


def test_designs_in_memory_are_saved_and_evaluated(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(3000, 3))
    result = od.solve(LargeProblem(x, np.arange(3000) % 2, budgets=12))
    small, path = result.in_memory(), tmp_path / "design.json"
    od.save(small, path)
    saved = od.load(path)
    assert saved.weights.tolist() == small.weights.tolist()
    assert saved.gap == pytest.approx(od.certify(od.DesignProblem(x, np.arange(3000) % 2, budgets=12),
                                                 result.weights).gap, abs=3e-6)  # fmt: skip
    runs = od.round(small)
    od.save(runs, path)
    assert od.load(path).counts.tolist() == runs.counts.tolist()
    evaluated = od.evaluate(small)
    rows = np.sqrt(result.support_weights)[:, None] * x[result.support]
    covariance = np.linalg.inv(rows.T @ rows)
    np.testing.assert_allclose(evaluated.relative_variances, np.diag(covariance))
    with pytest.raises(od.InputError, match=r"must be in memory.*in_memory\(\)"):
        od.evaluate(result)


def test_other_functions_work_on_the_support_or_name_the_remedy() -> None:
    x = np.random.default_rng(0).normal(size=(3000, 3))
    problem = LargeProblem(x, budgets=12)
    result = od.solve(problem)
    for call in (
        lambda: od.round(result),
        lambda: od.exact(problem),
        lambda: od.sparsify(result),
        lambda: problem.candidates,
        lambda: od.plot.weights(result),
        lambda: od.verify(result),
    ):
        with pytest.raises(od.InputError, match=r"must be in memory.*in_memory\(\)"):
            call()
    assert od.certify(problem, result.weights).gap == result.gap
    uniform = np.full(3000, 12 / 3000)
    np.testing.assert_allclose(
        od.certify(problem, uniform).g_value, od.certify(od.DesignProblem(x, budgets=12), uniform).g_value
    )
    small = result.in_memory()
    assert od.certify(small.problem, small.weights).gap <= result.gap
    runs = od.round(small)
    assert runs.counts.sum() == 12
    whole = np.zeros(3000)
    assert isinstance(small.problem, Part)
    whole[small.problem.pool.rows] = runs.counts
    best = od.solve(od.DesignProblem(x, budgets=12))
    assert (
        runs.efficiency * result.efficiency <= od.efficiency(best.problem, whole, best=best) / best.efficiency
    )
    assert od.exact(small.problem).counts.sum() == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"candidates": [[1.0, np.nan]] * 5}, "candidates must be finite; candidates\\[0\\]"),
        ({"candidates": [[0.0, 0.0]] * 5}, "non-zero row"),
        ({"groups": [0, 0, 2, 2, 2]}, "group 1 of 3 has none"),
        ({"groups": [-1, 0, 0, 0, 0]}, "must not be negative"),
        ({"groups": [0, 1]}, "one label per candidate"),
        ({"groups": np.array(["a", None, "a", "b", "b"], dtype=object)}, r"groups\[1\] is"),
        ({"groups": ["a", "a", "b", "b", "b"], "budgets": {"a": 1}}, "none for 'b'"),
        ({"parameter_blocks": [0, 10**9, 0, 0, 0]}, "must be numbered"),
        ({"settings": {"a": [1, 2, 3, 4, 5]}}, "settings must be left out"),
        ({"budgets": -1}, "budgets must be positive"),
    ],
)
def test_wrong_arguments(change: dict[str, object], message: str) -> None:
    arguments = {"candidates": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 2.0]], **change}
    with pytest.raises(od.InputError, match=message):
        LargeProblem(np.array(arguments.pop("candidates")), **arguments)


def test_large_arrays_in_memory_are_solved_on_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solve with groups never copies all rows: a share of the memory decides, not where the rows are."""
    x, groups = np.random.default_rng(0).normal(size=(5000, 3)), np.arange(5000) % 100
    small = od.DesignProblem(x, groups)
    monkeypatch.setattr(memory, "available", lambda: 5_000_000)  # the problem would take 560,000 bytes
    large = od.DesignProblem(x, groups)
    assert isinstance(large, LargeProblem)
    assert large.engine.arrays[0] is x  # type: ignore[attr-defined]
    result = od.solve(large)
    assert result.method == "auto: rounds on a pool"
    assert_same_optimum(result, od.solve(small))


@pytest.mark.parametrize(
    "labels",
    [
        ["1", 1] * 40,
        [True, "True"] * 40,
        pa.array(["b", "a"] * 40).dictionary_encode(),
        pa.chunked_array([["b", "a"] * 20] * 2),
        pl.Series(["b", "a"] * 40, dtype=pl.Enum(["b", "c", "a"])),
        np.array([10**17, 10**17 + 1] * 40, "m8[ns]"),
        pa.array(np.array([9, 10] * 40, "m8[s]")),
        np.ma.array([0, 1] * 40, mask=[0, 1] * 40),
        ["b", None] * 40,
    ],
    ids=[
        "text and numbers",
        "text and booleans",
        "pyarrow",
        "chunked",
        "polars",
        "durations",
        "pyarrow durations",
        "masked",
        "missing",
    ],
)
def test_labels_of_large_arrays_are_those_of_memory(labels: Any) -> None:
    x = np.random.default_rng(0).normal(size=(80, 2))
    problems, errors = [], []
    for kind in (od.DesignProblem, LargeProblem):
        try:
            problems.append(kind(x, groups=labels, budgets=[3.0, 1.0]))
        except od.InputError as error:
            errors.append(str(error))
    if errors:
        assert len(errors) == 2
        assert errors[0] == errors[1]
        return
    small, large = problems
    assert large.group_names == small.group_names
    assert isinstance(large, LargeProblem)
    assert large.fetch(np.arange(80)).groups.tolist() == small.groups.tolist()


def test_weights_that_lose_rank_have_no_variances(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    found = od.certify(od.DesignProblem(tmp_path / "x.npy"), [1.0, 0.0, 0.0])
    assert found.gap == np.inf
    assert np.isnan(found.variances).all()


def test_designs_in_memory_keep_the_certificate_of_all_candidates() -> None:
    x = np.random.default_rng(0).normal(size=(4000, 4))
    large = od.solve(LargeProblem(x), max_iter=1)
    small = large.in_memory()
    assert isinstance(small.problem, Part)
    sparse = od.sparsify(small)
    weights = np.zeros(len(x))
    weights[small.problem.pool.rows] = sparse.weights
    whole = od.certify(od.DesignProblem(x), weights)
    assert sparse.gap == pytest.approx(whole.gap, rel=1e-9)
    assert sparse.efficiency == pytest.approx(whole.efficiency, rel=1e-9)
    for design in (small, sparse):
        assert pytest.approx(large.measures.G, rel=1e-9) == design.measures.G
        assert np.isnan(design.measures.I)
