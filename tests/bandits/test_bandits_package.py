"""The package as a whole: its names, its subpackages, and its imports from optdesign."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import bandits

PACKAGE = Path(bandits.__file__).parent
PROGRAMS = ["bandits.__main__"]
"""Importing such a module would run the command."""

MODULES = [
    "bandits",
    *(m.name for m in pkgutil.walk_packages(bandits.__path__, "bandits.") if m.name not in PROGRAMS),
]

DOCUMENTED = {
    "optdesign",
    "optdesign.cli.pipes",
    "optdesign.examples",
    "optdesign.plot",
    "optdesign.runtime.files",
    "optdesign.runtime.jit",
    "optdesign.runtime.progress",
    "optdesign.testing",
}
"""Modules of optdesign that other packages may import; docs/architecture.md lists them."""


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of every import, also of those within functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_only_public_names_of_optdesign_are_imported(path: Path) -> None:
    for module, name in imports(path):
        if module.split(".")[0] == "optdesign":
            assert module in DOCUMENTED, f"{module} is not documented for other packages"
            public = importlib.import_module(module).__all__
            assert not name or name in public or name == "__version__", f"{module}.{name} is not public"


@pytest.mark.parametrize("name", sorted(DOCUMENTED - {"optdesign"}))
def test_documented_modules_are_documented(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "architecture.md"
    assert f"`{name}`" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", MODULES)
def test_every_module_has_a_docstring(name: str) -> None:
    assert importlib.import_module(name).__doc__


def test_subpackages_show_the_architecture() -> None:
    """A subpackage has a docstring that names its modules, and few modules are beside them."""
    assert len([p for p in PACKAGE.glob("*.py") if not p.stem.startswith("__")]) <= 3
    for folder in [p.parent for p in PACKAGE.glob("*/__init__.py")]:
        words = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
        for module in folder.glob("*.py"):
            assert module.stem == "__init__" or f"``{module.stem}``" in words, module
        assert "first" in words, f"{folder.name} does not say which module to read first"


@pytest.mark.parametrize("name", ["confidence", "environments", "noise", "plotting", "protocol", "schedules"])
def test_public_modules_are_attributes(name: str) -> None:
    assert isinstance(getattr(bandits, name), ModuleType)


def test_public_names_exist() -> None:
    assert sorted(set(bandits.__all__)) == sorted(bandits.__all__)
    for name in bandits.__all__:
        assert getattr(bandits, name) is not None
    assert inspect.isfunction(bandits.simulate)
    assert bandits.environments.synthetic(3, 2, 2).clients == 3
    assert bandits.theory.lower_bound(4, 3, 2, 100) > 0


@pytest.mark.slow
def test_the_package_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bandits", "--help"], capture_output=True, text=True, check=True
    )
    assert "reproduce" in done.stdout
