"""Parquet files as an engine: row groups of one file or of all files of a directory, batch by batch.

Columns are read into the rows of one array, so that kernels read them column by column; nothing is
transposed.
"""

from __future__ import annotations

from functools import reduce as fold
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime import threads
from optdesign.sources.engine import ROWS, Chunk, Merge, Task, array_labels
from optdesign.tables.columns import Labels, column, listed, lookup
from optdesign.tables.files import ROW_NAMES, pyarrow, stored_index


class RowGroup(NamedTuple):
    """A row group of a file, and the number of its first row."""

    file: Path
    place: int
    first: int


class ParquetEngine:
    """Rows of Parquet files with the same columns, in the order of the names of the files."""

    names: tuple[str, ...] | None
    ordered = False, False

    def __init__(self, files: list[Path], groups: Any = None, parameter_blocks: Any = None) -> None:
        arrow = pyarrow()
        schema = arrow.parquet.read_schema(files[0])
        types = dict(zip(schema.names, schema.types, strict=True))
        self.columns = {"groups": groups, "parameter_blocks": parameter_blocks}
        for argument, name in self.columns.items():
            if name is not None and not isinstance(name, str):
                raise InputError(
                    argument,
                    "must be the name of a column of files larger than memory",
                    f"got {type(name).__name__}",
                    f"The columns are {listed(types)}.",
                )
            if name is not None:
                lookup(types, name, argument, str(files[0]))
        unused = {groups, parameter_blocks, *stored_index(files[0])}
        features = [name for name in types if name not in unused and not ROW_NAMES.fullmatch(name)]
        for name in features:
            kind = types[name]
            if not any(
                t(kind) for t in (arrow.types.is_integer, arrow.types.is_floating, arrow.types.is_boolean)
            ):
                raise InputError(
                    "candidates",
                    "must be numbers",
                    f"column {name!r} is not",
                    "Name it as groups or parameter_blocks, or drop it.",
                )
        self.row_groups, first = [], 0
        for file in files:
            metadata = arrow.parquet.ParquetFile(file).metadata
            if arrow.parquet.read_schema(file).names != schema.names:
                raise InputError(
                    str(file), f"must have the columns of {files[0]}", "they differ", "Write it again."
                )
            for index in range(metadata.num_row_groups):
                if metadata.row_group(index).num_rows:
                    self.row_groups.append(RowGroup(file, index, first))
                    first += metadata.row_group(index).num_rows
        self.n_rows, self.dim, self.names = first, len(features), tuple(features)
        single = [
            arrow.types.is_float32(types[name]) or arrow.types.is_float16(types[name]) for name in features
        ]
        self.is_single, self.kind = any(single), np.dtype(np.float32 if all(single) else np.float64)
        self.labels = groups is not None, parameter_blocks is not None

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of all chunks; threads work on several row groups at a time."""

        def work(low: int, high: int) -> Any:
            chunks = (chunk for at in self.row_groups[low:high] for chunk in self._chunks(at, features))
            return fold(merge, (task(chunk, *args) for chunk in chunks))

        return fold(merge, threads.in_order(work, len(self.row_groups), 1, threads.PIECE // 2))

    def _chunks(self, at: RowGroup, features: bool) -> Any:
        """Yield the batches of a row group as chunks."""
        names = [*((self.names or ()) if features else ()), *filter(None, self.columns.values())]
        first = at.first
        with pyarrow().parquet.ParquetFile(at.file) as file:
            for batch in file.iter_batches(ROWS, row_groups=[at.place], columns=names, use_threads=False):
                x = np.empty((self.dim if features else 0, batch.num_rows), self.kind)
                for row, name in zip(x, names, strict=False):
                    row[:] = self._numbers(batch.column(name), name, first)
                labels = (
                    None if name is None else _labels(batch.column(name), argument, first)
                    for argument, name in self.columns.items()
                )
                yield Chunk(first, x.T, *labels)
                first += batch.num_rows

    def _numbers(self, values: Any, name: str, first: int) -> np.ndarray:
        """Return the numbers of a column; missing ones are NaN."""
        array = values.to_numpy(zero_copy_only=False)
        if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and np.any(np.abs(array) > 2**53):
            at = first + int(np.argmax(np.abs(array) > 2**53))
            raise InputError(
                "candidates",
                "must fit double precision",
                f"column {name!r} does not in row {at}",
                "Round it.",
            )
        return array


def _labels(values: Any, argument: str, first: int) -> Labels:
    """Return the labels of a column, numbered in this chunk."""
    if values.null_count:
        at = first + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(
            argument, "must not be missing", f"{argument}[{at}] is", "Fill it in or drop the row."
        )
    if pyarrow().types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    coded = values.dictionary_encode()
    codes = np.asarray(coded.indices)
    found = array_labels(column(coded.dictionary, argument)[0], argument, first)
    return Labels(found.names, found.numbers[codes]) if isinstance(found, Labels) else Labels(found, codes)


def parquet_files(path: Path) -> list[Path]:
    """Return a Parquet file, or those of a directory in the order of their names."""
    return (
        [path] if path.suffix.lower() == ".parquet" and path.is_file() else sorted(path.glob("**/*.parquet"))
    )
