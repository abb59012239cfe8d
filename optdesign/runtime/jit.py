"""The one decorator of compiled kernels, and their cache on disk.

Kernels take arrays and scalars only, trust their input, never raise, and say in their docstring what
they overwrite. They are cached on disk, release the interpreter lock, and divide as NumPy does. Those called
from Python return scalars or one array, never a tuple with an array: an interrupt would be a SystemError.

*What a fresh environment waits for.* A kernel is compiled by Numba in Python and then by LLVM, both in time
that grows with the code that goes into it, and NumPy's functions are code: of ``a[:] = b`` for arrays of
three dimensions most is the error message for shapes that differ. So kernels have loops over scalars, few
ways to make an array, and no argument that is now of one type and now of another. The wrapper by which C
could call a kernel is left out.

*What a small problem does not wait for.* Compiling takes seconds, in which plain Python solves a small
problem many times over. So a kernel without machine code, in memory or on disk, runs as the Python that it is
written in, as long as its arrays are small and it has not spent about what compiling it would take. Where it
is in the middle of a call by then, or Python raises an error where machine code goes on, as in a division by
zero, its arrays are put back and it is compiled after all. Results are the same to the last digit. Therefore
kernels have what is computed in one way only: ``x * x`` for ``x**2``, ``math.log`` for ``np.log``, and loops
for sums and products of arrays.

*What machine code is kept for.* Numba compiles functions and constants of other files into a kernel and looks
at the kernel's own file only. Here machine code is found again by a hash of all the code and all the
constants that went into it, wherever they are.

Public for packages that build on this one: :func:`kernel`, :data:`uncached`, :data:`inlined` and
:func:`code_hash`.
"""

from __future__ import annotations

import hashlib
import math
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache

from optdesign.runtime import clock
from optdesign.runtime.interrupts import Deferred
from optdesign.runtime.limits import look

__all__ = ["code_hash", "inlined", "kernel", "uncached"]

ALLOWANCE = 0.5
"""Seconds that a kernel may spend as plain Python before it is compiled, which takes about as long."""

TOGETHER, LEAST = 1.5, 0.02
"""Seconds that those together may which have not used up their own: a process of more is worth it. Then the
allowance of each is the second, so that kernels which hardly take any are not compiled all at once."""

SMALL = 50_000
"""Numbers in the arrays given to a kernel up to which it runs as plain Python at all."""

CONSTANTS = (bool, int, float, complex, str, bytes, tuple, np.ndarray, np.generic, type(None))
"""Types of globals whose values are compiled into a kernel."""

NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called, and keep the machine code on disk."""
    compiled = uncached(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        # Where no directory can be written to, compiled code lasts as long as the process.
        with suppress(RuntimeError):
            compiled._cache = _Cache(function)
        # Numba asks for this where it has no machine code in memory, and calls what it returns.
        compiled._compile_for_args = _Tiers(compiled)
    return compiled


uncached = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)  # type: ignore[call-overload]
"""As a kernel, without the cache: for what is only ever compiled into kernels."""


inlined = njit(  # type: ignore[call-overload]
    nogil=True, error_model="numpy", no_cfunc_wrapper=True, inline="always"
)
"""As ``uncached``, and copied into its callers, because a call with a tuple of many arrays is slow."""


_interpreting = threading.local()
"""Until when a kernel of this thread may run as plain Python; None outside of any that does."""


_account = threading.Lock()
"""Held by whoever changes what kernels have spent."""


class _TooLong(Exception):
    """A kernel has used up its allowance."""


class _Tiers:
    """How a kernel runs that has no machine code in memory: as plain Python first, compiled in the end.

    A kernel that is called by one that runs as plain Python does so too, on the allowance of the first.
    """

    together = 0.0
    """Seconds that kernels of this process have spent as plain Python, without those that gave up."""

    def __init__(self, compiled: Any) -> None:
        self.compiled = compiled
        self.compile = compiled._compile_for_args
        self.spent = 0.0
        self.missing: set[tuple[Any, ...]] = set()
        """Types of arguments for which there is no machine code on disk."""

    def __call__(self, *arguments: Any) -> Callable[..., Any]:
        """What to call with arguments: the function itself or its machine code."""
        until = getattr(_interpreting, "until", None)
        if until is not None:
            if perf_counter() > until:
                raise _TooLong
            return self.compiled.py_func
        with clock.stopped():  # also while machine code is looked for on disk, and read
            if self._left() > 0.0 and _are_small(arguments) and self._is_missing(arguments):
                return self.interpret
            return self._compiled(arguments)

    def _compiled(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """The machine code. Compilers do not expect interrupts: Ctrl-C is answered before or after them."""
        look()
        with Deferred() as interrupted:
            code = self.compile(*arguments)
        if interrupted:
            raise KeyboardInterrupt
        return code

    def _left(self) -> float:
        """Seconds that this kernel may still run as plain Python."""
        own = min(ALLOWANCE, LEAST) - self.spent
        return max(own, min(ALLOWANCE - self.spent, TOGETHER - _Tiers.together))

    def _is_missing(self, arguments: tuple[Any, ...]) -> bool:
        """Whether the disk has no machine code for arguments of these types."""
        kinds = tuple(map(self.compiled.typeof_pyval, arguments))
        if kinds not in self.missing:
            cache = self.compiled._cache
            if isinstance(cache, _Cache) and cache.has(kinds, self.compiled.targetctx):
                return False
            self.missing.add(kinds)
        return True

    def interpret(self, *arguments: Any) -> Any:
        """Call the function itself. If that fails, or takes too long, nothing was done: then compile."""
        arrays = [a for a in arguments if isinstance(a, np.ndarray) and a.flags.writeable]
        before = [a.copy() for a in arrays]
        began = perf_counter()
        _interpreting.until = began + self._left()
        try:
            with clock.stopped(), np.errstate(all="ignore"):
                return _plain(self.compiled.py_func(*arguments))
        except BaseException as error:
            for array, old in zip(arrays, before, strict=True):
                array[...] = old
            if not isinstance(error, Exception):
                raise
        finally:
            _interpreting.until = None
            self._spend(perf_counter() - began)
        self._give_up()
        return self.compiled(*arguments)

    def _spend(self, seconds: float) -> None:
        with _account:
            self.spent += seconds
            _Tiers.together += seconds if self.spent < math.inf else 0.0
        if self.spent >= ALLOWANCE:
            self._give_up()

    def _give_up(self) -> None:
        """From now on compile. What this kernel has spent is no longer at the others' expense."""
        with _account:
            if self.spent < math.inf:
                _Tiers.together -= self.spent
                self.spent = math.inf


def _are_small(arguments: tuple[Any, ...]) -> bool:
    """Whether arguments are numbers, None and arrays, and these of few numbers."""
    total = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            total += argument.size
        elif not (argument is None or isinstance(argument, NUMBERS)):
            return False
    return total <= SMALL


def _plain(value: Any) -> Any:
    """What compiled code would return: Python's numbers, where NumPy's come out of arrays."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


class _Cache(FunctionCache):
    """Numba's cache of a function, stamped with the content of all that is compiled into it.

    Numba's own stamp is the file that the function is in. What a function calls may be defined after it, so
    the stamp is made when machine code is first asked for.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Machine code for arguments of given types, or None."""
        self._cache_file._source_stamp = code_hash([self._py_func])
        return super().load_overload(sig, target_context)

    def has(self, sig: Any, target_context: Any) -> bool:
        """Whether there is machine code for arguments of given types."""
        self._cache_file._source_stamp = code_hash([self._py_func])
        with self._guard_against_spurious_io_errors():
            return self._index_key(sig, target_context.codegen()) in self._cache_file._load_index()
        return False


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
        # Machine code on disk imports the modules of its functions by name.
        for part in (function.__module__, function.__code__, function.__defaults__):
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
