"""Problems and designs come back from a file to the last bit, or not at all."""

import hashlib
import json
import pathlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import KINDS, problems, random_problem, weighted

import optdesign as od
from optdesign.saving import content, files

FAST = settings(max_examples=30, deadline=None)


def assert_same_array(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes()


def assert_same_problem(a: od.DesignProblem, b: od.DesignProblem) -> None:
    for name in ("candidates", "groups", "parameter_blocks", "budgets", "peaks", "ranks"):
        assert_same_array(getattr(a, name), getattr(b, name))
    for name in ("n_parameter_blocks", "names", "group_names", "parameter_block_names"):
        assert getattr(a, name) == getattr(b, name)
    for one, other in zip(a.span[:4], b.span[:4], strict=True):
        assert_same_array(one, other)
    assert a.span.rtol == b.span.rtol
    assert (a.settings is None) == (b.settings is None)
    if a.settings is not None:
        assert list(a.settings) == list(b.settings)
        assert a.settings.levels == b.settings.levels
        for name, column in a.settings.items():
            assert_same_array(column, b.settings[name])


def assert_same_result(a: od.DesignResult, b: od.DesignResult) -> None:
    assert_same_problem(a.problem, b.problem)
    assert_same_array(a.weights, b.weights)
    assert_same_array(a.variances, b.variances)
    for name in content.SCALARS:
        assert getattr(a.certificate, name) == getattr(b.certificate, name)
    for name in ("status", "method", "iterations", "seconds", "compile_seconds"):
        assert getattr(a, name) == getattr(b, name)
    for one, other in zip(a.history, b.history, strict=True):
        assert_same_array(one, other)
    assert not b.weights.flags.writeable


@given(problems())
@FAST
def test_problems_come_back(tmp_path_factory: pytest.TempPathFactory, p: od.DesignProblem) -> None:
    path = tmp_path_factory.mktemp("saved") / "p.json"
    od.save(p, path)
    assert_same_problem(p, od.load(path))


@given(weighted(), st.sampled_from(["bca", "newton", "auto"]))
@FAST
def test_designs_come_back_and_their_certificate_is_the_one_computed_again(
    tmp_path_factory: pytest.TempPathFactory, case: tuple, method: str
) -> None:
    p, start = case
    r = od.solve(p, start=start, method=method, max_iter=3)
    path = tmp_path_factory.mktemp("saved") / "r.json"
    od.save(r, path)
    back = od.load(path)
    assert_same_result(r, back)
    again = od.certify(back.problem, back.weights)
    for name in content.SCALARS:
        assert getattr(again, name) == getattr(back.certificate, name)


@pytest.mark.parametrize("kind", KINDS)
def test_grids_and_single_precision_come_back(kind: str, tmp_path) -> None:
    p = random_problem(3, kind)
    r = od.solve(p)
    od.save(r, tmp_path / "r.json")
    back = od.load(tmp_path / "r.json")
    assert_same_result(r, back)
    if kind in ("disjoint", "shared"):
        assert_same_array(r.weights_matrix(), back.weights_matrix())
    single = od.DesignProblem(p.candidates.astype(np.float32), p.groups, p.parameter_blocks, p.budgets)
    od.save(single, tmp_path / "single.json")
    assert_same_problem(single, od.load(tmp_path / "single.json"))


def test_names_settings_and_odd_numbers_come_back(tmp_path) -> None:
    frame = pd.DataFrame(
        {
            "x": [0.1, 1e-300, -0.0, np.inf],
            "n": np.array([1, 2, 3, 4], np.uint8),
            "f": np.array([0.1, 0.2, 0.3, 0.4], np.float32),
            "é ü`<": ["a", None, "ß", '"\n'],
            "flag": [True, False, True, True],
            "day": pd.date_range("2020", periods=4),
            "g": pd.Categorical(["v", "u", "v", "u"], categories=["v", "u", "t"]),
        }
    )
    p = od.DesignProblem(
        [[0.1, 0], [1 / 3, 1], [5e-60, 2.0], [-0.0, 1.0]],
        groups=frame["g"],
        parameter_blocks=[0, 1, 1, 0],
        parameter_block_names=[1.5, np.int64(7)],
        names=["a", "b"],
        settings=frame,
    )
    r = od.solve(p)
    od.save(r, tmp_path / "r.json")
    assert_same_result(r, od.load(tmp_path / "r.json"))
    q = od.DesignProblem([[1.0], [2.0]], parameter_blocks=[0, 1], parameter_block_names=[(1, 2), "b"])
    with pytest.raises(
        ValueError, match=r"parameter_block_names must be text or numbers to be saved; got \(1, 2\)"
    ):
        od.save(q, tmp_path / "q.json")


def test_a_design_that_loses_rank_comes_back(tmp_path) -> None:
    p = od.DesignProblem([[1.0, 0.0], [0.0, 1.0]])
    nothing = np.empty(0)
    r = od.DesignResult(
        problem=p,
        weights=np.array([1.0, 0.0]),
        certificate=od.certify(p, [1.0, 0.0]),
        status=od.Status.GIVEN,
        method="by hand",
        iterations=0,
        seconds=0.0,
        history=od.History(nothing, nothing, nothing),
    )
    assert r.gap == np.inf
    od.save(r, tmp_path / "r.json")
    assert_same_result(r, od.load(tmp_path / "r.json"))


def test_files_without_seconds_of_first_use_have_none(tmp_path) -> None:
    """Releases that did not save them did not count them either."""
    path = tmp_path / "r.json"
    r = replace(od.solve(od.DesignProblem(np.eye(3))), seconds=3.0, compile_seconds=2.0)
    od.save(r, path)
    assert od.load(path).compile_seconds == 2.0
    document = json.loads(path.read_text())
    del document["content"]["result"]["compile_seconds"]
    document["sha256"] = files.checksum(json.dumps(document["content"], ensure_ascii=False))
    path.write_text(json.dumps(document))
    assert od.load(path).compile_seconds == 0.0
    assert od.load(path).seconds == 3.0


def test_files_that_are_not_ours_or_not_whole_are_refused(tmp_path) -> None:
    path = tmp_path / "r.json"
    r = od.solve(od.DesignProblem(np.eye(3)))
    od.save(r, path)
    text = path.read_text()
    document = json.loads(text)

    def refused(content: str, message: str) -> None:
        path.write_text(content)
        with pytest.raises(ValueError, match=message):
            od.load(path)

    refused(text[:-20], "is no JSON .* cut short")
    refused("\0", "is no JSON")
    refused("[1, 2]", "it has another format")
    refused('{"format": "other"}', "it has another format")
    refused(json.dumps(document | {"version": 1}), "must be of version 2; it is of 1")
    refused(text.replace("CONVERGED", "STALLED"), "its checksum differs")
    document["content"]["result"]["weights"]["entries"] = [0.5, 0.25, 0.25]
    content = json.dumps(document["content"], ensure_ascii=False)
    refused(
        json.dumps(document | {"sha256": hashlib.sha256(content.encode()).hexdigest()}),
        "must be that of its weights; gap is .* in the file and .* for the weights",
    )
    with pytest.raises(ValueError, match=r"path must end in \.json"):
        od.save(r, tmp_path / "r.txt")
    with pytest.raises(ValueError, match="path must be a file in an existing directory"):
        od.save(r, tmp_path / "none" / "r.json")
    with pytest.raises(TypeError, match="design must be a DesignResult, Runs or a DesignProblem; got list"):
        od.save([1], path)
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gap", 0.2),
        ("relative_gap", 0.2),
        ("efficiency", 1.0),
        ("g_value", 3.0),
        ("log_det", 0.0),
        ("rank", 2),
        ("rounding", 0.5),
        ("efficiency", "nan"),
    ],
)
def test_every_false_number_of_a_certificate_is_refused(field: str, value: object, tmp_path) -> None:
    """The checksum is right, and one number is not that of the weights."""
    path = tmp_path / "r.json"
    od.save(od.DesignResult.given(od.DesignProblem(np.eye(3)), [0.4, 0.3, 0.3]), path)
    forge(path, lambda result: result["certificate"].update({field: value}))
    with pytest.raises(ValueError, match=f"must be that of its weights; {field} is .* in the file and"):
        od.load(path)


def test_false_variances_are_refused(tmp_path) -> None:
    path = tmp_path / "r.json"
    for entries in ([2.5, 3.0, 3.0], [2.5, 2.0], ["inf", 3.0, 3.0]):
        od.save(od.DesignResult.given(od.DesignProblem(np.eye(3)), [0.4, 0.3, 0.3]), path)
        array = {"dtype": "<f8", "shape": [len(entries)], "entries": entries}
        forge(path, lambda result, array=array: result.update(variances=array))
        with pytest.raises(ValueError, match="variances in the file are not those of the weights"):
            od.load(path)


def test_a_status_that_the_gap_contradicts_is_refused(tmp_path) -> None:
    path = tmp_path / "r.json"
    x = np.random.default_rng(0).normal(size=(40, 3))
    od.save(od.solve(od.DesignProblem(x), tol=1e-12, max_iter=1), path)
    assert od.load(path).tol == 1e-12
    forge(path, lambda result: result.update(status="CONVERGED"))
    with pytest.raises(ValueError, match="it says converged at tol 1e-12, and the relative gap is"):
        od.load(path)


def forge(path, change) -> None:
    """Change the result in a file and make its checksum right again."""
    document = json.loads(path.read_text())
    change(document["content"]["result"])
    content = json.dumps(document["content"], allow_nan=False, ensure_ascii=False)
    path.write_text(json.dumps(document | {"sha256": hashlib.sha256(content.encode()).hexdigest()}))


@pytest.mark.parametrize(
    "labels", [("a\ud800", "b"), ("\ud83d\ude00", "\U0001f600"), ("inf", "Zürich\r\n"), ("\x00", "a\u2028")]
)
def test_any_text_comes_back(labels: tuple[str, str], tmp_path) -> None:
    p = od.DesignProblem(np.eye(2), groups=list(labels), names=labels, settings={labels[0]: labels})
    od.save(p, tmp_path / "p.json")
    assert_same_problem(p, od.load(tmp_path / "p.json"))
    result = od.solve(p)
    od.save(result, tmp_path / "r.json")
    assert_same_result(result, od.load(tmp_path / "r.json"))


def test_infinite_labels_and_levels_come_back(tmp_path) -> None:
    columns = {
        "g": [np.inf, -np.inf, 1.5],
        "h": pd.Categorical([np.inf, 1.0, 2.0]),
        "i": ["inf", "1", "-inf"],
    }
    p = od.DesignProblem(np.eye(3), groups="g", parameter_blocks="i", settings=columns)
    assert p.group_names == (-np.inf, 1.5, np.inf)
    od.save(p, tmp_path / "p.json")
    again = od.load(tmp_path / "p.json")
    assert_same_problem(p, again)
    assert again.parameter_block_names == ("-inf", "1", "inf")


def test_a_file_changed_to_contain_nan_has_another_checksum(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "problem.json"
    od.save(od.DesignProblem([[1.5, 0.0], [0.0, 1.0]]), path)
    path.write_text(path.read_text().replace("1.5", "NaN"))
    with pytest.raises(ValueError, match=r"must be as it was saved; its checksum differs"):
        od.load(path)


def test_the_bound_of_proved_runs_comes_back(tmp_path: pathlib.Path) -> None:
    runs = od.exact(od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=3), prove=True)
    assert runs.bound < np.inf
    od.save(runs, tmp_path / "runs.json")
    again = od.load(tmp_path / "runs.json")
    assert again.bound == runs.bound
    assert str(again) == str(runs)
    saved = replace(runs, bound=runs.log_det - 1.0)
    od.save(saved, tmp_path / "runs.json")
    with pytest.raises(od.InputError, match=r"the bound of the runs .* must be at least their log det"):
        od.load(tmp_path / "runs.json")
