"""Compile kernels, and keep their machine code on disk.

:func:`kernel` is the decorator of every compiled function. It is public: packages that build on optdesign use
it for their own kernels, and these then share the cache, the tiers and the clock described here.

*Rules for kernels.* They take arrays and scalars only, trust their input, never raise, and state in their
docstring which arguments they overwrite. They release the interpreter lock and divide as NumPy does. A kernel
that Python calls returns scalars or one array, never a tuple with an array: an interrupt while such a tuple
is built is a SystemError.

*Time to compile.* Numba and then LLVM compile a kernel in time that grows with the code that goes into it,
and functions of NumPy are code: most of ``a[:] = b`` for arrays of three dimensions is the error message for
shapes that differ. So kernels have loops over scalars, few ways to make an array, and no argument whose type
varies. The wrapper by which C could call a kernel is left out.

*First calls.* A kernel on small arrays runs as plain Python before it is compiled (:mod:`.tiers`). Its first
use is excluded from time limits (:mod:`.clock`).

*The cache.* Numba compiles functions and constants of other files into a kernel, but checks the kernel's own
file only. Here machine code is identified by a hash of all code and all constants that went into it. Not seen
are implementations that are registered with ``numba.extending``, and attributes found by computed names.

*Private parts of Numba.* The hooks below are not part of Numba's public interface. pyproject.toml pins Numba
to the range in which they were tested, and tests/optdesign/runtime/test_numba_hooks.py fails if they move.

Public for packages that build on this one: :func:`kernel`, :func:`uncached`, :func:`inlined` and
:func:`code_hash`.
"""

from __future__ import annotations

import enum
import hashlib
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import numpy as np
from numba import config, njit
from numba import types as numba_types
from numba.core.caching import FunctionCache, NullCache

from optdesign.runtime import clock
from optdesign.runtime.stopping import DeferredInterrupt, raise_if_stopped
from optdesign.runtime.tiers import Tiers

__all__ = ["code_hash", "inlined", "kernel", "uncached"]

CONSTANTS = (
    *(bool, int, float, complex, str, bytes, slice, frozenset, type(None)),
    *(np.generic, np.dtype, numba_types.Type),
)
"""Types of globals whose text states the values that are compiled into a kernel."""

kernels: WeakSet[Any] = WeakSet()
"""Every kernel of this process, also those of other packages."""


def kernel(function: Callable[..., Any]) -> Any:
    """Return a function that is compiled when that saves time, with machine code that is kept on disk.

    Parameters
    ----------
    function : callable
        Function of arrays and scalars that Numba can compile.

    Returns
    -------
    callable
        Function with the same arguments and result.

    See Also
    --------
    optdesign.runtime.jit.uncached : Compile for the lifetime of the process.
    optdesign.runtime.jit.inlined : Copy a function into the kernels that call it.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def total(x):
    ...     s = 0.0
    ...     for k in range(len(x)):
    ...         s += x[k]
    ...     return s
    >>> total(np.arange(4.0))
    6.0
    """
    compiled = uncached(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        # If no directory can be written to, machine code lasts as long as the process.
        with suppress(RuntimeError):
            compiled._cache = _Cache(function)
        compiled._compile_for_args = Tiers(compiled, compiled._compile_for_args)
        kernels.add(compiled)
    return compiled


def uncached(function: Callable[..., Any]) -> Any:
    """Return a function that is compiled at its first call, for the lifetime of the process.

    Parameters
    ----------
    function : callable
        Function of arrays and scalars that Numba can compile.

    Returns
    -------
    callable
        Function with the same arguments and result.

    See Also
    --------
    optdesign.runtime.jit.kernel : Keep the machine code on disk.

    Examples
    --------
    >>> @uncached
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    compiled: Any = njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)  # type: ignore[call-overload]
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]
        compiled._cache = _NoCache(function)
        # Numba calls this if it has no machine code in memory, and then calls what it returns.
        compiled._compile_for_args = _Compile(compiled)
    return compiled


def inlined(function: Callable[..., Any]) -> Any:
    """Return a function that is copied into the kernels that call it.

    A call with a tuple of many arrays is slow, because each array is counted as a reference.

    Parameters
    ----------
    function : callable
        Function of arrays and scalars that Numba can compile.

    Returns
    -------
    callable
        Function with the same arguments and result.

    See Also
    --------
    optdesign.runtime.jit.kernel : Compile a function.

    Examples
    --------
    >>> @inlined
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """
    return njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, inline="always")(function)  # type: ignore[call-overload]


class _Compile:
    """Compile a kernel, or load its machine code from disk, as first use on the clock.

    Compilers do not expect interrupts: Ctrl-C is raised before or after them.
    """

    def __init__(self, compiled: Any) -> None:
        self.for_arguments, self.compiled = compiled._compile_for_args, compiled

    def __call__(self, *arguments: Any) -> Callable[..., Any]:
        """Return the machine code for arguments."""
        return self._uninterrupted(self.for_arguments, *arguments)

    def for_types(self, types: tuple[Any, ...]) -> Callable[..., Any]:
        """Return the machine code for arguments of given types."""
        return self._uninterrupted(self.compiled.compile, types)

    def _uninterrupted(self, compile: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
        raise_if_stopped()
        with clock.compiling(), DeferredInterrupt() as interrupted:
            code = compile(*arguments)
        if interrupted:
            raise KeyboardInterrupt
        return code


class _NoCache(NullCache):
    """The cache of a function whose machine code is not kept."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def load_overload(self, sig: Any, target_context: Any) -> None:  # noqa: ARG002
        """Announce that Numba compiles next, because there is no machine code."""
        clock.announce_compilation()

    def has(self, *_: Any) -> bool:
        """Return False."""
        return False

    def count(self) -> int:
        """Return 0, the number of versions on disk."""
        return 0

    def stamp(self) -> str:
        """Return the hash of all that is compiled into the function."""
        return code_hash([self.function])


class _Cache(FunctionCache):
    """Numba's cache of a function, stamped with the content of everything that is compiled into it.

    Numba's own stamp is the file that defines the function. The functions that it calls may be defined later,
    so the stamp is computed when machine code is first looked up.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for arguments of given types; None, after an announcement, if missing."""
        self._cache_file._source_stamp = self.stamp()
        found = super().load_overload(sig, target_context)
        if found is None:
            clock.announce_compilation()
        return found

    def has(self, sig: Any, target_context: Any) -> bool:
        """Return True if there is machine code for arguments of given types."""
        return self._index_key(sig, target_context.codegen()) in self._index()

    def count(self) -> int:
        """Return the number of versions on disk, one for each combination of argument types."""
        return len(self._index())

    def _index(self) -> dict[Any, Any]:
        self._cache_file._source_stamp = self.stamp()
        with self._guard_against_spurious_io_errors():
            return self._cache_file._load_index()
        return {}

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """Return Numba's key and the fields of named tuples, which are found by their positions."""
        return *super()._index_key(sig, codegen), *map(_fields, sig)

    def stamp(self) -> str:
        """Return the hash of all that is compiled into the function."""
        return code_hash([self._py_func])


def _fields(kind: Any) -> tuple[Any, ...]:
    """Return the names of the fields of a type, and those of the types within it."""
    return (*getattr(kind, "fields", ()), *map(_fields, getattr(kind, "types", ())))


def code_hash(functions: Iterable[Any]) -> str:
    """Return a hash of all code that is compiled into functions.

    It covers their code, the functions they call, and constants.

    Parameters
    ----------
    functions : iterable of callable
        Functions.

    Returns
    -------
    str
        Hexadecimal digits.

    See Also
    --------
    optdesign.runtime.jit.kernel : Compile a function.

    Examples
    --------
    >>> def f(x):
    ...     return x + 1
    >>> def g(x):
    ...     return x + 2
    >>> code_hash([f]) == code_hash([f]), code_hash([f]) == code_hash([g])
    (True, False)
    """
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
        left += _functions(function.__defaults__)
        for name, value in _named(function):
            left += _functions(value)
            whole.update(name.encode() + _content(value))
    return whole.hexdigest()


def _functions(value: Any) -> list[Any]:
    """Return a value if it is a function, or the functions in a tuple."""
    if isinstance(value, tuple):
        return [function for part in value for function in _functions(part)]
    return [value] if isinstance(value, types.FunctionType) or hasattr(value, "py_func") else []


def _named(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that a function reads from outside, also those within modules."""
    code = function.__code__
    names = [*code.co_freevars, *_names(code)]
    closure = zip(code.co_freevars, function.__closure__ or (), strict=True)
    spaces = [function.__globals__, {name: cell.cell_contents for name, cell in closure}]
    seen: set[int] = set()
    while spaces:
        space = spaces.pop()
        for name in names:
            value = space.get(name)
            if not isinstance(value, types.ModuleType):
                if name in space:
                    yield name, value
            elif id(value) not in seen:
                seen.add(id(value))
                spaces.append(vars(value))


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in code, and in functions defined within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _content(thing: Any) -> bytes:
    """Return a constant or code as bytes, the same in every process and for every file and line."""
    if isinstance(thing, types.CodeType):
        parts = (thing.co_code, thing.co_consts, thing.co_names, thing.co_varnames, thing.co_freevars)
        return b"code" + _content(parts)
    if isinstance(thing, tuple):
        inner = [_content(part) for part in (*thing, *getattr(thing, "_fields", ()))]
        return b"tuple" + b"".join(len(part).to_bytes(8, "big") + part for part in inner)
    if isinstance(thing, np.ndarray):
        return f"array {thing.dtype.descr} {thing.shape}".encode() + thing.tobytes()
    if isinstance(thing, enum.Enum):
        return b"member" + _content((thing.name, thing.value))
    if isinstance(thing, enum.EnumMeta):
        members: Any = thing.__members__.items()
        return b"members" + _content(tuple((name, member.value) for name, member in members))
    if isinstance(thing, CONSTANTS):
        return f"{type(thing).__qualname__} {thing!r}".encode()
    # A class, such as float32 or one of named tuples, or a function, such as argmax.
    attributes = ("__module__", "__name__", "_fields", "_field_defaults")
    return f"{type(thing).__qualname__} {[getattr(thing, name, '') for name in attributes]}".encode()
