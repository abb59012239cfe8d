"""Bad input and outputs that cannot be written: exit code 2 and one message."""

import sys

import pytest
from command_line import refused, run, write_example

from optdesign.cli import candidate_file as files
from optdesign.cli import commands as cli


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_example(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv"], ["No such file", "none.csv"]),
        (["data.txt"], ["must end in"]),
        (["data.csv", "--group", "sites"], ["did you mean 'site'?"]),
        (["data.csv", "--group", "place"], ["'place'", "'site', 'arm', 'x', 'y'"]),
        (["data.csv", "--tol", "-1"], ["--tol must be positive"]),
        (["data.csv", "--max-iter", "0"], ["--max-iter must be"]),
        (["data.csv", "--time-limit", "0"], ["--time-limit must be"]),
        (
            ["data.csv", "--group", "site", "--budget", "all"],
            ["--budget must be a number, labels with numbers", "or a file with two columns", "'all'"],
        ),
        (["data.csv", "--budget", "-3"], ["--budget must be positive", "-3"]),
        (["data.csv", "--budget", "budgets.csv"], ["--budget budgets.csv needs groups", "--group", "'site'"]),
        (["data.csv", "--method", "magic"], ["--method must be one of", "'magic'"]),
        (["data.csv", "--budget", "budgets.csv", "--group", "arm"], ["--budget", "'a', 'b'"]),
        (["data.csv", "--out", "design.xls"], ["--out must end in", "design.xls"]),
        (["data.csv", "--out", "missing/d.csv"], ["--out", "does not exist"]),
        (["data.csv", "--out", "folder.csv"], ["--out", "is a directory"]),
        (["data.csv", "--plot", "d.gif"], ["--plot must end in"]),
        (["data.csv", "--plot", "missing/d.png"], ["--plot", "does not exist"]),
        (["data.csv", "--features", "site"], ["line 2, column 'site' of data.csv"]),
        (["zero.csv"], ["non-zero"]),
        (["folder.csv"], ["directory"]),
    ],
)
def test_bad_input_is_exit_code_2_with_one_message(folder, arguments, words):
    (folder / "folder.csv").mkdir()
    (folder / "zero.csv").write_text("x\n0\n0\n")
    message = refused("solve", *arguments)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("module", "option", "extra"),
    [("pyarrow", "--out=d.parquet", "'.[parquet]'"), ("matplotlib", "--plot=d.png", "'.[plot]'")],
)
def test_a_missing_extra_is_named_before_the_work(monkeypatch, module, option, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(cli, "solve", None)
    assert extra in refused("solve", "data.csv", option)


def test_a_failing_write_leaves_nothing_behind(folder, monkeypatch):
    def full(path, _):
        path.write_text("half of the d")
        raise OSError(28, "No space left on device")

    (folder / "d.csv").write_text("old")
    before = sorted(folder.iterdir())
    monkeypatch.setattr(files, "write_table", full)
    options = ["--group=site", "--parameter-block=arm", "--out=d.csv"]
    assert "No space left" in refused("solve", "data.csv", *options, "--force")
    assert sorted(folder.iterdir()) == before
    assert (folder / "d.csv").read_text() == "old"


def test_files_that_exist_are_overwritten_only_by_force(folder):
    options = ["--group", "site", "--parameter-block", "arm"]
    (folder / "old.csv").write_text("old")
    (folder / "old.png").write_text("old")
    for option, name in (("--out", "old.csv"), ("--plot", "old.png")):
        message = refused("solve", "data.csv", *options, option, name)
        assert f"{option} must be a new file; {name!r} exists. Add --force to overwrite it." in message
        assert (folder / name).read_text() == "old"
    assert run("solve", "data.csv", *options, "--out", "old.csv", "--force").exit_code == 0
    assert "weight" in (folder / "old.csv").read_text()


def test_a_directory_that_is_read_only_is_refused_before_the_work(folder, monkeypatch):
    (folder / "locked").mkdir()
    monkeypatch.setattr("os.access", lambda path, _: "locked" not in str(path))
    message = refused(
        "solve", "data.csv", "--group", "site", "--parameter-block", "arm", "--out", "locked/d.csv"
    )
    assert "lies in a directory that you may not write to" in message


@pytest.mark.parametrize("content", [b"", b"not a table", b"PAR1PAR1"])
def test_parquet_files_that_are_none(folder, content):
    (folder / "no.parquet").write_bytes(content)
    message = refused("solve", "no.parquet")
    assert "no.parquet must be a Parquet file with one candidate a row; it is none" in message
    assert "name it .csv" in message


@pytest.mark.parametrize("name", ["weight", "variance"])
def test_a_column_of_the_user_is_never_taken_for_ours(folder, name):
    text = f"x,{name}\n1,70\n2,\n"
    (folder / "people.csv").write_text(text)
    for options in ([], ["--features", "x"], ["--features", f"x,{name}"], ["--group", name]):
        message = refused("solve", "people.csv", *options, "--out", "d.csv")
        assert f"rename it, say to 'body_{name}'" in message
    assert f"--features must not be '{name}'" in refused(
        "solve", "people.csv", "--features", f"x,{name}", "--again"
    )
    assert (folder / "people.csv").read_text() == text
    assert not (folder / "d.csv").exists()


@pytest.mark.parametrize("path", ["data.csv", "./data.csv", "link.csv", "twin.csv", "budgets.csv"])
def test_inputs_are_not_overwritten(folder, path):
    (folder / "link.csv").symlink_to("data.csv")
    (folder / "twin.csv").hardlink_to(folder / "data.csv")
    before = (folder / "data.csv").read_text()
    options = ["--group", "site", "--parameter-block", "arm", "--budget", "budgets.csv"]
    assert "--out must not be a file that is read" in refused("solve", "data.csv", *options, "--out", path)
    assert "--plot must not be a file that is read" in refused("solve", "data.csv", *options, "--plot", path)
    assert (folder / "data.csv").read_text() == before


@pytest.mark.parametrize("command", ["certify", "verify"])
@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("x\n1\n", [], ["'weight'", "'x'"]),
        ("x,weight,group\n1,1,a\n2,0,b\n", [], ["'b'", "sum to 0"]),
        ("x,weight\n1,-1\n2,2\n", [], ["negative"]),
        ("x,weight\n1,1\n", ["--tol", "0"], ["--tol must be positive"]),
    ],
)
def test_bad_designs_are_refused(folder, command, text, options, words):
    (folder / "d.csv").write_text(text)
    message = refused(command, "d.csv", *options)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--solver", "magic"], ["--solver must be one of", "CLARABEL", "'MAGIC'"]),
        (["--time-limit", "0"], ["--time-limit must be positive seconds; got 0"]),
    ],
)
def test_verify_refuses_bad_options(folder, options, words):
    (folder / "d.csv").write_text("x,weight\n1,1\n")
    message = refused("verify", "d.csv", *options)
    for word in words:
        assert word in message
