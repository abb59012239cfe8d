"""Identity of an experiment: a hash of the content of everything that determines it.

Numbers, texts and arrays count in full. A function counts by its code, closure, defaults and the globals that
it names, also those of modules that it names. ``functools.partial`` counts by its parts. A method of a
built-in object counts by the object. A dictionary counts with its order. Any other object counts by its class
and its state, which includes its pickled state if the class extends a compiled one. A class counts by the
code of its methods and by its attributes, also those that it inherits. Classes and functions of installed
libraries count by their names and the sources of the library (those of NumPy, SciPy and Numba by the
version), and the code of this package as a whole (:mod:`bandits.simulation.sources`). Addresses, file names
and line numbers do not count, so the hash is the same in a new process.

These are not seen:

- whether a list or another object that occurs twice is one object or two equal ones,
- the order in which attributes and globals were defined,
- functions of this package or of a library that are replaced at run time; files and environment variables,
- attributes and modules that are found by computed names, as with ``getattr`` and ``importlib``,
- values assigned to a module that an object holds or a function imports when it runs, and other modules that
  it imports; only the sources of its package count.

An object without content, such as an open file, is refused, and so is a result of ``numpy.frompyfunc``, which
hides its function. An attribute ``identity`` of an object, a text that changes whenever the object does,
stands for its state and for the attributes of its class.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import importlib.util
import logging
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bandits.simulation.sources import PACKAGES, library_hash

LIBRARIES = tuple(str(Path(sysconfig.get_path(kind), "_"))[:-1] for kind in ("stdlib", "purelib", "platlib"))
"""Directories of Python and of installed libraries, with a separator at the end."""

SLOTS = (types.MemberDescriptorType, types.GetSetDescriptorType)
"""Types of attributes that stand for the state of instances."""

PLAIN = (bool, int, float, complex, str, bytes)
"""Types whose objects have no state but their value."""

UFUNCS = ("numpy", "numpy._core.umath", "numpy.core.umath", "scipy.special")
"""Modules whose ufuncs count by their names."""

GENERATED = "<string>"
"""File name of code that was made at run time, such as the methods of a dataclass."""


def content_hash(*things: object) -> str:
    """Return the hash of the content of all things, in their order.

    >>> from functools import partial
    >>> content_hash(partial(max, 1)) == content_hash(partial(max, 1))
    True
    >>> content_hash(lambda x: x + 1) == content_hash(lambda x: x + 2)
    False
    """
    return _Walk().digest(list(things)).hex()


class _Walk:
    """One pass over an object and all it holds. Equal content has equal hashes, whether shared or not."""

    def __init__(self) -> None:
        self.known: dict[int, bytes] = {}
        self.path: list[int] = []
        """Addresses of the objects that are being hashed, from the outside in."""
        self.kept: list[object] = []
        """Keeps temporary objects alive, so that no address is used twice."""

    def digest(self, thing: Any) -> bytes:
        """Return the hash of the content; for an object within itself, the number of levels back to it."""
        if thing is None or type(thing) in PLAIN:
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
            case np.ma.MaskedArray():
                masked = [np.asarray(thing), np.ma.getmaskarray(thing), thing.fill_value]
                yield from self._sequence("masked", masked)
            case np.ndarray() if thing.dtype.hasobject:
                yield from self._sequence(f"array {thing.shape}", thing.ravel().tolist())
            case np.ndarray() | np.generic():
                yield f"array {thing.dtype.descr} {thing.shape}".encode()
                yield np.ascontiguousarray(thing).tobytes()
                if isinstance(thing, np.ndarray) and type(thing) not in (np.ndarray, np.memmap):
                    yield from self._sequence("subclass", [type(thing), getattr(thing, "__dict__", {})])
            case tuple() | list() | dict() | set() | frozenset():
                yield from self._container(thing)
            case enum.Enum():
                yield from self._sequence("member", [type(thing), thing.name, thing.value])
            case types.ModuleType():
                if not _is_installed(thing):
                    library_hash.cache_clear()  # its source may have changed since it was read
                yield f"module {_versioned(thing.__name__)}".encode()
            case logging.Logger():
                yield f"logger {thing.name}".encode()
            case type():
                yield from self._class(thing)
            case functools.partial():
                state = [type(thing), thing.func, thing.args, thing.keywords, _ordered(vars(thing))]
                yield from self._sequence("partial", state)
            case types.FunctionType():
                yield from self._function(thing)
            case types.MethodType():
                yield from self._sequence("method", [thing.__self__, thing.__func__])
            case types.CodeType():
                yield from self._code(thing)
            case np.ufunc():
                if not any(getattr(sys.modules.get(m), thing.__name__, None) is thing for m in UFUNCS):
                    raise _without_content(thing)
                yield f"ufunc {thing.__name__}".encode()
            case types.BuiltinFunctionType():
                module = getattr(thing, "__module__", None) or ""
                yield f"builtin {_versioned(module)}.{thing.__name__}".encode()
                if not isinstance(thing.__self__, types.ModuleType | None):
                    yield self.digest(thing.__self__)
            case staticmethod() | classmethod() | property() | functools.cached_property():
                yield from self._sequence(type(thing).__name__, _functions(thing))
            case _:
                yield from self._object(thing)

    def _sequence(self, title: str, items: Iterable[object]) -> Iterator[bytes]:
        items = list(items)
        yield f"{title} of {len(items)}".encode()
        for item in items:
            yield self.digest(item)

    def _container(self, thing: Any) -> Iterator[bytes]:
        """Items; the order of sets does not count. Subclasses are objects as well."""
        kind: Any = next(kind for kind in (tuple, list, dict, set, frozenset) if isinstance(thing, kind))
        if kind is dict:
            yield from self._sequence("mapping", [part for key in thing for part in (key, thing[key])])
        elif kind in (tuple, list):
            yield from self._sequence(kind.__name__, thing)
        else:
            yield from self._sequence("set", sorted(content_hash(item) for item in thing))
        if type(thing) is not kind:
            factory = getattr(thing, "default_factory", None)
            yield from self._sequence("subclass", [type(thing), getattr(thing, "__dict__", {}), factory])

    def _function(self, thing: types.FunctionType) -> Iterator[bytes]:
        library = _versioned(thing.__module__) if _is_installed(thing) else ""
        yield f"function {_name(thing)} {library}".encode()
        yield from self._sequence(
            "of",
            [
                thing.__code__,
                [_content(cell) for cell in thing.__closure__ or ()],
                thing.__defaults__,
                thing.__kwdefaults__,
                _ordered(vars(thing)),
                {} if _is_installed(thing) or _is_own(thing) else _ordered(_used(thing)),
            ],
        )

    def _code(self, code: types.CodeType) -> Iterator[bytes]:
        counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
        names = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
        body = [code.co_code, code.co_consts, code.co_exceptiontable]
        yield from self._sequence("code", [*counts, *names, *body])

    def _class(self, thing: type) -> Iterator[bytes]:
        """Names of all base classes, and the attributes of those that are not installed."""
        for kind in thing.__mro__:
            if _is_installed(kind):
                yield f"class {_name(kind)} {_versioned(kind.__module__)}".encode()
            else:
                # Without the names around it, which a copy in another process does not have.
                yield f"class {kind.__module__}.{kind.__name__}".encode()
                yield self.digest(_ordered(dict(_attributes(kind, not _is_named(thing)))))
        if not _is_installed(type(thing)):
            yield self.digest(type(thing))

    def _object(self, thing: Any) -> Iterator[bytes]:
        if _is_named(thing):
            yield from self._class(type(thing))
            yield from self._sequence("named", [thing.identity])
            return
        compiled = getattr(thing, "py_func", None) or _wrapped_by_numba(thing)
        if compiled is not None:
            yield self.digest(compiled)
            return
        state: list[Any] = []
        if hasattr(thing, "__dict__"):
            attributes = {
                key: value for key, value in vars(thing).items() if not self._is_computed(thing, key, value)
            }
            attributes |= {key: getattr(thing, key) for key in _slots(thing) if hasattr(thing, key)}
            state.append(_ordered(attributes))
        if not state or _extends_compiled(type(thing)):
            try:
                pickled = thing.__reduce_ex__(2)[1:]
            except (TypeError, ValueError):
                raise _without_content(thing) from None
            state += [list(part) if isinstance(part, Iterator) else part for part in pickled]
        yield from self._sequence("object", [type(thing), state])

    def _is_computed(self, thing: Any, key: str, value: Any) -> bool:
        """Return True for the value that a cached property computes, which is no state."""
        cached = getattr(type(thing), key, None)
        if not isinstance(cached, functools.cached_property):
            return False
        try:
            computed = cached.func(thing)
        except Exception:
            return False
        return self.digest(computed) == self.digest(value)


def _without_content(thing: object) -> ValueError:
    """Return the error for an object whose content cannot be compared."""
    return ValueError(
        f"checkpoints need the content of everything that determines a trial; {_name(type(thing))} has none "
        "to look at. Give the object, or the one that holds it, an attribute identity, a text that changes "
        "whenever it does."
    )


def _extends_compiled(kind: type) -> bool:
    """Return True if objects of a class have state in a compiled base class, beyond their attributes."""
    return any(isinstance(vars(base).get("__new__"), types.BuiltinFunctionType) for base in kind.__mro__[:-1])


def _wrapped_by_numba(thing: object) -> Any:
    """Return the function of a ufunc or a callback that numba has compiled, or None."""
    is_numba = type(thing).__module__.startswith("numba.")
    return getattr(thing, "__wrapped__", None) if is_numba else None


def _name(thing: type | types.FunctionType) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _versioned(module: str) -> str:
    """Return the name of a module with the version of its package, if any, and the hash of its sources."""
    package = module.split(".")[0]
    version = getattr(sys.modules.get(package), "__version__", "")
    return f"{module} {version if isinstance(version, str) else ''} {library_hash(package)}"


def _is_own(thing: type | types.FunctionType) -> bool:
    """Return True for classes and functions of this package, whose sources count as a whole."""
    return str(thing.__module__).split(".")[0] in PACKAGES


def _is_installed(thing: type | types.FunctionType | types.ModuleType) -> bool:
    """Return True for classes, functions and modules of Python or of an installed library."""
    module = str(thing.__name__ if isinstance(thing, types.ModuleType) else thing.__module__)
    if module.split(".")[0] in (*PACKAGES, "__main__"):
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return module in sys.builtin_module_names if file is None else file.startswith(LIBRARIES)


def _is_named(thing: object) -> bool:
    """Return True if a text stands for the state of an object, or for the data of a class."""
    return isinstance(getattr(thing, "identity", None), str)


def _attributes(kind: type, data: bool) -> Iterator[tuple[str, Any]]:
    """Yield the written attributes of one class: its functions and, if requested, its data."""
    if data and issubclass(kind, enum.Enum):
        yield "members", [(name, member.value) for name, member in kind.__members__.items()]
        data = False
    for name, value in vars(kind).items():
        special = name.startswith("__") and name.endswith("__")
        functions = _functions(value)
        if functions:
            codes = [getattr(function, "__code__", None) for function in functions]
            if not special or any(code is None or code.co_filename != GENERATED for code in codes):
                yield name, functions
        elif data and not special and name != "_abc_impl" and not isinstance(value, SLOTS):
            yield name, value


def _functions(value: Any) -> list[Any]:
    """Return the functions that an attribute of a class runs."""
    inner: list[Any]
    match value:
        case staticmethod() | classmethod():
            inner = [value.__func__]
        case property():
            inner = [value.fget, value.fset, value.fdel]
        case functools.cached_property():
            inner = [value.func]
        case types.FunctionType():
            inner = [value]
        case _:
            inner = [getattr(value, "py_func", None)]
    return [getattr(one, "py_func", one) for one in inner if one is not None]


def _used(function: types.FunctionType) -> dict[str, Any]:
    """Return the globals that a function names, also those within modules, and sources that it imports."""
    found: dict[str, Any] = {}
    attributes = _names(function.__code__)
    spaces: list[tuple[str, set[str], dict[str, Any]]] = [
        ("", set(_loaded(function.__code__)), function.__globals__)
    ]
    seen: set[int] = set()
    while spaces:
        prefix, names, space = spaces.pop()
        for name in names.intersection(space):
            value = found[prefix + name] = space[name]
            if isinstance(value, types.ModuleType) and id(value) not in seen and not _is_installed(value):
                seen.add(id(value))
                if value.__name__.split(".")[0] not in PACKAGES:
                    spaces.append((f"{prefix}{name}.", attributes, vars(value)))
    for module in _imported(function.__code__, function.__globals__.get("__package__")):
        found[f"import {module}"] = _sources(module)
    return found


def _loaded(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals that code reads, also in functions and classes defined within it."""
    for step in dis.get_instructions(code):
        if step.opname.startswith("LOAD") and step.opname.endswith(("NAME", "GLOBAL", "GLOBALS")):
            yield step.argval
    for inner in _inner(code):
        yield from _loaded(inner)


def _names(code: types.CodeType) -> set[str]:
    """Return the names of globals and attributes in code, also in functions defined within it."""
    return set(code.co_names).union(*map(_names, _inner(code)))


def _inner(code: types.CodeType) -> list[types.CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def _imported(code: types.CodeType, package: str | None) -> Iterator[str]:
    """Yield the full names of the modules that code imports when it runs."""
    steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for n, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            level = steps[n - 2].argval  # the number of dots of a relative import
            dots = "." * level if isinstance(level, int) else ""
            try:
                yield importlib.util.resolve_name(dots + step.argval, package)
            except ImportError:
                continue
    for inner in _inner(code):
        yield from _imported(inner, package)


def _sources(module: str) -> str:
    """Return the hash of the sources of the package of a module, imported or not."""
    package = module.split(".")[0]
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ""
    if spec is None or not str(spec.origin).startswith((*LIBRARIES, "built-in", "frozen")):
        library_hash.cache_clear()  # its source may have changed since it was read
    return library_hash(package)


def _content(cell: types.CellType) -> object:
    """Return the value of a closure variable; a variable without a value yet has none."""
    try:
        return cell.cell_contents
    except ValueError:
        return ("empty cell",)


def _ordered(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes or globals in the order of their names; that of their definitions does not count."""
    return {key: attributes[key] for key in sorted(attributes, key=str)}


def _slots(thing: object) -> list[str]:
    found = [vars(kind).get("__slots__", ()) for kind in type(thing).__mro__]
    return [name for slots in found for name in ([slots] if isinstance(slots, str) else slots)]
