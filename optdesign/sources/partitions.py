"""Functions that run on the partitions of a Dask collection, beside the data.

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
from collections.abc import Sequence
from functools import reduce as fold
from typing import Any, NamedTuple

import numpy as np

from optdesign.runtime import clock, threads
from optdesign.runtime.optional import optional
from optdesign.runtime.progress import rows_read
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.sources.engine import LostEngineError, Merge
from optdesign.sources.packing import pack, unpack


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


class Partitions:
    """The partitions of a Dask array or frame."""

    tries = 3
    """Times that a failed pass is submitted."""
    patience = 60.0
    """Seconds without a worker after which a cluster counts as lost."""
    shards = 2
    """Shards per thread of a worker: a worker that is lost costs one of them per thread."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts
        self.partitions = _partitions(parts)
        self.graphs: dict[tuple[int, int], bytes] = {}
        self.moved: list[Moved] = []
        """Data that every pass on a cluster has moved."""

    def reduce(
        self, work: Any, merge: Merge, args: tuple[Any, ...] = (), starts: Sequence[int] | None = None
    ) -> Any:
        """Return the merged results of ``work(part, number, first, *args)`` for every partition.

        ``starts`` are the numbers of their first rows, and the number of all rows.
        """
        starts = [0] * (len(self.parts) + 1) if starts is None else starts
        client = _client()
        if client is not None:
            return self._on_cluster(client, work, merge, args, starts)
        done = rows_read(starts[-1])
        graphs = all(partition.graph for partition in self.partitions)
        dask = optional("dask", "Dask collections need", "dask")

        def fold_part(low: int, high: int) -> Any:
            results = []
            for k in range(low, high):
                raise_if_stopped()
                part = _made(self.partitions[k]) if graphs else dask.compute(self.parts[k])[0]
                results.append(work(part, k, starts[k], *args))
                done(starts[k + 1] - starts[k])
            return _folded(merge, results)

        return _folded(merge, threads.in_order(fold_part, len(self.parts), 1, threads.PIECE // 2))

    def _on_cluster(
        self, client: Any, work: Any, merge: Merge, args: tuple[Any, ...], starts: Sequence[int]
    ) -> Any:
        """Return the merged results of a pass; a pass that fails with a worker is submitted again."""
        distributed = sys.modules["distributed"]
        last: BaseException | None = None
        for _ in range(self.tries):
            try:
                return self._pass(client, work, merge, args, starts)
            except (distributed.KilledWorker, distributed.client.FutureCancelledError, OSError) as error:
                last = error
        raise LostEngineError(
            f"the cluster of Dask must run a pass; it failed {self.tries} times. {last}"
        ) from last

    def _pass(
        self, client: Any, work: Any, merge: Merge, args: tuple[Any, ...], starts: Sequence[int]
    ) -> Any:
        """Submit the shards of a pass, wait for them in short steps, and return the merged result."""
        workers = self._workers(client)
        given, merging = pack((work, args, merge)), pack(merge)
        done, waiting = rows_read(starts[-1]), []
        futures: list[Any] = []
        began, first_use = time.perf_counter(), clock.first_use_seconds()
        try:
            bounds = _bounds(len(self.parts), [count * self.shards for count in workers.values()])
            for worker, own in zip(workers, bounds, strict=True):
                options = {"workers": [worker], "allow_other_workers": True, "pure": False}
                shards = []
                for low, high in own:
                    futures_of = [
                        None if partition.graph else client.compute(self.parts[partition.number])
                        for partition in self.partitions[low:high]
                    ]
                    own_starts = list(starts[low:high])
                    shard = client.submit(
                        _shard, given, self._packed(low, high), own_starts, *futures_of, **options
                    )
                    shards.append(shard)
                    waiting.append((shard, starts[high] - starts[low]))
                if shards:
                    futures.append(client.submit(_merged, merging, *shards, **options))
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
                distributed.wait(futures, timeout=threads.PARAMETERS.between_checks)
            except TimeoutError:
                if client.status == "running" and self._workers(client, least=0):
                    seen = time.monotonic()
                elif time.monotonic() - seen > self.patience:
                    raise self._lost() from None

    def _workers(self, client: Any, least: int = 1) -> dict[str, int]:
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
            if time.monotonic() - began > self.patience:
                raise self._lost()
            time.sleep(threads.PARAMETERS.between_checks)

    def _lost(self) -> LostEngineError:
        """Return the error about a cluster without workers."""
        return LostEngineError(
            f"the cluster of Dask must have a worker; it has had none for {self.patience:g} s"
        )


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
