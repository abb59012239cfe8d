"""Run kernels as plain Python first and as machine code later.

Compiling the kernels of a small solve takes 9 s; plain Python solves a 60 x 3 problem in 0.02 s. A kernel
without machine code, in memory or on disk, therefore runs as the Python function that it is written in if its
arrays are small. The hand-over follows two rules:

1. Nothing is compiled until plain Python has taken ALLOWANCE seconds, summed over all kernels and processes.
2. From then on a kernel is due once it has taken OWN seconds or OWN_CALLS calls. The next call of a kernel
   that is due compiles it, and all others that are due, so that one solve bears all of it.

So the kernels of many small solves are compiled together, and a kernel that is called a few times in one long
solve is not compiled. The sums are kept in a file beside the machine code: a script of 1 s would otherwise
start at zero every time. The calling thread compiles: a background thread would compete for the interpreter
lock, and a fork would inherit Numba's lock.

A call that takes too long, or raises an error where machine code does not, as in a division by zero, is
undone and repeated as machine code. Results are the same to the last digit, because kernels compute
everything in one way: ``x * x`` for ``x**2``, ``math.log`` for ``np.log``, loops for sums of arrays.

OPTDESIGN_TIERS=0 in the environment switches plain Python off: kernels are compiled at their first call.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any
from weakref import WeakSet

import numpy as np
from numba.core.caching import FunctionCache

from optdesign.runtime import clock

enabled = os.environ.get("OPTDESIGN_TIERS") != "0"  # if not, kernels are compiled at their first call

ALLOWANCE = 1.0
"""Seconds of plain Python, over all kernels and processes, before the first kernel is compiled."""

OWN, OWN_CALLS = 0.25, 20
"""Seconds or calls of a kernel after which it is compiled, once the allowance is used up."""

SMALL = 50_000
"""Largest number of entries in the arrays of a call that runs as plain Python."""

TOTAL, MOST_KERNELS = "all kernels", 2000  # a key of the file, and most keys; with more it is started again
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)

_call = threading.local()  # deadline: when the outermost plain Python call of this thread must end, or None
_kernels: WeakSet[Tiers] = WeakSet()


class _TooLong(Exception):
    """Raised in a kernel that has run as plain Python for as long as it may."""


class Account:
    """Seconds of plain Python by kernel and in total, summed over all processes that use the same file."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.seconds = path, _read(path)
        self.start_process()

    def start_process(self, first_save: float = 0.01) -> None:
        """Start with nothing to save. A forked child leaves the seconds of its parent to the parent.

        Sums are saved after ``first_save`` seconds and, again and again, after twice as many.
        """
        self.lock, self.next_save = threading.Lock(), first_save
        self.unsaved: dict[str, float] = {}

    def left(self, kernel: str) -> float:
        """Return the seconds for which a kernel may still run as plain Python, 0 or less if it is due."""
        return max(ALLOWANCE - self.seconds.get(TOTAL, 0.0), OWN - self.seconds.get(kernel, 0.0))

    def add(self, kernel: str, seconds: float) -> None:
        """Add a call of a kernel. A short one counts as OWN / OWN_CALLS for the kernel, not for the total."""
        with self.lock:
            for sums in (self.seconds, self.unsaved):
                sums[kernel] = sums.get(kernel, 0.0) + max(seconds, OWN / OWN_CALLS)
                sums[TOTAL] = sums.get(TOTAL, 0.0) + seconds
            if self.path is not None and self.unsaved[TOTAL] >= self.next_save:
                self.next_save *= 2
                self._save(self.path)

    def _save(self, path: Path) -> None:
        """Add the unsaved seconds to the file. Those of a process that saves meanwhile may be lost."""
        stored = _read(path)
        for kernel, seconds in self.unsaved.items():
            stored[kernel] = stored.get(kernel, 0.0) + seconds
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(stored))
            os.replace(temporary, path)
            self.unsaved, self.seconds = {}, stored


def _read(path: Path | None) -> dict[str, float]:
    """Return the seconds in a file, without any if there is no file or its content is damaged."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        stored = json.loads(path.read_text()) if path is not None else {}
        if len(stored) <= MOST_KERNELS:
            return {kernel: float(seconds) for kernel, seconds in stored.items()}
    return {}


account = Account(None)
with suppress(RuntimeError):  # no directory can be written to
    account = Account(Path(FunctionCache(_read).cache_path) / "plain_python.json")

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: account.start_process())


class Tiers:
    """Decide how a call of one kernel runs. Kernels that plain Python calls run as plain Python, too."""

    def __init__(self, compiled: Any, compile: Any) -> None:
        self.compiled, self.compile = compiled, compile
        self.name, self.failed = "", False
        self.missing: set[tuple[Any, ...]] = set()  # types of arguments without machine code on disk
        _kernels.add(self)

    def __call__(self, *arguments: Any) -> Callable[..., Any]:
        """Return the function that Numba calls with the arguments."""
        deadline = getattr(_call, "deadline", None)
        if deadline is not None:
            if perf_counter() > deadline:
                raise _TooLong
            return self.compiled.py_func
        if enabled and not self.failed and _are_small(arguments):
            with clock.first_use():
                is_missing = self._is_missing(arguments)
            if is_missing and account.left(self.name) > 0.0:
                return self.interpret
            _compile_due()
        return self.compile(*arguments)

    def _is_missing(self, arguments: tuple[Any, ...]) -> bool:
        """Return True if there is no machine code on disk for arguments of these types."""
        types = tuple(map(self.compiled.typeof_pyval, arguments))
        if types not in self.missing:
            cache, function = self.compiled._cache, self.compiled.py_func
            if cache.has(types, self.compiled.targetctx):
                return False
            self.missing.add(types)
            self.name = f"{function.__module__}.{function.__qualname__} {cache.stamp()[:16]}"
        return True

    def interpret(self, *arguments: Any) -> Any:
        """Call the function itself. Undo and compile if that fails or takes too long."""
        arrays = [a for a in arguments if isinstance(a, np.ndarray) and a.flags.writeable]
        before = [a.copy() for a in arrays]
        began = thread_time()  # other programs on the machine make no difference
        _call.deadline = perf_counter() + account.left(self.name)
        try:
            with clock.first_use(), np.errstate(all="ignore"):
                return _as_compiled(self.compiled.py_func(*arguments))
        except BaseException as error:
            for array, old in zip(arrays, before, strict=True):
                array[...] = old
            if not isinstance(error, Exception):
                raise
        finally:
            _call.deadline = None
            account.add(self.name, thread_time() - began)
        self.failed = True
        return self.compiled(*arguments)


def _compile_due() -> None:
    """Compile every kernel that is due, for all types of arguments that it has had."""
    for kernel in list(_kernels):
        for types in list(kernel.missing) if account.left(kernel.name) <= 0.0 else ():
            kernel.compile.for_types(types)
            kernel.missing.discard(types)


def _are_small(arguments: tuple[Any, ...]) -> bool:
    """Return True if all arguments are numbers, None or arrays, and the arrays have few entries."""
    total = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            total += argument.size
        elif not (argument is None or isinstance(argument, NUMBERS)):
            return False
    return total <= SMALL


def _as_compiled(value: Any) -> Any:
    """Return the value with numbers of Python, as machine code does, instead of numbers of NumPy."""
    if isinstance(value, np.generic):
        return value.item()
    return tuple(map(_as_compiled, value)) if isinstance(value, tuple) else value
