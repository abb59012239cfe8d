"""The one decorator of compiled kernels, and their cache on disk.

Kernels take arrays and scalars only, trust their input, never raise, and say in their docstring what
they overwrite. They are cached on disk, release the interpreter lock, and divide as NumPy does. Those called
from Python return scalars or one array, never a tuple with an array: an interrupt would be a SystemError.

*What a fresh environment waits for.* A kernel is compiled by Numba in Python and then by LLVM, both in time
that grows with the code that goes into it, and NumPy's functions are code: of ``a[:] = b`` for arrays of
three dimensions most is the error message for shapes that differ. So kernels have loops over scalars, few
ways to make an array, and no argument that is now of one type and now of another. The wrapper by which C
could call a kernel is left out.

*What machine code is kept for.* Numba compiles functions and constants of other files into a kernel and looks
at the kernel's own file only. Here machine code is found again by a hash of all the code and all the
constants that went into it, wherever they are.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache

CONSTANTS = (bool, int, float, complex, str, bytes, tuple, np.ndarray, np.generic, type(None))
"""Types of globals whose values are compiled into a kernel."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep the machine code on disk."""
    compiled = uncached(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        # Where no directory can be written to, compiled code lasts as long as the process.
        with suppress(RuntimeError):
            compiled._cache = _Cache(function)
    return compiled


uncached = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)  # type: ignore[call-overload]
"""As a kernel, without the cache: for what is only ever compiled into kernels."""


class _Cache(FunctionCache):
    """Numba's cache of a function, stamped with the content of all that is compiled into it.

    Numba's own stamp is the file that the function is in. What a function calls may be defined after it, so
    the stamp is made when machine code is first asked for.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for arguments of given types, or None."""
        self._cache_file._source_stamp = code_hash([self._py_func])
        return super().load_overload(sig, target_context)


def code_hash(functions: Iterable[Any]) -> str:
    """Hash of all that goes into the compiled code of functions: their own, what they call, constants."""
    whole = hashlib.sha256()
    seen: set[int] = set()
    left = list(functions)
    while left:
        called = left.pop()
        function = getattr(called, "py_func", called)
        if id(function) in seen:
            continue
        seen.add(id(function))
        for part in (function.__code__, function.__defaults__):
            whole.update(_content(part))
        for name, value in _named(function):
            if isinstance(value, types.FunctionType) or hasattr(value, "py_func"):
                left.append(value)
            elif isinstance(value, CONSTANTS):
                whole.update(name.encode() + _content(value))
    return whole.hexdigest()


def _named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What the names in a function stand for that are not its own; of modules, constants and kernels."""
    for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars, strict=True):
        yield name, cell.cell_contents
    names = list(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            inside = [(inner, vars(value)[inner]) for inner in names if inner in vars(value)]
            yield from (
                pair for pair in inside if hasattr(pair[1], "py_func") or isinstance(pair[1], CONSTANTS)
            )
        elif name in function.__globals__:
            yield name, value


def _names(code: types.CodeType) -> Iterator[str]:
    """Names of globals and attributes in code, and in what is defined within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _content(thing: Any) -> bytes:
    """A constant or code as bytes that are the same in every process, whatever file and line it is in."""
    if isinstance(thing, types.CodeType):
        parts = (thing.co_code, thing.co_consts, thing.co_names, thing.co_varnames, thing.co_freevars)
        return b"code" + _content(parts)
    if isinstance(thing, tuple):
        inner = [_content(part) for part in thing]
        return b"tuple" + b"".join(len(part).to_bytes(8, "big") + part for part in inner)
    if isinstance(thing, np.ndarray):
        return f"array {thing.dtype.descr} {thing.shape}".encode() + thing.tobytes()
    return f"{type(thing).__qualname__} {thing!r}".encode()
