"""Everything the README tells its reader to type works, and prints what the README says it prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text(), flags=re.M | re.S)
SETUP = re.compile(r"^(make|python -m pip) ", flags=re.M)
VARIES = re.compile(r"^(gap|efficiency|method|optimal|verification| )")
"""Lines whose numbers depend on the solver: only their first word is compared."""


def fields(line):
    """Words as they are, numbers as numbers; gaps, written with an exponent, differ between machines."""
    line = re.sub(r"\d\.\d+e-\d+", "GAP", line)
    return [pytest.approx(float(f), abs=1e-3) if re.fullmatch(r"-?\d+\.\d+", f) else f for f in line.split()]


def same(shown, printed):
    if VARIES.match(shown) and not re.match(r"^ +\d", shown):
        return shown.split()[0] == printed.split()[0]
    printed = re.sub(r"\d\.\d+e-\d+", "GAP", printed)
    values = [float(f) if re.fullmatch(r"-?\d+\.\d+", f) else f for f in printed.split()]
    return fields(shown) == values


def test_python_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = [code for language, code in BLOCKS if language == "python"]
    assert blocks
    for code in blocks:
        exec(compile(code, "README.md", "exec"), {})
    assert "converged" in capsys.readouterr().out


def test_shell_blocks_run_and_print_what_they_show(tmp_path):
    bin_folder, work = tmp_path / "bin", tmp_path / "work"
    bin_folder.mkdir()
    work.mkdir()
    command = bin_folder / "optdesign"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m optdesign "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
    }
    printed, compared = "", 0
    for language, code in BLOCKS:
        if language == "sh" and not SETUP.search(code):
            done = subprocess.run(
                ["sh", "-e", "-c", code], cwd=work, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        elif language == "text":
            shown, actual = (
                [line.rstrip() for line in text.splitlines() if line.strip()] for text in (code, printed)
            )
            assert len(shown) == len(actual), printed
            for left, right in zip(shown, actual, strict=True):
                assert same(left, right), f"README: {left}\nprinted: {right}"
            compared += 1
    assert compared == 2
    assert (work / "design.csv").exists()
    assert (work / "design.png").exists()


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), flags=re.M)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M)
