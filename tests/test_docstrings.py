"""Docstrings of the public interface are in numpydoc form and describe every parameter and field."""

import importlib
import importlib.util
import inspect
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from numpydoc import validate as validation

SPEC = importlib.util.spec_from_file_location(
    "reference_pages", Path(__file__).parents[1] / "docs" / "_ext" / "reference_pages.py"
)
assert SPEC is not None
assert SPEC.loader is not None
PAGES: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PAGES)

PUBLIC = sorted({name for _, _, listed in PAGES.TOPICS.values() for name in PAGES.names(listed)})
LAYOUT = {"GL01", "GL02", "GL03"}
"""Rules about the line on which a docstring begins and ends, which ruff has instead."""
OPTIONAL = {"ES01"}
"""An extended summary."""
OF_OWNERS = {"SA01", "EX01"}
"""See Also and Examples: those of a class hold for its members."""
OF_BASES = {"PR01", "RT01", "PR02"}
"""Parameters and Returns: a method that overrides one of a documented class has the same."""


def members(name: str) -> Iterator[tuple[str, bool]]:
    """Yield the public methods and properties of a class, and True for those that a base class declares."""
    item = PAGES.find(name)
    if inspect.isclass(item):
        for member, value in vars(item).items():
            documented = (property, classmethod, staticmethod, cached_property)
            if not member.startswith("_") and (inspect.isfunction(value) or isinstance(value, documented)):
                yield f"{name}.{member}", any(member in vars(base) for base in item.__mro__[1:])


def described(item: type) -> set[str]:
    """Return the names in the sections Parameters and Attributes of a class and its bases."""
    docs = [validation.get_doc_object(base) for base in item.__mro__[:-1] if base.__doc__]
    listed = [entry for doc in docs for entry in (*doc["Parameters"], *doc["Attributes"])]
    return {part.strip().lstrip("*") for entry in listed for part in entry.name.split(",")}


def fields(item: type) -> set[str]:
    """Return the public fields of a dataclass or NamedTuple."""
    return {
        field
        for field in (*getattr(item, "__dataclass_fields__", ()), *getattr(item, "_fields", ()))
        if not field.startswith("_")
    }


def validated(name: str, ignored: set[str]) -> list[str]:
    """Return the complaints of numpydoc about a name."""
    doc = validation.validate(validation.get_doc_object(inspect.unwrap(PAGES.find(name))))
    return [f"{code}: {text}" for code, text in doc["errors"] if code not in ignored]


@pytest.mark.parametrize("name", [name for name in PUBLIC if callable(PAGES.find(name))])
def test_docstrings_are_in_numpydoc_form(name: str) -> None:
    item = PAGES.find(name)
    of_class = {"PR01", "PR02"} if inspect.isclass(item) else set()
    complaints = {name: validated(name, LAYOUT | OPTIONAL | of_class)}
    for member, inherited in members(name):
        ignored = LAYOUT | OPTIONAL | OF_OWNERS | (OF_BASES if inherited else set())
        complaints[member] = validated(member, ignored)
    assert not {key: found for key, found in complaints.items() if found}


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isclass(PAGES.find(name))])
def test_classes_describe_every_parameter_and_field(name: str) -> None:
    item = PAGES.find(name)
    expected = fields(item)
    if not issubclass(item, Enum) and not getattr(item, "_is_protocol", False):
        expected |= {p for p in inspect.signature(item).parameters if not p.startswith("_")}
    assert expected <= described(item)
