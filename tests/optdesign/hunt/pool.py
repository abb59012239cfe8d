"""Cases in processes of their own, so that a call without an end counts as a false claim."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from numba.core import event

from hunt.claims import Found

READY, COMPILED = "ready", "compiled"
"""Messages of a process that are not outcomes."""

WARM_UP = 300.0
"""Seconds that a new process has until it is ready: it imports the package and compiles kernels."""


WARM_UP_CASES = 10
"""Cases of the family WARM_UP of every target that a new process examines first."""


class Task(NamedTuple):
    """Cases of one family of a target, a module: seeds first, first + 1, ..., first + count - 1."""

    target: str
    family: str
    first: int
    count: int  # type: ignore[assignment]


class Case(NamedTuple):
    """One case and its outcome."""

    target: str
    family: str
    seed: int
    found: Found


def one(target: str, family: str, seed: int) -> Found:
    """Examine one case in this process. An exception is a false claim."""
    try:
        return import_module(target).case(family, seed)
    except Exception as error:
        where = error.__traceback__
        while where is not None and where.tb_next is not None:
            where = where.tb_next
        line = "" if where is None else f" in {where.tb_frame.f_code.co_name}, line {where.tb_lineno}"
        return Found("raised", f"{type(error).__name__}: {error}{line}")


class _Compilation(event.Listener):
    """Reports the end of every compilation, whose time does not count."""

    def __init__(self, send: Callable[[str], None]) -> None:
        self.send = send

    def on_start(self, _: Any) -> None:
        """Report nothing."""

    def on_end(self, _: Any) -> None:
        """Report a compilation."""
        self.send(COMPILED)


def _serve(connection: Connection, warm_up: tuple[str, ...]) -> None:
    """Examine tasks until the connection closes; send every outcome as soon as there is one."""
    lock = threading.Lock()  # kernels are compiled in threads, too

    def send(message: object) -> None:
        with lock:
            connection.send(message)

    event.register("numba:compile", _Compilation(send))
    for target in warm_up:
        module = import_module(target)
        for seed in range(WARM_UP_CASES):
            one(target, module.WARM_UP, seed)
    send(READY)
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        for seed in range(task.first, task.first + task.count):
            send(one(task.target, task.family, seed))


class _Process:
    """A process with a connection, the task at hand, and the time by which it must answer."""

    def __init__(self, warm_up: tuple[str, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, warm_up), daemon=True)
        self.process.start()
        other.close()
        self.task: Task | None = None
        self.is_ready = False
        self.deadline = time.monotonic() + WARM_UP

    def end(self) -> None:
        """End the process, whatever it does."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class Pool:
    """A number of processes that examine cases; use it in a ``with`` statement."""

    def __init__(self, jobs: int, limit: float, targets: tuple[str, ...]) -> None:
        self.jobs, self.limit, self.targets = jobs, limit, targets
        self._processes: list[_Process] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.end()
        self._processes.clear()

    def run(self, tasks: list[Task]) -> Iterator[Case]:
        """Yield the cases of the tasks, in the order in which they end."""
        waiting = list(reversed(tasks))
        busy: list[_Process] = []
        while waiting or busy:
            while waiting and len(busy) < self.jobs:
                process = self._free(busy)
                process.task = waiting.pop()
                if process.is_ready:
                    self._start(process)
                busy.append(process)
            wait([p.connection for p in busy], timeout=0.2)
            for process in list(busy):
                task = process.task
                assert task is not None
                if process.connection.poll():
                    try:
                        found = process.connection.recv()
                    except EOFError:
                        found = Found("no answer", "the process ended")
                elif time.monotonic() > process.deadline:
                    found = Found("no answer", f"no answer within {self.limit:g} s")
                else:
                    continue
                if found == COMPILED:
                    process.deadline = max(process.deadline, time.monotonic() + self.limit)
                    continue
                if found == READY:
                    process.is_ready = True
                    self._start(process)
                    continue
                if not process.is_ready:
                    raise RuntimeError(f"a process was not ready after {WARM_UP:g} s")
                yield Case(task.target, task.family, task.first, found)
                left = task._replace(first=task.first + 1, count=task.count - 1)
                process.task = left if left.count else None
                process.deadline = time.monotonic() + self.limit
                if found.status == "no answer":
                    process.end()
                    self._processes.remove(process)
                    busy.remove(process)
                    if left.count:
                        waiting.append(left)
                elif not left.count:
                    busy.remove(process)

    def _free(self, busy: list[_Process]) -> _Process:
        for process in self._processes:
            if process not in busy:
                return process
        process = _Process(self.targets)
        self._processes.append(process)
        return process

    def _start(self, process: _Process) -> None:
        process.connection.send(process.task)
        process.deadline = time.monotonic() + self.limit
