"""Run kernels as plain Python first and as machine code later.

Compiling the kernels of a small solve takes 9 s; plain Python solves a 60 x 3 problem in 0.02 s. A kernel
without machine code, in memory or on disk, therefore runs as the Python function that it is written in if its
arrays are small. The hand-over follows two rules:

1. Nothing is compiled until plain Python has taken ALLOWANCE seconds, summed over all kernels and processes.
2. From then on a kernel is compiled, at its next call, once it has taken OWN seconds in the same sense.

A call counts at least SHORTEST seconds. So the first solves after the allowance compile every kernel that
such solves use, and a kernel that is called a few times in a long solve is not compiled. The sums are kept in
a file beside the machine code: a script of 1 s would otherwise start at zero every time. The calling thread
compiles: a background thread would compete for the interpreter lock, and a fork would inherit Numba's lock.

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
from time import perf_counter
from typing import Any

import numpy as np
from numba.core.caching import FunctionCache

from optdesign.runtime import clock

enabled = os.environ.get("OPTDESIGN_TIERS") != "0"
"""False if kernels are compiled at their first call."""

ALLOWANCE = 1.0
"""Seconds of plain Python, over all kernels and processes, before the first kernel is compiled."""

OWN, SHORTEST = 0.01, 0.0002
"""Seconds of a kernel after which it is compiled, and least seconds of a call: 50 short calls are enough."""

SMALL = 50_000
"""Largest number of entries in the arrays of a call that runs as plain Python."""

FIRST_SAVE = 0.01
"""Seconds after which a process first saves its sums; it saves again after 0.02 s, 0.04 s and so on."""

MOST_KERNELS = 2000  # in a file, over all versions of their code; a file with more is started again
NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)

_call = threading.local()  # deadline: when the outermost plain Python call of this thread must end, or None


class _TooLong(Exception):
    """Raised in a kernel that has run as plain Python for as long as it may."""


class Account:
    """Seconds of plain Python by kernel, summed over all processes that use the same file."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.seconds = path, _read(path)
        self.total = sum(self.seconds.values())
        self.start_process()

    def start_process(self) -> None:
        """Start with nothing to save. A forked child leaves the seconds of its parent to the parent."""
        self.lock = threading.Lock()
        self.unsaved: dict[str, float] = {}
        self.next_save = FIRST_SAVE

    def left(self, kernel: str) -> float:
        """Return the seconds for which a kernel may still run as plain Python, 0 or less if none."""
        if self.total < ALLOWANCE:
            return ALLOWANCE - self.total
        return OWN - self.seconds.get(kernel, 0.0)

    def add(self, kernel: str, seconds: float) -> None:
        """Add a call of a kernel."""
        with self.lock:
            for sums in (self.seconds, self.unsaved):
                sums[kernel] = sums.get(kernel, 0.0) + max(seconds, SHORTEST)
            self.total += max(seconds, SHORTEST)
            if self.path is not None and sum(self.unsaved.values()) >= self.next_save:
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
            self.unsaved, self.seconds, self.total = {}, stored, sum(stored.values())


def _read(path: Path | None) -> dict[str, float]:
    """Return the seconds in a file, without any if there is no file or its content is damaged."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        stored = json.loads(path.read_text()) if path is not None else {}
        if len(stored) <= MOST_KERNELS:
            return {kernel: float(seconds) for kernel, seconds in stored.items()}
    return {}


def _path() -> Path | None:
    """Return the file of the account, in Numba's cache directory; None if no directory can be written to."""
    with suppress(RuntimeError):
        return Path(FunctionCache(_path).cache_path) / "plain_python.json"
    return None


account = Account(_path())

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: account.start_process())


class Tiers:
    """Decide for each call of one kernel without machine code in memory how it runs.

    Kernels that are called by a kernel that runs as plain Python do so too, on the time of the outermost.
    """

    def __init__(self, compiled: Any, compile: Callable[..., Any]) -> None:
        self.compiled, self.compile = compiled, compile
        self.name, self.failed = "", False
        self.missing: set[tuple[Any, ...]] = set()  # types of arguments without machine code on disk

    def __call__(self, *arguments: Any) -> Callable[..., Any]:
        """Return the function that Numba calls with the arguments."""
        deadline = getattr(_call, "deadline", None)
        if deadline is not None:
            if perf_counter() > deadline:
                raise _TooLong
            return self.compiled.py_func
        if not enabled or self.failed or not _are_small(arguments):
            return self.compile(*arguments)
        with clock.first_use():
            is_plain = self._is_missing(arguments) and account.left(self.name) > 0.0
        return self.interpret if is_plain else self.compile(*arguments)

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
        began = perf_counter()
        _call.deadline = began + account.left(self.name)
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
            account.add(self.name, perf_counter() - began)
        self.failed = True
        return self.compiled(*arguments)


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
