"""The commands and the code of the README, factors.md and blocking.md run and print what the pages show."""

import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": 3, "docs/factors.md": 7, "docs/blocking.md": 3}
"""Pages, and how many printouts each shows."""
FILES = {
    "README.md": ["design.csv", "design.png", "list.csv"],
    "docs/factors.md": ["runs.csv", "runs.png"],
    "docs/blocking.md": ["runs.csv"],
}
"""What the commands of a page write."""
SETUP = re.compile(r"^(make|python -m pip) ", flags=re.M)
VARIES = re.compile(r"^ *(gap|efficiency|method|optimal|verification)|^ ")
"""Lines whose numbers depend on the solver: only their first word is compared."""


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / page).read_text(), flags=re.M | re.S)


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


@pytest.fixture
def shell(tmp_path):
    """A function that runs commands where optdesign is this one."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    command = bin_folder / "optdesign"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m optdesign "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
    }

    def run(code, folder):
        done = subprocess.run(
            ["sh", "-e", "-c", code], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_and_print_what_they_show(page, shell, tmp_path, monkeypatch):
    folders = {language: tmp_path / language for language in ("python", "sh")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.chdir(folders["python"])
    names: dict[str, object] = {}
    printed, compared = "", 0
    for language, code in blocks(page):
        if language == "python":
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile(code, page, "exec"), names)
            printed = out.getvalue()
        elif language == "sh" and not SETUP.search(code):
            printed = shell(code, folders["sh"])
        elif language == "text":
            shown, actual = (
                [line.rstrip() for line in text.splitlines() if line.strip()] for text in (code, printed)
            )
            assert len(shown) == len(actual), printed
            for left, right in zip(shown, actual, strict=True):
                assert same(left, right), f"{page}: {left}\nprinted: {right}"
            compared += 1
    assert compared == PAGES[page]
    for name in FILES[page]:
        assert (folders["sh"] / name).stat().st_size > 0


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), flags=re.M)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M)
