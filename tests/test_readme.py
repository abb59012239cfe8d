"""The blocks of the README and of the tutorial pages run and print the output that the pages show."""

import io
import os
import re
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from benchmark_scripts import load

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": 3, "docs/quick-start.md": 4, "docs/factors.md": 8, "docs/blocking.md": 3}
"""Pages, and the number of outputs that each shows."""
FILES = {
    "README.md": [],
    "docs/quick-start.md": ["design.csv", "design.png", "list.csv", "list.csv.json"],
    "docs/factors.md": ["runs.csv", "runs.csv.json", "runs.png"],
    "docs/blocking.md": ["runs.csv"],
}
"""Files that the commands of a page write."""
SETUP = re.compile(r"^(make|git|cd|python -m (pip|venv)) ", flags=re.M)
"""Commands that are not run, because they would install packages or start this test."""
NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
ROUND_OFF = 1e-13


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```$", read(page), flags=re.M | re.S)


def lines(text):
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def same_field(shown, printed):
    """Compare two words.

    Numbers with a decimal point agree within one unit of the last digit shown, or 1e-6 of the number. Numbers
    with an exponent or below 1e-3 are gaps, tolerances or round-off: the printed one is at most 10 times the
    number shown, or round-off.
    """
    if shown == printed:
        return True
    if not (re.fullmatch(NUMBER, shown) and re.fullmatch(NUMBER, printed)):
        return False
    left, right = (float(word.replace(",", "")) for word in (shown, printed))
    if "e" in shown or "e" in printed or abs(left) < 1e-3:
        return abs(right) <= max(10 * abs(left), ROUND_OFF)
    decimals = len(shown.partition(".")[2])
    return decimals > 0 and abs(left - right) <= max(1.001 * 10.0**-decimals, 1e-6 * abs(left))


def same(shown, printed):
    """Compare two lines word by word; an ellipsis that ends a line stands for the seconds of this machine.

    Comparisons with cvxpy depend on its gap, which depends on the machine, so their numbers are written with
    exponents.
    """
    if "against cvxpy" in shown:
        shown, printed = (
            re.sub(r"\d\S*", lambda m: f"{float(m[0].rstrip(',')):e}", line) for line in (shown, printed)
        )
    left, right = (re.sub(r"([(),])", r" \1 ", line).split() for line in (shown, printed))
    if left and left[-1] == "...":
        left.pop()
        right = right[: len(left)] if re.fullmatch(r"[\d.]+ m?s.*", " ".join(right[len(left) :])) else []
    return len(left) == len(right) and all(map(same_field, left, right))


@pytest.fixture
def shell(tmp_path):
    """Return a function that runs commands with the command optdesign of this checkout."""
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


def outputs(page, shell, tmp_path, monkeypatch):
    """Run the blocks of a page in order; yield the output shown and the output printed."""
    folders = {language: tmp_path / language for language in ("python", "sh")}
    for folder in folders.values():
        folder.mkdir()
    monkeypatch.chdir(folders["python"])
    names: dict[str, object] = {}
    printed = ""
    for language, code in blocks(page):
        if language == "python":
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile(code, page, "exec"), names)
            printed = out.getvalue()
        elif language == "sh" and not SETUP.search(code):
            printed = shell(code, folders["sh"])
        elif language == "text":
            yield code, printed
            printed = ""
    for name in FILES[page]:
        assert (folders["sh"] / name).stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_blocks_run_and_print_what_they_show(page, shell, tmp_path, monkeypatch):
    compared = 0
    for shown, printed in outputs(page, shell, tmp_path, monkeypatch):
        if page == "README.md":
            assert shown == printed
        left, right = lines(shown), lines(printed)
        assert len(left) == len(right), printed
        for a, b in zip(left, right, strict=True):
            assert same(a, b), f"{page}: {a}\nprinted: {b}"
        compared += 1
    assert compared == PAGES[page]


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("efficiency at least 0.9958", "efficiency at least 0.9957", True),
        ("efficiency at least 0.9958", "efficiency at least 0.9938", False),
        ("rank 6 of 6 parameters", "rank 5 of 6 parameters", False),
        ("gap 4.63e-09 (relative 7.72e-10)", "gap 2.1e-09 (relative 3.5e-10)", True),
        ("gap 4.63e-09 (relative 7.72e-10)", "gap 4.63e-02 (relative 7.72e-10)", False),
        ("weights: difference 0, allowed 1e-06", "weights: difference 0.5, allowed 1e-06", False),
        ("method bca, 44 iterations, ...", "method bca, 44 iterations, 12 ms", True),
        ("method bca, 44 iterations, ...", "method bca, 45 iterations, 12 ms", False),
        ("optimal to within 0.0001", "not optimal to within 0.0001", False),
        (
            "x against cvxpy: difference 0.0001, allowed 0.03",
            "x against cvxpy: difference 0.0005, allowed 0.02",
            True,
        ),
        (
            "x against cvxpy: difference 0.0001, allowed 0.03",
            "x against cvxpy: difference 0.0001, allowed 0.4",
            False,
        ),
    ],
)
def test_the_comparison_finds_differences(shown, printed, expected):
    assert same(shown, printed) == expected


def test_readme_is_short():
    assert len(read("README.md").splitlines()) <= 150
    python = [code for language, code in blocks("README.md") if language == "python"]
    assert all(len(lines(code)) <= 10 for code in python)


def test_facts_quote_the_measured_tables():
    """Every number of a fact is in a table that the fact links to, and its command exists."""
    makefile = read("Makefile")
    facts = re.findall(r"^\| \*\*(.+?)\*\* \| (.+) \| (.+) \|$", read("README.md"), flags=re.M)
    assert len(facts) == 5
    for name, fact, commands in facts:
        files = re.findall(r"\]\((docs/measured/\w+\.txt)\)", fact)
        assert files, name
        measured = {
            float(n.replace(",", ""))
            for path in files
            for n in re.findall(NUMBER, read(path).replace("2^17", "131072"))
        }
        quoted = re.findall(rf"(?<![\w-]){NUMBER}", re.sub(r"\(.*?\)|\[.*?\]", "", fact))
        missing = [n for n in quoted if float(n.replace(",", "")) not in measured]
        assert quoted, name
        assert not missing, f"{name}: {missing}"
        for target in re.findall(r"`make ([\w/]+)`", commands):
            stem = target.replace("measured/", "")
            assert f"docs/measured/{stem}.txt" in files
            assert (
                re.search(rf"^{stem}:", makefile, flags=re.M) or (ROOT / "benchmarks" / f"{stem}.py").exists()
            )


def test_times_of_the_two_commands_are_those_measured():
    """The README quotes `make times` if its output is stored, and states no times otherwise."""
    quote = load(ROOT / "benchmarks" / "quote_times.py")
    stored = ROOT / "docs" / "measured" / "times.txt"
    expected = quote.sentence(stored.read_text()) if stored.exists() else quote.UNMEASURED
    assert read("README.md").count(expected) == 1
    assert len(re.findall(r"`make \w+` takes", read("README.md"))) == 2 * stored.exists()


def test_times_are_written_into_the_readme():
    quote = load(ROOT / "benchmarks" / "quote_times.py")
    stored = (
        "measured at commit 1\n\n2 cores, load average 0.1 at the start\nmake demo: 23 s\nmake test: 300 s\n"
    )
    first = quote.quoted(f"A. {quote.UNMEASURED}\n", stored)
    assert "On 2 cores, after the set-up, `make demo` takes 23 s and `make test` takes 300 s" in first
    again = quote.quoted(first, stored.replace("300", "290"))
    assert "`make test` takes 290 s" in again
    assert "300" not in again
    with pytest.raises(ValueError, match="sentence on times once"):
        quote.quoted("no sentence", stored)
    with pytest.raises(ValueError, match="seconds of make demo and make test"):
        quote.quoted(first, "2 cores\nmake demo: 23 s\n")


def test_links_of_the_readme_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", read("README.md")):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_make_targets_and_extras_exist():
    makefile = read("Makefile")
    targets = re.findall(r"^make (\w+)", read("README.md"), flags=re.M)
    assert targets == ["demo", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M)
    project = tomllib.loads(read("pyproject.toml"))["project"]
    assert project["name"] in read("README.md")
    for page in ("README.md", "docs/install.md", "docs/testing.md"):
        for extras in re.findall(r"pip install (?:--editable )?'\.\[([\w,]+)\]'", read(page)):
            assert set(extras.split(",")) <= set(project["optional-dependencies"]), page


def test_the_install_page_lists_every_extra():
    extras = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    assert sorted(re.findall(r"^\| `(\w+)` \|", read("docs/install.md"), flags=re.M)) == sorted(extras)


def test_no_page_installs_the_package_of_another_project():
    pages = [
        ROOT / "README.md",
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("optdesign/**/*.py"),
        *ROOT.glob("bandits/**/*.py"),
    ]
    for page in pages:
        assert not re.search(
            r"pip install ['\"]?(optdesign|bandits)\b(?!-)", page.read_text(encoding="utf-8")
        ), page
