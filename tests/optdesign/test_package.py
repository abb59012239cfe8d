"""The package as a whole: what importing it loads, and the examples in its docstrings."""

import ast
import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from benchmark_scripts import SCRIPTS, load

import optdesign

ROOT = Path(__file__).parents[2]

# A module named __main__ is a program: importing it would run the command.
PROGRAMS = [m.name for m in pkgutil.walk_packages(optdesign.__path__, "optdesign.") if "__main__" in m.name]
MODULES = [
    "optdesign",
    *(m.name for m in pkgutil.walk_packages(optdesign.__path__, "optdesign.") if m.name not in PROGRAMS),
]


def test_import_stays_light() -> None:
    heavy = (
        "cvxpy", "matplotlib", "typer", "bandits", "rich", "pyarrow", "pandas", "formulaic", "polars",
        "hypothesis",
    )  # fmt: skip
    code = f"import sys, optdesign; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_the_citation_has_the_version_of_the_package() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: *(.*)$", citation, flags=re.M) == [optdesign.__version__]


def test_the_version_is_written_in_one_module() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "optdesign.__version__"}


def test_everything_public_exists() -> None:
    assert sorted(set(optdesign.__all__)) == sorted(optdesign.__all__)
    for name in optdesign.__all__:
        assert getattr(optdesign, name) is not None


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    outcome = doctest.testmod(module)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_for(name: str) -> None:
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_says_what_it_is_for(name: str) -> None:
    source = importlib.util.find_spec(name).loader.get_source(name)
    assert ast.get_docstring(ast.parse(source))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_benchmarks_import(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They reach into the package, and nothing else would notice that a name has moved."""
    monkeypatch.syspath_prepend(str(script.parent))
    load(script)


def test_subpackages_show_the_architecture() -> None:
    """Every subpackage has a docstring that names its modules, and few modules are beside them."""
    package = Path(optdesign.__file__).parent
    assert len([p for p in package.glob("*.py") if not p.stem.startswith("__")]) <= 8
    for folder in [p for p in package.iterdir() if (p / "__init__.py").exists()]:
        words = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
        assert words, folder


def test_only_kernels_lack_annotations() -> None:
    """In modules with kernels, mypy accepts any function without annotations."""
    for path in sorted(Path(optdesign.__file__).parent.rglob("*.py")):
        functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
        for function in functions:
            if {"kernel", "uncached", "inlined"} & {
                ast.unparse(decorator) for decorator in function.decorator_list
            }:
                continue
            a = function.args
            arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            bare = [x.arg for x in arguments if x.annotation is None and x.arg not in ("self", "cls")]
            assert not bare, (path, function.name)
            assert function.returns is not None or function.name == "__init__", (path, function.name)
