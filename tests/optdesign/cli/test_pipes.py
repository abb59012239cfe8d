"""Commands whose output pipe is closed, or whose output cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bandits.cli import commands as bandits_commands
from optdesign.cli import commands as cli


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.csv").write_text("x,y\n1,4\n2,1\n4,2\n")


def printed_to(path: int, main: Callable[[], None], *words: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the exit code of a command that prints to an open file."""
    with monkeypatch.context() as patch, open(path, "w") as output:
        patch.setattr(sys, "argv", ["command", *words])
        patch.setattr(sys, "stdout", output)
        with pytest.raises(SystemExit) as ended:
            main()
    return ended.value.code


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (cli.main, ["solve", "f.csv"]),
        (cli.main, ["solve", "f.csv", "--json"]),
        (cli.main, ["solve", "f.csv", "--runs", "4", "--out", "runs.csv"]),
        (bandits_commands.main, ["example"]),
    ],
)
def test_a_closed_pipe_ends_a_command_quietly(
    main: Callable[[], None], words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert printed_to(writer, main, *words, monkeypatch=monkeypatch) == 141
    assert capsys.readouterr().err == ""
    assert "--runs" not in words or Path("runs.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("module", ["optdesign", "bandits"])
def test_a_closed_pipe_ends_a_process_quietly(module: str) -> None:
    words = ["solve", "f.csv"] if module == "optdesign" else ["example"]
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("main", "words"), [(cli.main, ["solve", "f.csv"]), (bandits_commands.main, ["example"])]
)
def test_a_full_disk_is_one_message(
    main: Callable[[], None], words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    assert printed_to(full, main, *words, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr().err
    assert said == f"{main.__module__.split('.')[0]}: No space left on device, in writing the output.\n"
