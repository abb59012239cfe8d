"""Dask arrays and frames as an engine: tasks run where the partitions are.

A pass submits one task per partition, on the active client or, without one, on the local scheduler of Dask.
Only results travel: the collection is never converted to one array. Arguments are part of the graph, so they
are not lost with a worker.
"""

from __future__ import annotations

import sys
from functools import reduce as fold
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime.optional import optional
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.sources.engine import Chunk, LostEngineError, Merge, Task, array_labels
from optdesign.tables.columns import Labels, column, is_single, lookup

TRIES, WAIT = 3, 0.2
"""Times that a failed pass is submitted, and seconds between two checks for stops in a pass."""


class DaskEngine:
    """Rows of a Dask array or frame; groups and parameter blocks are names of columns of a frame."""

    names: tuple[str, ...] | None = None
    ordered = False, False

    def __init__(self, collection: Any, groups: Any = None, parameter_blocks: Any = None) -> None:
        self.columns = {"groups": groups, "parameter_blocks": parameter_blocks}
        self.labels = groups is not None, parameter_blocks is not None
        frame = hasattr(collection, "columns")
        for argument, name in self.columns.items():
            if name is not None and not (frame and isinstance(name, str)):
                raise InputError(
                    argument,
                    "must be the name of a column of a Dask frame",
                    f"got {type(name).__name__}",
                    "Put the labels and the features into one Dask frame.",
                )
            if name is not None:
                lookup(dict.fromkeys(collection.columns), name, argument, "the frame")
        if frame:
            taken = set(self.columns.values())
            self.names = tuple(str(name) for name in collection.columns if name not in taken)
            self.is_single = any(is_single(collection._meta[name]) for name in self.names)
            self.parts = collection.to_delayed()
        else:
            self.is_single = is_single(collection)
            self.parts = list(collection.rechunk({1: -1}).to_delayed().reshape(-1))
        self.dim = len(self.names) if self.names is not None else int(collection.shape[1])
        sizes = [size for _, size in sorted(self._each(_size, ()))]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        self.n_rows = self.starts[-1]

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of all partitions; ``features`` are always read."""
        results = self._each(_run, (task, args, self.columns, self.names if features else ()), self.starts)
        return fold(merge, (result for _, result in results if result is not None))

    def _each(self, work: Any, args: tuple[Any, ...], starts: Any = None) -> list[Any]:
        """Return what ``work(part, first, *args)`` returns for every partition, with its number."""
        dask = optional("dask", "Dask collections need", "dask")
        shared = dask.delayed(args, traverse=False)
        firsts = range(len(self.parts)) if starts is None else starts
        tasks = [
            dask.delayed(_numbered)(work, k, part, first, shared)
            for k, (part, first) in enumerate(zip(self.parts, firsts, strict=False))
        ]
        client = _client()
        if client is None:
            out: list[Any] = []
            for k in range(0, len(tasks), 8):
                raise_if_stopped()
                out += dask.compute(*tasks[k : k + 8])
            return out
        return _on_cluster(client, tasks)


def _client() -> Any:
    """Return the active client of Dask, or None."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:
        return None


def _on_cluster(client: Any, tasks: list[Any]) -> list[Any]:
    """Return the results of tasks on a cluster; a pass that fails with a worker is submitted again."""
    distributed = sys.modules["distributed"]
    last: Exception | None = None
    for _ in range(TRIES):
        futures = client.compute(tasks)
        try:
            while not all(future.done() for future in futures):
                raise_if_stopped()
                try:
                    distributed.wait(futures, timeout=WAIT)
                except TimeoutError:
                    continue
            return list(client.gather(futures))
        except (distributed.KilledWorker, distributed.client.FutureCancelledError, OSError) as error:
            last = error
        finally:
            client.cancel(futures)
    raise LostEngineError(f"the cluster of Dask must run a pass; it failed {TRIES} times. {last}") from last


def _numbered(work: Any, k: int, part: Any, first: int, args: tuple[Any, ...]) -> tuple[int, Any]:
    return k, work(part, first, *args)


def _size(part: Any, _: int) -> int:
    return len(part)


def _run(part: Any, first: int, task: Task, args: Any, columns: dict[str, Any], names: Any) -> Any:
    """Run a task on a partition; None if it has no rows."""
    if not len(part):
        return None
    x = part if names is None else part[list(names)].to_numpy()
    x = np.asarray(x)
    x = np.ascontiguousarray(x, x.dtype if x.dtype in (np.float32, np.float64) else np.float64)
    labels = (
        None if name is None else _labels(part[name], argument, first) for argument, name in columns.items()
    )
    return task(Chunk(first, x, *labels), *args)


def _labels(values: Any, argument: str, first: int) -> Labels:
    """Return the labels of a partition, numbered in it."""
    array = column(values, argument)[0]
    if array.dtype.kind in "iu":
        return Labels(*np.unique(array, return_inverse=True))
    found = array_labels(array, argument, first)
    assert isinstance(found, Labels)
    return found
