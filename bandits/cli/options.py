"""Options of experiment files, checked against the signature of the class or function that takes them.

A parameter declared ``float`` takes a number, ``int`` a whole number, ``bool`` true or false, and so on; a
function is written ``"module:function"``. The objects check ranges themselves, apart from those in ``LEAST``.
Every message names the key, the rule and the value.
"""

from __future__ import annotations

import importlib
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Callable as CallableType
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from joblib.externals.loky import get_reusable_executor

from bandits.checks import LARGEST

LEAST = {
    "horizon": 1,
    "trials": 1,
    "seed": 0,
    "clients": 1,
    "arms": 1,
    "dim": 1,
    "n_clusters": 1,
}
"""Smallest values of whole numbers, by key."""

Makers = Mapping[Any, Callable[[Any, str], Any]]
"""Functions that make an object of a value and its place in the file, by type."""


class Unfit(Exception):
    """Raised for a value that is not of the expected kind, which the message names."""


def build(make: Callable[..., Any], options: Mapping[str, Any], where: str, makers: Makers) -> Any:
    """Call a class or function with options, after all of them were checked against its signature."""
    parameters = inspect.signature(make).parameters
    check_keys(options, list(parameters), where)
    values = {
        key: checked(key, value, declared(parameters[key].annotation, make), where, makers)
        for key, value in options.items()
    }
    missing = [
        name for name, p in parameters.items()
        if p.default is p.empty and name not in values and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]  # fmt: skip
    if missing:
        raise ValueError(f"{where} must have {missing[0]}; it has {', '.join(values) or 'nothing'}.")
    try:
        return make(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from error


def checked(key: str, value: Any, kind: Any, where: str, makers: Makers = types.MappingProxyType({})) -> Any:
    """Return the value as the declared kind, or raise ValueError with key, rule and value.

    >>> checked("delta", 1, float, "policy")
    1.0
    >>> checked("trials", 2.9, int, "the file")
    Traceback (most recent call last):
    ValueError: the file: trials must be a whole number of at least 1; got 2.9.
    """
    low = LEAST.get(key)
    try:
        out = _fit(value, kind, f"{key} of {where}", makers)
        if type(out) is int and not (-LARGEST if low is None else low) <= out <= LARGEST:
            raise Unfit("a whole number")
    except Unfit as unfit:
        bound = f" of at least {low}" if low is not None else ""
        if type(value) is int and value > LARGEST:
            bound = f" of at most {LARGEST}"
        raise ValueError(f"{where}: {key} must be {unfit}{bound}; got {value!r}.") from None
    return out


def _fit(value: Any, kind: Any, where: str, makers: Makers) -> Any:
    """Convert, or raise Unfit with the words for what was expected."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind in (Any, inspect.Parameter.empty):
        return value
    if origin in (typing.Union, types.UnionType):
        return _fit_any(value, [one for one in inner if one is not type(None)], where, makers)
    if kind is bool:
        return _need(isinstance(value, bool), value, "true or false")
    if kind is int:
        return _need(number and isinstance(value, int), value, "a whole number")
    if kind is float:
        _need(number and math.isfinite(value), value, "a number")
        return float(value)
    if kind is str:
        return _need(isinstance(value, str), value, "text")
    if origin in (tuple, list, Sequence, Iterable):
        _need(isinstance(value, list), value, f"a list of {_plural(inner[0])}")
        try:
            return (tuple if origin is tuple else list)(_fit(one, inner[0], where, makers) for one in value)
        except Unfit:
            raise Unfit(f"a list of {_plural(inner[0])}") from None
    if origin is CallableType:
        _need(isinstance(value, str) and ":" in value, value, 'the name of a function, "module:function"')
        found: CallableType[[Any, str], Any] = makers.get(CallableType, named)
        return found(value, where)
    if kind in makers:
        _need(isinstance(value, dict), value, 'a table with a kind, such as { kind = "..." }')
        return makers[kind](value, where)
    raise Unfit("left out: it cannot be written in a file")


def _fit_any(value: Any, kinds: Sequence[Any], where: str, makers: Makers) -> Any:
    expected = []
    for kind in kinds:
        try:
            return _fit(value, kind, where, makers)
        except Unfit as unfit:
            expected.append(str(unfit))
    told = [words for words in expected if not words.startswith("left out")] or expected
    raise Unfit(" or ".join(told))


def _need(holds: bool, value: Any, expected: str) -> Any:
    if not holds:
        raise Unfit(expected)
    return value


def _plural(kind: Any) -> str:
    if typing.get_origin(kind) in (tuple, list, Sequence, Iterable):
        return f"lists of {_plural(typing.get_args(kind)[0])}"
    return {int: "whole numbers", float: "numbers", str: "texts"}.get(kind, "values")


def declared(annotation: Any, make: Callable[..., Any]) -> Any:
    """Return the declared type of a parameter, also if it is text; an array is a list of numbers."""
    if not isinstance(annotation, str):
        return annotation
    if "ArrayLike" in annotation or "ndarray" in annotation:
        return list[Any]
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    for owner in getattr(make, "__mro__", (make,)):
        try:
            return typing.get_type_hints(holder, vars(sys.modules[owner.__module__]))["it"]
        except NameError:
            continue
    return Any


def named(name: str, where: str, folder: Path | None = None) -> Any:
    """Return the object ``"module:name"``; modules may be in the folder."""
    module, _, attribute = name.partition(":")
    if folder is not None and str(folder.resolve()) not in sys.path:
        # For good, so that the processes that trials run in find the module as well. Processes that are
        # running have the former path, so new ones take their place.
        sys.path.insert(0, str(folder.resolve()))
        get_reusable_executor().shutdown()
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, ValueError) as error:
        raise ValueError(
            f"{where} must name a module that can be imported; got {name!r}: {error}. "
            "Put it beside the file, or install it."
        ) from error
    except AttributeError:
        raise ValueError(
            f"{where} must name something in the module; {module!r} has no {attribute!r}."
        ) from None
    beside = folder is not None and (folder / f"{module}.py").resolve()
    if beside and beside.exists() and Path(sys.modules[module].__file__ or "").resolve() != beside:
        raise ValueError(
            f"{where} must name a module that is not imported from elsewhere; {module!r} is "
            f"{sys.modules[module].__file__}, not {beside}. Rename it."
        )
    if not callable(found):
        raise ValueError(f"{where} must name a class or a function; {name!r} is {found!r}.")
    return found


def check_keys(options: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    """Raise ValueError if a key is not allowed."""
    wrong = [key for key in options if key not in allowed]
    if wrong:
        raise ValueError(
            f"{where} may have {', '.join(allowed) or 'no options'}; "
            f"got {wrong[0]!r}{suggestion(wrong[0], allowed)}. See: bandits example"
        )


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a suggestion of the closest known word, or an empty text if none is close."""
    spelling = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), spelling, n=1)
    return f" (did you mean {spelling[close[0]]!r}?)" if close else ""
