"""Arrays, memory maps and directories of NPY files as engines: rows in this process, read chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce as fold
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime import threads
from optdesign.runtime.progress import rows_read
from optdesign.sources.engine import ROWS, Chunk, Merge, Task
from optdesign.sources.layout import ARGUMENTS, Place, labels_of
from optdesign.tables.columns import Labels, check_exact, is_single
from optdesign.tables.values import is_categorical, refuse_mask


class ArrayEngine:
    """Rows of one or several arrays of equal width, one after the other."""

    names: tuple[str, ...] | None = None

    def __init__(
        self,
        arrays: list[np.ndarray],
        groups: Any = None,
        parameter_blocks: Any = None,
        files: list[Path] | None = None,
    ) -> None:
        self.arrays, self.files = arrays, files
        for k, x in enumerate(arrays):
            if x.ndim != 2 or x.shape[1] != arrays[0].shape[1] or x.dtype.kind not in "buif":
                rule = f"must have shape (N, {arrays[0].shape[-1]}) and real numbers"
                rule += f", as {files[0]}" if files and k else ""
                value = f"got {x.dtype} of shape {x.shape}"
                remedy = "Put one candidate a row."
                raise InputError("candidates" if files is None else str(files[k]), rule, value, remedy)
        self.n_rows, self.dim = sum(map(len, arrays)), arrays[0].shape[1]
        self.is_single = any(map(is_single, arrays))
        self.columns = [
            None if labels is None else _LabelArray(labels, name, self.n_rows)
            for name, labels in zip(ARGUMENTS, (groups, parameter_blocks), strict=True)
        ]
        self.labels = groups is not None, parameter_blocks is not None
        self.ordered = tuple(own is not None and own.ordered for own in self.columns)
        self.starts = np.concatenate([[0], np.cumsum([len(x) for x in arrays])])

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of all chunks; threads work on several at a time."""
        done = rows_read(self.n_rows)

        def work(first: int, last: int) -> Any:
            out = fold(merge, (task(chunk, *args) for chunk in self._chunks(first, last, features)))
            done(last - first)
            return out

        # Two results are kept per thread: they may be as large as a chunk.
        return fold(merge, threads.in_order(work, self.n_rows, ROWS, threads.PIECE // 2))

    def _chunks(self, first: int, last: int, features: bool) -> Iterator[Chunk]:
        """Yield the rows first .. last - 1: one chunk, or several if they lie in several arrays."""
        for x, start in zip(self.arrays, self.starts.tolist(), strict=False):
            low, high = max(first, start), min(last, start + len(x))
            if low < high:
                rows = x[low - start : high - start, : None if features else 0]
                labels = (None if own is None else own.part(low, high) for own in self.columns)
                yield Chunk(low, self._plain(rows, low), *labels)

    def _plain(self, rows: np.ndarray, first: int) -> np.ndarray:
        """Return rows in single or double precision, read-only and C-ordered."""
        out = doubles(rows, lambda k: self.place(first + k))
        out.flags.writeable = False
        return out

    def place(self, row: int) -> str:
        """Return the place of a candidate: in an array, or its file and its row there."""
        if self.files is None:
            return f"candidates[{row}]"
        k = int(np.searchsorted(self.starts, row, side="right")) - 1
        return f"row {row - int(self.starts[k]) + 1} of {self.files[k]}"


class _LabelArray:
    """One label per row, of which a part is read at a time: integers, or labels of any kind."""

    def __init__(self, labels: Any, name: str, n_rows: int) -> None:
        self.name, self.array, self.ordered = name, labels, False
        self.names: np.ndarray | None = None
        if isinstance(labels, str):
            remedy = (
                "Arrays have no columns by name: pass the labels, or Parquet files with a column of labels."
            )
            raise InputError(name, "must be an array of labels, one per candidate", f"got {labels!r}", remedy)
        refuse_mask(labels, name)
        if not isinstance(labels, np.ndarray):
            self.array = np.asarray(labels)
            is_numeric = self.array.dtype.kind in "buif" and not is_categorical(labels)
            if self.array.ndim == 1 and not is_numeric:
                (self.names, self.array), self.ordered = labels_of(labels, name, self.place)
        if self.array.shape != (n_rows,):
            rule = f"must have one label per candidate, shape ({n_rows},)"
            raise InputError(name, rule, f"got {self.array.shape}", "Label every row of candidates.")

    def place(self, row: int) -> str:
        """Return words for a row without a label."""
        return f"{self.name}[{row}] is"

    def part(self, low: int, high: int) -> np.ndarray | Labels:
        """Return the labels of the rows low .. high - 1: integers, or labels numbered in this part."""
        part = np.asarray(self.array[low:high])
        if self.names is not None:
            return Labels(self.names, part)
        if part.dtype.kind in "iu":
            return part
        if part.dtype.kind not in "bf":
            return labels_of(part, self.name, lambda k: self.place(low + k))[0]
        with np.errstate(invalid="ignore"):
            whole = part.astype(np.int64)
        for k in np.flatnonzero(whole != part)[:1]:
            rule = "must not be missing" if np.isnan(part[k]) else "must be integers 0, 1, 2, ..."
            remedy = "Drop the row, or renumber: numpy.unique(labels, return_inverse=True)[1]."
            raise InputError(self.name, rule, f"{self.place(low + k)} {part[k]}", remedy)
        return whole


def doubles(rows: np.ndarray, place: Place) -> np.ndarray:
    """Return rows in single or double precision, C-ordered. Raise InputError if an entry would be rounded."""
    kind = rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64
    out = np.ascontiguousarray(rows, kind).view(np.ndarray)
    if rows.dtype.kind in "iuf" and rows.dtype.itemsize >= 8 and rows.dtype != np.float64:
        check_exact(rows, out, place=place)
    return out


def npy_file(file: Path) -> np.ndarray:
    """Return an NPY file as a memory map."""
    try:
        return np.load(file, mmap_mode="r")
    except (ValueError, EOFError, OSError) as error:
        rule = "must be an NPY file of numbers"
        remedy = "Write it again with numpy.save, or move it elsewhere."
        raise InputError(str(file), rule, f"it is none ({error})", remedy) from None
