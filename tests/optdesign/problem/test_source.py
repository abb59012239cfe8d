"""The one home of the candidates: two ways to read them, and nobody who reads them in another."""

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest

import optdesign as od
from optdesign.problem.source import Source
from optdesign.runtime import threads

PACKAGE = Path(od.__file__).parent


def test_nobody_else_knows_where_the_candidates_are() -> None:
    """Neither ``problem.candidates`` nor the array behind a source, in any module of the package."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        if path.name == "source.py" or "testing" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute):
                continue
            owner = ast.unparse(node.value)
            reaches = node.attr == "candidates" and owner in (
                "problem",
                "p",
                "self.problem",
                "result.problem",
            )
            if reaches or (node.attr == "array" and owner.endswith("source")):
                found.append(f"{path.relative_to(PACKAGE)}: {ast.unparse(node)}")
    assert found == []


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pieces_are_all_rows_in_order(dtype: type[np.floating], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "PIECE", 7 * 3)
    x = np.random.default_rng(0).normal(size=(23, 3)).astype(dtype)
    home = Source(x)
    parts = list(home.pieces())
    assert [first for first, _ in parts] == [0, 7, 14, 21]
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), x)
    np.testing.assert_array_equal(home.piece(5, 9), x[5:9])
    assert (home.n_rows, home.dim) == x.shape


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_some_rows_are_doubles_and_a_copy(dtype: type[np.floating]) -> None:
    x = np.random.default_rng(0).normal(size=(9, 2)).astype(dtype)
    some = Source(x).take(np.array([4, 4, 0]))
    np.testing.assert_array_equal(some, x[[4, 4, 0]].astype(np.float64))
    assert some.dtype == np.float64
    assert not np.shares_memory(some, x)


def test_a_pickled_source_is_as_frozen_as_before() -> None:
    problem = pickle.loads(pickle.dumps(od.DesignProblem(np.eye(3))))
    assert not problem.candidates.flags.writeable
    assert od.solve(problem).converged
