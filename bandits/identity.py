"""What makes two things the same experiment: their content, as one hash.

Numbers, texts and arrays count in full; functions by their code, closure, defaults and the globals they
name; ``functools.partial`` by its parts; any other object by its class and its state, and a class of the
user's by the code of its methods as well; what libraries define, by its name. Addresses, file names and line
numbers count for nothing, so the hash is the same in a new process. Class attributes that are data are taken
to be the same wherever the class is.

What has no content to look at, say an open file, is refused: give such an object an attribute ``identity``, a
text that changes whenever it does, and that stands for it.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

OWN = ("bandits", "optdesign")
"""Packages whose classes are told by their names, like those of installed libraries."""

LIBRARIES = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib"))

GENERATED = "<string>"
"""File name of code that was made at run time, such as the methods of a dataclass."""


def content_hash(*things: object) -> str:
    """Hash of the content of all things, in their order.

    >>> from functools import partial
    >>> content_hash(partial(max, 1)) == content_hash(partial(max, 1))
    True
    >>> content_hash(lambda x: x + 1) == content_hash(lambda x: x + 2)
    False
    """
    return _Walk().digest(list(things)).hex()


class _Walk:
    """One pass over an object and all it holds. Equal content has equal hashes, be it shared or not."""

    def __init__(self) -> None:
        self.known: dict[int, bytes] = {}
        self.path: list[int] = []
        """What is being looked at, from the outside in."""
        self.kept: list[object] = []
        """Keeps temporary objects alive, so that no address is used twice."""

    def digest(self, thing: Any) -> bytes:
        """Hash of the content; of what holds itself, how many steps back it was met."""
        if thing is None or isinstance(thing, bool | int | float | complex | str | bytes):
            return hashlib.sha256(f"{type(thing).__qualname__} {thing!r}".encode()).digest()
        key = id(thing)
        if key in self.path:
            return f"{len(self.path) - self.path.index(key)} back".encode()
        if key not in self.known:
            self.path.append(key)
            self.kept.append(thing)
            whole = hashlib.sha256()
            for part in self._compound(thing):
                whole.update(len(part).to_bytes(8, "big"))
                whole.update(part)
            self.path.pop()
            self.known[key] = whole.digest()
        return self.known[key]

    def _compound(self, thing: Any) -> Iterator[bytes]:
        match thing:
            case np.ndarray() if thing.dtype.hasobject:
                yield from self._sequence(f"array {thing.shape}", thing.ravel().tolist())
            case np.ndarray() | np.generic():
                yield f"array {thing.dtype.descr} {thing.shape}".encode()
                yield np.ascontiguousarray(thing).tobytes()
            case tuple() | list():
                yield from self._sequence(_name(type(thing)), thing)
            case dict():
                yield from self._mapping(thing)
            case set() | frozenset():
                yield from self._sequence("set", sorted(content_hash(item) for item in thing))
            case enum.Enum():
                yield from self._sequence(_name(type(thing)), [thing.name])
            case types.ModuleType():
                yield f"module {thing.__name__}".encode()
            case type():
                yield from self._class(thing)
            case functools.partial():
                yield from self._sequence("partial", [thing.func, thing.args, thing.keywords])
            case types.FunctionType():
                yield from self._function(thing)
            case types.MethodType():
                yield from self._sequence("method", [thing.__self__, thing.__func__])
            case types.CodeType():
                yield from self._code(thing)
            case types.BuiltinFunctionType() | np.ufunc():
                yield f"builtin {getattr(thing, '__module__', '')}.{thing.__name__}".encode()
            case np.random.Generator():
                yield from self._sequence("generator", [thing.bit_generator.state])
            case _:
                yield from self._object(thing)

    def _sequence(self, title: str, items: Iterable[object]) -> Iterator[bytes]:
        items = list(items)
        yield f"{title} of {len(items)}".encode()
        for item in items:
            yield self.digest(item)

    def _mapping(self, thing: dict[Any, Any]) -> Iterator[bytes]:
        order = sorted(thing, key=lambda key: (str(type(key)), repr(key)))
        yield from self._sequence("mapping", [part for key in order for part in (key, thing[key])])

    def _function(self, thing: types.FunctionType) -> Iterator[bytes]:
        yield f"function {_name(thing)}".encode()
        known = thing.__globals__ if not _library(thing) else {}
        named = {name: known[name] for name in _names(thing.__code__) if name in known}
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        yield from self._sequence(
            "of", [thing.__code__, cells, thing.__defaults__, thing.__kwdefaults__, named]
        )

    def _code(self, code: types.CodeType) -> Iterator[bytes]:
        yield from self._sequence(
            "code",
            [code.co_code, code.co_consts, code.co_names, code.co_varnames, code.co_freevars, code.co_flags],
        )

    def _class(self, thing: type) -> Iterator[bytes]:
        yield f"class {_name(thing)}".encode()
        if _library(thing):
            return
        yield from self._sequence("bases", thing.__bases__)
        methods = {
            name: function for name, value in vars(thing).items() if (function := _behind(name, value))
        }
        yield from self._mapping(methods)

    def _object(self, thing: Any) -> Iterator[bytes]:
        name = getattr(thing, "identity", None)
        if isinstance(name, str):
            yield from self._sequence("named", [type(thing), name])
            return
        if hasattr(thing, "py_func"):  # compiled by numba
            yield self.digest(thing.py_func)
            return
        if hasattr(thing, "__dict__"):
            state: Any = {key: value for key, value in vars(thing).items() if not _cached(thing, key)}
            state |= {key: getattr(thing, key) for key in _slots(thing) if hasattr(thing, key)}
        else:
            try:
                state = list(thing.__reduce_ex__(2)[1:])
            except TypeError:
                raise ValueError(
                    f"checkpoints need the content of everything that determines a trial; "
                    f"{_name(type(thing))} has none to look at. Give the object an attribute identity, a "
                    "text that changes whenever it does."
                ) from None
            state = [list(part) if isinstance(part, Iterator) else part for part in state]
        yield from self._sequence("object", [type(thing), state])


def _name(thing: type | types.FunctionType) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _library(thing: type | types.FunctionType) -> bool:
    """Whether a class or function belongs to Python, an installed library or this package."""
    module = str(thing.__module__)
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module in sys.builtin_module_names
    return module.split(".")[0] in OWN or file.startswith(LIBRARIES)


def _names(code: types.CodeType) -> set[str]:
    """Global names that code may look up, also those of functions defined within it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _behind(name: str, value: Any) -> types.FunctionType | None:
    """The function that a class attribute runs, if a person wrote it."""
    for attribute in ("__func__", "fget", "func", "py_func"):
        value = getattr(value, attribute, value)
    if not isinstance(value, types.FunctionType):
        return None
    made = name.startswith("__") and value.__code__.co_filename == GENERATED
    return None if made else value


def _cached(thing: object, key: str) -> bool:
    return isinstance(getattr(type(thing), key, None), functools.cached_property)


def _slots(thing: object) -> list[str]:
    found = [vars(kind).get("__slots__", ()) for kind in type(thing).__mro__]
    return [name for slots in found for name in ([slots] if isinstance(slots, str) else slots)]
