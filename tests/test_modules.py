"""Modules of both packages are found under their names, and numeric constants are defined once."""

import ast
import collections
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import bandits
import optdesign

MODULES = [
    module.name
    for package in (optdesign, bandits)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if "__main__" not in module.name
]
"""Importing a module named __main__ would run its command."""


@pytest.mark.parametrize("name", MODULES)
def test_no_module_is_hidden_by_another_object_of_its_name(name: str) -> None:
    module = importlib.import_module(name)
    parent, _, last = name.rpartition(".")
    assert getattr(importlib.import_module(parent), last) is module


def numbers(module: ModuleType) -> set[str]:
    """Return the upper-case names to which statements of a module assign a number."""
    statements = ast.parse(inspect.getsource(module)).body
    return {
        name.id
        for statement in statements
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store) and name.id.isupper()
        if isinstance(getattr(module, name.id), int | float)
    }


def test_numbers_are_found_in_every_form_of_assignment() -> None:
    module = importlib.import_module("optdesign.runs.rank_two")
    assert {"SAFE", "REFRESH", "ROW", "CHANGES"} <= numbers(module)
    assert "SAFE" not in numbers(importlib.import_module("optdesign.runs.levels"))  # imported there


def is_number(value: ast.expr) -> bool:
    """Return True if an expression is a number, or arithmetic with one."""
    if isinstance(value, ast.BinOp):
        return is_number(value.left) or is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def test_optdesign_has_few_numeric_constants() -> None:
    """Parameters of an algorithm are fields of one documented class, and others are defaults of arguments."""
    found = [
        ast.unparse(statement)
        for name in MODULES
        if name.startswith("optdesign.")
        for statement in ast.parse(inspect.getsource(importlib.import_module(name))).body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        and statement.value is not None
        and is_number(statement.value)
    ]
    assert any(text.startswith("UNIT = ") for text in found)
    assert len(found) <= 80, "\n".join(found)


def test_no_numeric_constant_of_optdesign_is_defined_in_two_modules() -> None:
    owners = collections.defaultdict(list)
    for name in MODULES:
        if name.startswith("optdesign."):
            for constant in numbers(importlib.import_module(name)):
                owners[constant].append(name)
    assert len(owners) > 50
    assert {constant: names for constant, names in owners.items() if len(names) > 1} == {}
