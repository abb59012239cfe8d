"""Arrays, memory maps and directories of NPY files as engines: rows in this process, read chunk by chunk."""

from __future__ import annotations

from functools import reduce as fold
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime import threads
from optdesign.sources.engine import ROWS, Chunk, Merge, Task, array_labels
from optdesign.tables.columns import is_single


class ArrayEngine:
    """Rows of one or several arrays of equal width, one after the other."""

    names: tuple[str, ...] | None = None
    ordered = False, False

    def __init__(self, arrays: list[np.ndarray], groups: Any = None, parameter_blocks: Any = None) -> None:
        self.arrays = arrays
        for x in arrays:
            if x.ndim != 2 or x.shape[1] != arrays[0].shape[1] or x.dtype.kind not in "buif":
                raise InputError(
                    "candidates",
                    f"must have shape (N, {arrays[0].shape[-1]}) and real numbers in every array",
                    f"got {x.dtype} of shape {x.shape}",
                    "Put one candidate a row.",
                )
        self.n_rows, self.dim = sum(map(len, arrays)), arrays[0].shape[1]
        self.is_single = any(map(is_single, arrays))
        self.columns = {"groups": groups, "parameter_blocks": parameter_blocks}
        for name, labels in self.columns.items():
            if labels is None:
                continue
            self.columns[name] = array = labels if isinstance(labels, np.ndarray) else np.asarray(labels)
            if array.shape != (self.n_rows,):
                raise InputError(
                    name,
                    f"must have one label per candidate, shape ({self.n_rows},)",
                    f"got {array.shape}",
                    "Label every row of candidates.",
                )
        self.labels = groups is not None, parameter_blocks is not None
        self.starts = np.concatenate([[0], np.cumsum([len(x) for x in arrays])])

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of all chunks; threads work on several at a time."""

        def work(first: int, last: int) -> Any:
            parts = [task(chunk, *args) for chunk in self._chunks(first, last, features)]
            return fold(merge, parts)

        # Two results are kept per thread: they may be as large as a chunk.
        return fold(merge, threads.in_order(work, self.n_rows, ROWS, threads.PIECE // 2))

    def _chunks(self, first: int, last: int, features: bool) -> list[Chunk]:
        """Return the rows first .. last - 1: one chunk, or several if they lie in several arrays."""
        out = []
        for x, start in zip(self.arrays, self.starts.tolist(), strict=False):
            low, high = max(first, start), min(last, start + len(x))
            if low < high:
                rows = x[low - start : high - start, : None if features else 0]
                labels = (
                    None if own is None else array_labels(np.asarray(own[low:high]), name, low)
                    for name, own in self.columns.items()
                )
                out.append(Chunk(low, _plain(rows), *labels))
        return out


def _plain(rows: np.ndarray) -> np.ndarray:
    """Return rows in single or double precision, read-only and C-ordered."""
    kind = rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64
    out = np.ascontiguousarray(rows, kind).view(np.ndarray)
    out.flags.writeable = False
    return out


def npy_files(folder: Path) -> list[np.ndarray]:
    """Return the NPY files of a directory as memory maps, in the order of their names."""
    return [np.load(file, mmap_mode="r") for file in sorted(folder.glob("*.npy"))]
