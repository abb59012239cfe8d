"""Modules of both packages are found under their names."""

import importlib
import pkgutil

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
