"""Files whose checksum is right and whose content is not: they raise InputError, or load without harm."""

import copy
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optdesign as od
from optdesign.saving import files

OTHERS: tuple[Any, ...] = (None, "x", -1, 7, 0.5, [], [-1], {})
ACTIVE = np.array([[True, True], [True, False], [True, True]])


def written(path: Path, document: dict[str, Any]) -> Path:
    text = json.dumps(document["content"], ensure_ascii=False)
    document = {**document, "sha256": hashlib.sha256(files.encoded(text)).hexdigest()}
    path.write_text(json.dumps(document))
    return path


def saved(path: Path, design: od.DesignResult | od.Runs) -> dict[str, Any]:
    od.save(design, path)
    return json.loads(path.read_text())


def leaves(part: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of the parts of a content, and of the first entries of lists."""
    if place:
        yield place
    items = part.items() if isinstance(part, dict) else enumerate(part[:2]) if isinstance(part, list) else ()
    for key, value in items:
        yield from leaves(value, (*place, key))


def forged(document: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    out = copy.deepcopy(document)
    part = out["content"]
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    return out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("efficiency", value) for value in (5.0, "nan", 1.0)],
        *[("log_det", value) for value in ("nan", 12.0)],
        *[("rank", 3), ("bound", -5.0), ("status", "BOUND"), ("status", "PROVED")],
    ],
)
def test_false_claims_of_runs_without_a_list_of_candidates_are_refused(
    tmp_path: Path, name: str, value: Any
) -> None:
    runs = od.exact(od.MainEffects({"a": [0, 1, 2], "b": ["x", "y", "z"]}, 12, degree=2), tries=1)
    document = saved(tmp_path / "a.json", runs)
    assert od.load(tmp_path / "a.json").efficiency == runs.efficiency
    with pytest.raises(od.InputError, match=name.replace("_", " ")):
        od.load(written(tmp_path / "b.json", forged(document, ("runs", name), value)))


def test_content_that_was_not_saved_raises_an_input_error(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(3, 2, 2))
    document = saved(tmp_path / "a.json", od.solve(od.DesignProblem.disjoint(x, active=ACTIVE)))
    refused = 0
    for place in leaves(document["content"]):
        for value in OTHERS:
            path = written(tmp_path / "b.json", forged(document, place, value))
            try:
                od.load(path)
            except od.InputError:
                refused += 1
    assert refused > 300


@pytest.mark.parametrize("labels", ["groups", "parameter_blocks"])
def test_labels_outside_of_the_grid_are_refused(tmp_path: Path, labels: str) -> None:
    """They are indices, which kernels do not check."""
    x = np.random.default_rng(0).normal(size=(3, 2, 2))
    document = saved(tmp_path / "a.json", od.solve(od.DesignProblem.disjoint(x, active=ACTIVE)))
    for value in (-1, 1, 3, 10**6):
        path = written(tmp_path / "b.json", forged(document, ("problem", labels, "entries", 0), value))
        with pytest.raises(od.InputError, match="those of clients and arms"):
            od.load(path)


def test_rank_and_status_of_runs_are_those_of_the_counts(tmp_path: Path) -> None:
    problem = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=3)
    runs = od.Runs.given(problem, [1, 1, 1], best=od.solve(problem))
    document = saved(tmp_path / "a.json", runs)
    for place, value, message in (
        (("runs", "rank"), 1, "the rank of the runs"),
        (("runs", "status"), "BOUND", "the status of the runs"),
    ):
        with pytest.raises(od.InputError, match=message):
            od.load(written(tmp_path / "b.json", forged(document, place, value)))
    best = od.exact(od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=4))
    assert best.status is od.RunStatus.BOUND
    od.save(best, tmp_path / "c.json")
    assert od.load(tmp_path / "c.json").status is od.RunStatus.BOUND
