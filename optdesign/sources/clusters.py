"""Dask arrays and frames as an engine: tasks run where the partitions are.

A pass submits a few shards per thread of a worker, on the active client; without one, threads of this process
work on the partitions. A shard is a range of partitions. It makes one partition after the other, so that a
worker needs memory for one only, and returns the merged result; a worker merges the results of its shards.
Only results and arguments travel, by value: arguments that are scattered would be lost with their holder. The
collection is never converted to one array.
"""

from __future__ import annotations

import sys
import time
import zlib
from functools import reduce as fold
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime import clock, threads
from optdesign.runtime.optional import optional
from optdesign.runtime.progress import rows_read
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.sources.engine import Chunk, LostEngineError, Merge, Task
from optdesign.sources.layout import ARGUMENTS, Layout
from optdesign.sources.packing import pack, unpack
from optdesign.tables.columns import is_single, listed, lookup
from optdesign.tables.files import COUNTERS, ROW_NAMES, SHORTEST_COUNT

TRIES, WAIT = 3, 0.2
"""Times that a failed pass is submitted, and seconds between two checks for stops in a pass."""

WORKER_PATIENCE = 60.0
"""Seconds without a worker after which a cluster counts as lost."""

NO_WORKER = f"the cluster of Dask must have a worker; it has had none for {WORKER_PATIENCE:g} s"

SHARDS = 2
"""Shards per thread of a worker: a worker that is lost costs one of them per thread."""


class Partition(NamedTuple):
    """How to make a partition."""

    number: int
    graph: dict[Any, Any]
    """The tasks that make it; empty if it is the result of other tasks of the cluster."""
    key: Any


class Moved(NamedTuple):
    """Bytes of arguments and of results of a pass on a cluster, without those of the tasks themselves."""

    workers: int
    arguments: int
    results: int


class DaskEngine:
    """Rows of a Dask array or frame; groups and parameter blocks are names of columns of a frame."""

    names: tuple[str, ...] | None = None

    def __init__(self, collection: Any, groups: Any = None, parameter_blocks: Any = None) -> None:
        self.labels = groups is not None, parameter_blocks is not None
        self.moved: list[Moved] = []
        """Data that every pass on a cluster has moved."""
        frame = hasattr(collection, "columns")
        for argument, name in zip(ARGUMENTS, (groups, parameter_blocks), strict=True):
            if name is not None and not (frame and isinstance(name, str)):
                raise InputError(
                    argument,
                    "must be the name of a column of a Dask frame",
                    f"got {type(name).__name__}",
                    "Put the labels and the features into one Dask frame.",
                )
            if name is not None:
                lookup(dict.fromkeys(collection.columns), name, argument, "the frame")
        self.layout: Layout | None = None
        self.ordered = False, False
        if frame:
            self.layout, self.is_single = _layout(collection, groups, parameter_blocks)
            self.names = self.layout.names
            group_order, block_order = (
                name is not None and hasattr(collection._meta[name], "cat")
                and hasattr(collection._meta[name].cat, "categories")
                for name in (groups, parameter_blocks)
            )  # fmt: skip
            self.ordered = group_order, block_order
            self.parts = list(collection.to_delayed())
        else:
            if collection.ndim != 2 or collection.dtype.kind not in "buif":
                raise InputError(
                    "candidates",
                    "must have shape (N, d) and real numbers",
                    f"got {collection.dtype} of shape {collection.shape}",
                    "Put one candidate a row.",
                )
            self.is_single = is_single(collection)
            self.parts = list(collection.rechunk({1: -1}).to_delayed().reshape(-1))
        self.dim = len(self.names) if self.names is not None else int(collection.shape[1])
        self.partitions = _partitions(self.parts)
        self.graphs: dict[tuple[int, int], bytes] = {}
        self.n_rows, self.starts = 0, [0] * (len(self.parts) + 1)
        known = [] if frame else list(collection.chunks[0])
        if not known or any(size != size for size in known):
            known = [size for _, size in sorted(self._reduce(_sizes, _add, ()))]
        self.starts = np.concatenate([[0], np.cumsum(known, dtype=np.int64)]).tolist()
        self.n_rows = self.starts[-1]
        self._refuse_row_names()

    def _refuse_row_names(self) -> None:
        """Raise InputError if a feature only names rows, as frames in memory leave it out."""
        for name in self.names or ():
            named = ROW_NAMES.fullmatch(name) is not None
            if named or (COUNTERS.fullmatch(name) and self._counts(name)):
                raise InputError(
                    "candidates",
                    "must have features",
                    f"column {name!r} {'names' if named else 'counts'} the rows",
                    f"Drop it, frame.drop(columns=[{name!r}]), or rename it if it is a feature.",
                )

    def _counts(self, name: str) -> bool:
        """Return True if a column is 0, 1, 2, ... or 1, 2, 3, ..."""
        return self.n_rows >= SHORTEST_COUNT and any(self._reduce(_counting, _both, (name,)))

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of all partitions; ``features`` are always read of an array."""
        return self._reduce(_run, merge, (task, args, self.layout, features))

    def place(self, row: int) -> str:
        """Return the partition of a candidate and its row there."""
        k = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"row {row - self.starts[k] + 1} of partition {k + 1}"

    def _reduce(self, work: Any, merge: Merge, args: tuple[Any, ...]) -> Any:
        """Return the merged results of ``work(part, number, first, *args)`` for every partition."""
        client = _client()
        if client is not None:
            return self._on_cluster(client, work, merge, args)
        done = rows_read(self.n_rows)
        graphs = all(partition.graph for partition in self.partitions)
        dask = optional("dask", "Dask collections need", "dask")

        def fold_part(low: int, high: int) -> Any:
            results = []
            for k in range(low, high):
                raise_if_stopped()
                part = _made(self.partitions[k]) if graphs else dask.compute(self.parts[k])[0]
                results.append(work(part, k, self.starts[k], *args))
                done(self.starts[k + 1] - self.starts[k])
            return _folded(merge, results)

        return _folded(merge, threads.in_order(fold_part, len(self.parts), 1, threads.PIECE // 2))

    def _on_cluster(self, client: Any, work: Any, merge: Merge, args: tuple[Any, ...]) -> Any:
        """Return the merged results of a pass; a pass that fails with a worker is submitted again."""
        distributed = sys.modules["distributed"]
        last: BaseException | None = None
        for _ in range(TRIES):
            try:
                return self._pass(client, work, merge, args)
            except (distributed.KilledWorker, distributed.client.FutureCancelledError, OSError) as error:
                last = error
        raise LostEngineError(
            f"the cluster of Dask must run a pass; it failed {TRIES} times. {last}"
        ) from last

    def _pass(self, client: Any, work: Any, merge: Merge, args: tuple[Any, ...]) -> Any:
        """Submit the shards of a pass, wait for them in short steps, and return the merged result."""
        workers = _workers(client)
        given, merging = pack((work, args, merge)), pack(merge)
        done, waiting = rows_read(self.n_rows), []
        futures: list[Any] = []
        began, first_use = time.perf_counter(), clock.first_use_seconds()
        try:
            bounds = _bounds(len(self.parts), [threads * SHARDS for threads in workers.values()])
            for worker, own in zip(workers, bounds, strict=True):
                options = {"workers": [worker], "allow_other_workers": True, "pure": False}
                shards = []
                for low, high in own:
                    futures_of = [
                        None if partition.graph else client.compute(self.parts[partition.number])
                        for partition in self.partitions[low:high]
                    ]
                    starts = self.starts[low:high]
                    shard = client.submit(
                        _shard, given, self._packed(low, high), starts, *futures_of, **options
                    )
                    shards.append(shard)
                    waiting.append((shard, self.starts[high] - self.starts[low]))
                futures.append(client.submit(_merged, merging, *shards, **options) if shards else None)
            futures = [future for future in futures if future is not None]
            self._wait(client, futures, waiting, done)
            packed = client.gather(futures)
        finally:
            if client.status == "running":
                client.cancel([*futures, *(shard for shard, _ in waiting)])
        results, seconds = zip(*map(unpack, packed), strict=True)
        spent = time.perf_counter() - began - (clock.first_use_seconds() - first_use)
        clock.add_first_use(min(spent, max(seconds)))  # the longest of a worker
        sizes = [len(given) * len(waiting), sum(map(len, packed))]
        self.moved.append(Moved(len(futures), *sizes))
        return _folded(merge, results)

    def _packed(self, low: int, high: int) -> bytes:
        """Return how to make some partitions, as bytes; functions of a notebook are packed by value."""
        if (low, high) not in self.graphs:
            packed = optional("cloudpickle", "Dask collections need", "dask").dumps(self.partitions[low:high])
            self.graphs[low, high] = zlib.compress(packed, 1)
        return self.graphs[low, high]

    def _wait(self, client: Any, futures: list[Any], waiting: list[tuple[Any, int]], done: Any) -> None:
        """Wait until all futures are done. Raise LostEngineError if the cluster has no worker for long."""
        distributed = sys.modules["distributed"]
        left, seen = list(waiting), time.monotonic()
        while not all(future.done() for future in futures):
            raise_if_stopped()
            for shard, rows in [pair for pair in left if pair[0].done()]:
                done(rows)
                left.remove((shard, rows))
            try:
                distributed.wait(futures, timeout=WAIT)
            except TimeoutError:
                if client.status == "running" and _workers(client, least=0):
                    seen = time.monotonic()
                elif time.monotonic() - seen > WORKER_PATIENCE:
                    raise LostEngineError(NO_WORKER) from None


def _layout(collection: Any, groups: str | None, parameter_blocks: str | None) -> tuple[Layout, bool]:
    """Return the roles of the columns of a frame, and True if a feature is in single precision."""
    meta = collection._meta
    if len(set(map(str, meta.columns))) < len(meta.columns):
        raise InputError(
            "candidates",
            "must have columns of different names",
            f"got {listed(meta.columns)}",
            "Rename one of them.",
        )
    names = tuple(name for name in meta.columns if name not in (groups, parameter_blocks))
    for name in names:
        if meta[name].dtype.kind not in "buif":
            raise InputError(
                "candidates",
                "must be numbers",
                f"column {name!r} is {meta[name].dtype}",
                "Name it as groups or parameter_blocks, or drop it: frame.drop(columns=...).",
            )
    single = [is_single(meta[name]) for name in names]
    kind: np.dtype[Any] = np.dtype(np.float32 if single and all(single) else np.float64)
    text = tuple(map(str, names))
    return Layout(text, text, (groups, parameter_blocks), kind), any(single)


def _partitions(parts: list[Any]) -> list[Partition]:
    """Return the tasks that make every partition by itself.

    They are empty if partitions have tasks in common, or are data already: then the cluster makes them.
    """
    optimization = optional("dask.optimization", "Dask collections need", "dask")
    graph: dict[Any, Any] = {}
    for part in parts:
        graph.update(part.__dask_graph__())
    try:
        alone = [dict(optimization.cull(graph, [part.key])[0]) for part in parts]
    except KeyError:  # a result that the cluster has is not a task of the graph
        alone = [{} for _ in parts]
    is_shared = sum(map(len, alone)) > len(set().union(*alone))
    if is_shared or any(_is_data(task) for task in graph.values()):
        alone = [{} for _ in parts]
    return [Partition(k, own, part.key) for k, (own, part) in enumerate(zip(alone, parts, strict=True))]


def _is_data(task: Any) -> bool:
    """Return True if an entry of a graph holds data, or refers to data on a worker."""
    return type(task).__name__ in ("DataNode", "Future") or isinstance(task, np.ndarray)


def _made(partition: Partition) -> Any:
    """Return a partition, computed in this thread."""
    from dask.local import get_sync

    return get_sync(partition.graph, partition.key)


def _bounds(n: int, shares: list[int]) -> list[list[tuple[int, int]]]:
    """Return the first and last partition of the shards of every worker, which are consecutive."""
    total = sum(shares)
    count, edges = min(n, total), np.cumsum([0, *shares])
    cuts = [n * k // count for k in range(count + 1)]
    return [
        [(cuts[k], cuts[k + 1]) for k in range(count * low // total, count * high // total)]
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def _client() -> Any:
    """Return the active client of Dask, or None."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else distributed.default_client()
    except ValueError:
        return None


def _workers(client: Any, least: int = 1) -> dict[str, int]:
    """Return the threads of every worker; wait until there is a worker."""
    began = time.monotonic()
    while True:
        raise_if_stopped()
        try:
            found = dict(sorted(client.nthreads().items()))
        except (OSError, AttributeError, RuntimeError) as error:
            raise LostEngineError(f"the cluster of Dask must answer; {error}") from error
        if len(found) >= least:
            return found
        if time.monotonic() - began > WORKER_PATIENCE:
            raise LostEngineError(
                f"the cluster of Dask must have a worker; it has had none for {WORKER_PATIENCE:g} s"
            )
        time.sleep(WAIT)


def _shard(given: bytes, packed: bytes, starts: list[int], *made: Any) -> bytes:
    """Return the packed result of a shard, and the seconds that it spent compiling. Runs on a worker."""
    before = clock.first_use_seconds()
    work, args, merge = unpack(given)
    results = (
        work(_made(partition) if partition.graph else part, partition.number, first, *args)
        for partition, part, first in zip(unpack(zlib.decompress(packed)), made, starts, strict=True)
    )
    return pack((_folded(merge, results), clock.first_use_seconds() - before))


def _merged(merging: bytes, *shards: bytes) -> bytes:
    """Return the packed result of several shards. Runs on a worker."""
    merge = unpack(merging)
    results, seconds = zip(*map(unpack, shards), strict=True)
    return pack((_folded(merge, results), max(seconds)))


def _folded(merge: Merge, results: Any) -> Any:
    """Return the merged results, None if there is none."""
    present = [result for result in results if result is not None]
    return fold(merge, present) if present else None


def _sizes(part: Any, number: int, _: int) -> list[tuple[int, int]]:
    return [(number, len(part))]


def _counting(part: Any, _: int, first: int, name: str) -> tuple[bool, bool]:
    """Return True for 0 and for 1 if a column of a partition counts the rows of the frame from there."""
    values = np.asarray(part[name])
    rows = np.arange(first, first + len(values))
    return np.array_equal(values, rows), np.array_equal(values, rows + 1)


def _both(one: tuple[bool, bool], other: tuple[bool, bool]) -> tuple[bool, bool]:
    return one[0] and other[0], one[1] and other[1]


def _add(one: Any, other: Any) -> Any:
    return one + other


def _run(
    part: Any, number: int, first: int, task: Task, args: Any, layout: Layout | None, features: bool
) -> Any:
    """Run a task on a partition; None if it has no rows."""
    if not len(part):
        return None
    if layout is not None:
        return task(
            layout.chunk(
                first, part, len(part), lambda k: f"row {k + 1} of partition {number + 1}", features
            ),
            *args,
        )
    x = np.asarray(part)
    x = np.ascontiguousarray(x, x.dtype if x.dtype in (np.float32, np.float64) else np.float64)
    return task(Chunk(first, x, None, None), *args)
