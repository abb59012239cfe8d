"""Roles of the columns of a file: labels, features, and names of rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from optdesign.cli import candidate_file as files
from optdesign.cli import commands as cli
from optdesign.cli import roles

GRID = [(a, b, c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (1, 2)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "f.csv") -> Path:
    Path(name).write_text(text)
    return Path(name)


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def report(*arguments: Any) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def blocked(heading: str = "a,b,parameter_block") -> Path:
    return write(heading + "\n" + "".join(f"{a},{b},{c}.5\n" for a, b, c in GRID))


# ------------------------------------------------------------------------------- columns called by a default


def test_a_column_that_the_model_names_is_no_label() -> None:
    blocked()
    name = "parameter_block"
    f = files.read(Path("f.csv"), model=f"~ a + b + {name}")
    assert (f.block, f.problem().n_parameter_blocks, f.problem().rank) == (None, 1, 4)
    assert f.features == ("Intercept", "a", "b", name)  # a number, although labels are text
    assert f.notes == (
        "column 'parameter_block' is named by the model or the features, so it does not label parameter "
        "blocks; if it does both, add --parameter-block parameter_block.",
    )
    found = report("solve", "f.csv", "--model", f"~ a + b + {name}", "--runs", 6)
    assert (found["rank"], found["notes"]) == (4, list(f.notes))
    both = files.read(Path("f.csv"), model=f"~ a + b + {name}", block=name)
    assert (both.block, both.problem().n_parameter_blocks, both.notes) == (name, 2, ())
    for model in (f"~ a + log({name})", f"~ a + `{name}`", f"~ C({name}):a"):
        assert files.read(Path("f.csv"), model=model).block is None


@pytest.mark.parametrize("name", ["group", "parameter_block"])
def test_a_column_that_the_features_name_is_no_label(name: str) -> None:
    blocked(f"a,b,{name}")
    f = files.read(Path("f.csv"), features=["a", name])
    assert (f.group, f.block, f.features) == (None, None, ("a", name))
    assert f.notes[0].startswith(f"column '{name}' is named by the model or the features")


@pytest.mark.parametrize("name", ["group", "parameter_block"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_the_default_can_be_switched_off(name: str, suffix: str) -> None:
    frame = pd.read_csv(blocked(f"a,b,{name}"))
    if suffix == ".parquet":
        frame.to_parquet("f.parquet")
    elif suffix == ".npz":
        np.savez("f.npz", candidates=frame[["a", "b"]].to_numpy(), **{f"{name}s": frame[name].to_numpy()})
    on = files.read(Path(f"f{suffix}"))
    assert {"group": on.group, "parameter_block": on.block}[name] == name
    off = files.read(Path(f"f{suffix}"), **{name.removeprefix("parameter_"): False})
    option = name.replace("_", "-")
    assert (off.group, off.block) == (None, None)
    assert off.features == (("x0", "x1") if suffix == ".npz" else ("a", "b", name))
    assert report("solve", f"f{suffix}", f"--no-{option}")["rank"] == len(off.features)
    assert run("solve", f"f{suffix}", "--out", "d.csv", f"--no-{option}").exit_code == 0
    for command in ("certify", "verify"):
        assert run(command, "d.csv", f"--no-{option}", "--features", ",".join(off.features)).exit_code == 0
    refused = run("solve", f"f{suffix}", f"--no-{option}", f"--{option}", name)
    assert refused.exit_code == 2
    assert f"--{option} and --no-{option} must not both be given" in refused.stderr


def test_an_error_names_the_columns_that_are_labels_by_default() -> None:
    blocked()
    refused = run("solve", "f.csv", "--model", "~ a * b", "--runs", 6)
    assert refused.exit_code == 2
    assert "Column 'parameter_block' was taken as the label of parameter blocks because" in refused.stderr
    assert "--no-parameter-block ignores it" in refused.stderr
    assert "8 estimable parameters (4 in each of the 2 parameter blocks" in refused.stderr
    assert run("solve", "f.csv", "--model", "~ a * b", "--runs", 6, "--no-parameter-block").exit_code == 0
    by_name = run("solve", "f.csv", "--model", "~ a", "--runs", 1, "--parameter-block", "parameter_block")
    assert by_name.exit_code == 2
    assert "was taken" not in by_name.stderr


@pytest.mark.parametrize("name", ["block", "Block", "blocks"])
def test_a_column_called_block_is_no_label_and_a_note_explains_it(name: str) -> None:
    blocked(f"a,b,{name}")
    for options in ({}, {"model": "~ a * b"}):
        f = files.read(Path("f.csv"), **options)
        assert (f.block, f.problem().n_parameter_blocks) == (None, 1)
        assert f.notes[-1] == (
            f"column '{name}' is not a label by its name. If it is a blocking factor, make it a term of the "
            f"model, C({name}), and add --group {name} if the number of runs in each block is fixed. If "
            f"every label has parameters of its own, add --parameter-block {name}."
        )
    chosen = {"model": f"~ a + C({name})"}, {"features": ["a", name]}, {"block": name}, {"group": name}
    for options in chosen:
        assert files.read(Path("f.csv"), **options).notes == ()


def test_an_array_called_blocks_is_refused() -> None:
    np.savez("f.npz", candidates=np.eye(2), blocks=[0, 1])
    with pytest.raises(ValueError, match=r"must not be called 'blocks'.*blocking factor.*'parameter_blocks'"):
        files.read(Path("f.npz"))
    assert files.read(Path("f.npz"), block="blocks").problem().n_parameter_blocks == 2


@pytest.mark.parametrize("option", ["--block", "--block=c", "--no-block"])
@pytest.mark.parametrize("command", ["solve", "certify", "verify"])
def test_the_former_option_explains_both_meanings(command: str, option: str) -> None:
    refused = run(command, "f.csv", option, "c")
    assert (refused.exit_code, refused.stdout) == (2, "")
    name = option.partition("=")[0]
    assert refused.stderr == (
        f"optdesign: {name} must not be given: the word has two meanings. A parameter block has a parameter "
        "vector of its own, as every product may have. A blocking factor, such as a day, only shifts the "
        "response: make it a term of the model, and a group if the number of runs on every day is fixed. For "
        f"parameter blocks, the option is {name.replace('block', 'parameter-block')}; for a blocking factor, "
        "use --model and --group.\n"
    )


def test_the_report_names_the_parameter_blocks() -> None:
    blocked("a,b,product")
    printed = run("solve", "f.csv", "--model", "~ a + b", "--parameter-block", "product").stdout
    assert "\nparameter blocks  2, one per product, 3 parameters each\n" in printed


def test_a_factor_that_is_also_a_group_stays_a_number() -> None:
    write("conc,x\n" + "".join(f"{c},{x}\n" for c in (0.1, 0.25) for x in (-1, 1)))
    f = files.read(Path("f.csv"), model="~ conc + x", group="conc")
    assert (f.features, f.groups.names.tolist()) == (("Intercept", "conc", "x"), [0.1, 0.25])


# -------------------------------------------------------------------------------------- names of the rows


@pytest.mark.parametrize(
    "text",
    [
        '"","x","y"\n"1",1,4\n"2",2,1\n"3",4,2\n',  # write.csv of R
        '"","x","y"\n"plot 1",1,4\n"plot 2",2,1\n"3",4,2\n',
        ",x,y\n0,1,4\n1,2,1\n2,4,2\n",  # to_csv of pandas
        "Unnamed: 0,x,y\n7,1,4\n8,2,1\n9,4,2\n",
        "__index_level_0__,x,y\n7,1,4\n8,2,1\n9,4,2\n",
        "index,x,y\n0,1,4\n1,2,1\n2,4,2\n",
        "RowNames,x,y\n1,1,4\n2,2,1\n3,4,2\n",
        "x,y,\n1,4,\n2,1,\n4,2,  \n",  # a comma too many in every line
    ],
)
def test_a_column_that_names_rows_is_no_feature(text: str, folder: Path) -> None:
    f = files.read(write(text))
    assert f.features == ("x", "y")
    np.testing.assert_array_equal(f.candidates, [[1, 4], [2, 1], [4, 2]])
    rows = [name for name in f.columns if name not in ("x", "y")]
    assert len(rows) == len(f.notes) == (not text.startswith("x"))
    assert all("names the rows and is not used" in note for note in f.notes)
    made = files.read(Path("f.csv"), model="~ .")
    assert (made.features, made.ignored) == (("Intercept", "x", "y"), ())
    assert made.notes == f.notes
    # The column is written back, and read again in the same way.
    files.write(folder / "d.csv", f, np.ones(1), np.ones(3), np.ones(3))
    again = files.read(folder / "d.csv")
    assert (again.features, list(again.columns)) == (f.features, [*f.columns, "weight", "variance"])


def test_a_column_that_names_rows_may_be_chosen() -> None:
    write("Unnamed: 0,x\n3,1\n1,2\n1,4\n")
    assert files.read(Path("f.csv"), features=["Unnamed: 0", "x"]).features == ("Unnamed: 0", "x")
    assert files.read(Path("f.csv"), group="Unnamed: 0").groups.names.tolist() == [1, 3]
    f = files.read(Path("f.csv"), model="~ `Unnamed: 0` + x", where="`Unnamed: 0` > 0")
    assert (f.features, f.notes) == (("Intercept", "Unnamed: 0", "x"), ())


def test_the_index_that_pandas_stores_is_no_feature() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=pd.Index([3, 1, 2], name="plot"))
    frame.to_parquet("f.parquet")
    f = files.read(Path("f.parquet"))
    assert f.features == ("x",)
    assert f.notes == ("column 'plot' names the rows and is not used; if it is data, rename it.",)
    assert files.read(Path("f.parquet"), group="plot").groups.names.tolist() == [1, 2, 3]
    assert files.read(Path("f.parquet"), model="~ plot + x").features == ("Intercept", "plot", "x")
    frame.reset_index().to_parquet("f.parquet")
    assert files.read(Path("f.parquet")).features == ("plot", "x")


def test_an_index_that_does_not_count_is_a_feature() -> None:
    assert files.read(write("index,x\n1.33,1\n1.35,2\n1.5,4\n")).features == ("index", "x")
    assert files.read(write("index,x\n3,1\n4,2\n5,4\n")).features == ("index", "x")


def test_labels_that_may_be_missing_are_noted() -> None:
    text = "x,site\n1,a\n2,NA\n3,b\n"
    note = (
        "'NA' in column 'site' is a label like others; if it stands for a missing label, fill it in or drop"
    )
    assert files.read(write(text), group="site").notes[0].startswith(note)
    assert files.read(write(text), group="site", model="~ x").notes[0].startswith(note)
    assert files.read(write(text), model="~ x").notes == ()


def test_a_column_without_a_name_must_be_first_or_empty() -> None:
    for text in ("x,,y\n1,2,3\n", "x,y,\n1,2,\n3,4,5\n"):
        with pytest.raises(ValueError, match=r"f.csv must name every column; column \d has no name. Name it"):
            files.read(write(text))


def test_blank_labels_of_a_file_are_refused() -> None:
    with pytest.raises(ValueError, match="every row must have a label; line 3, column 'site'"):
        files.read(write('x,site\n1,a\n2," "\n'), group="site")


# --------------------------------------------------------------------------------- small and single numbers


def test_small_integers_in_a_file_do_not_wrap_around() -> None:
    levels = np.array([55, 200], dtype=np.uint8)
    a, b = (column.reshape(-1) for column in np.meshgrid(levels, levels))
    pd.DataFrame({"a": a, "b": b}).to_parquet("f.parquet")
    found = report("solve", "f.parquet", "--model", "~ a", "--where", "a + b <= 255", "--out", "d.csv")
    assert found["candidates"] == 3
    weights = pd.read_csv("d.csv")
    assert (weights.a + weights.b <= 255).all()


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
def test_single_precision_in_a_file_has_its_tolerance(suffix: str) -> None:
    x = np.random.default_rng(0).random((30, 2))
    both = np.column_stack([x, x @ [0.3, 0.7]]).astype(np.float32)
    if suffix == ".npz":
        np.savez("f.npz", candidates=both)
    else:
        pd.DataFrame(both, columns=["x0", "x1", "x2"]).to_parquet("f.parquet")
        made = files.read(Path("f.parquet"), model="~ 0 + x0 + x1 + x2")
        assert made.problem().rank == 2
    assert files.read(Path(f"f{suffix}")).problem().rank == 2


def test_chosen_labels() -> None:
    assert roles.chosen(None, None, []) == ("group", "parameter_block")
    assert roles.chosen(None, "b", ["group", "b"]) == (None, "b")
    assert roles.chosen(False, False, []) == (None, None)


def test_the_option_is_parameter_block(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("kind,x,y\na,1,0\na,0,1\nb,1,1\nb,1,2\n")
    assert report("solve", path, "--parameter-block", "kind")["rank"] == 4
