"""Parquet files as an engine: row groups of one file or of all files of a directory, batch by batch.

Directories may hold columns in their names, as in ``site=Turin/part-0.parquet`` (the layout of Hive). Columns
are read into the rows of one array, so that kernels read them column by column; nothing is
transposed.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Sequence
from functools import reduce as fold
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from optdesign.errors import InputError
from optdesign.factors.formula import Model
from optdesign.runtime import threads
from optdesign.runtime.optional import optional
from optdesign.runtime.progress import rows_read
from optdesign.runtime.stopping import raise_if_stopped
from optdesign.sources.engine import ROWS, Chunk, Merge, Task
from optdesign.sources.layout import Place, check_features, check_label_columns, layout_of
from optdesign.tables.columns import listed
from optdesign.tables.files import (
    COUNTERS,
    ROW_NAMES,
    Table,
    counts,
    is_numeric,
    plain_table,
    pyarrow,
    refuse_saved_design,
    stored_index,
    written_schema,
)
from optdesign.tables.values import column


class Span(NamedTuple):
    """Row groups of a file that are read together."""

    file: int
    row_groups: range
    before: int
    """Rows of the file before them."""
    n_rows: int


class Batch(NamedTuple):
    """Rows of a file."""

    file: int
    before: int
    """Rows of the file before them."""
    table: Any


class ParquetFiles:
    """A Parquet file, or those of a directory, whose columns of one name have types that go together."""

    def __init__(self, path: Path) -> None:
        self.files = parquet_files(path)
        self.metadata = [_metadata(file) for file in self.files]
        self.schemas = [written_schema(metadata) for metadata in self.metadata]
        self.in_names = _columns_in_names(path, self.files)
        """Columns that the names of directories hold: the value of every one, by file."""
        for k, own in enumerate(self.in_names):
            for name, value in own.items():
                self.schemas[k] = self.schemas[k].append(pyarrow().field(name, value.type))
        filled = [k for k, metadata in enumerate(self.metadata) if metadata.num_rows]
        self.first = filled[0] if filled else 0
        """The first file that has rows."""
        self.types = dict(zip(self.schemas[self.first].names, self.schemas[self.first].types, strict=True))
        self._check_schemas(filled)
        self.spans = [span for k in filled for span in self._spans(k)]

    def _check_schemas(self, filled: list[int]) -> None:
        """Raise InputError unless all files have the same columns, with types that go together."""
        first = str(self.files[self.first])
        for k in filled:
            own = dict(zip(self.schemas[k].names, self.schemas[k].types, strict=True))
            file = str(self.files[k])
            if len(own) < len(self.schemas[k].names):
                twice = next(n for n in own if self.schemas[k].names.count(n) > 1)
                raise InputError(
                    file, "must name each column once", f"{twice!r} occurs twice", "Rename one of them."
                )
            if own.keys() != self.types.keys():
                odd = sorted(own.keys() ^ self.types.keys())
                value = f"{listed(odd)} {'is' if len(odd) == 1 else 'are'} in one of the two only"
                remedy = "Write the files with the same columns, or move the file elsewhere."
                raise InputError(file, f"must have the columns of {first}", value, remedy)
            for name, kind in own.items():
                if family(kind) != family(self.types[name]):
                    value = f"column {name!r} is {kind} instead of {self.types[name]}"
                    remedy = "Write the column with one type in all files."
                    raise InputError(file, f"must have columns of the types of {first}", value, remedy)

    def kinds(self, name: str) -> list[Any]:
        """Return the types of a column in the files that have rows."""
        return [self.schemas[k].field(name).type for k in dict.fromkeys(span.file for span in self.spans)]

    def singles(self, name: str) -> list[bool]:
        """Return True for every file in which a column is in single or half precision."""
        types = pyarrow().types
        return [types.is_float32(kind) or types.is_float16(kind) for kind in self.kinds(name)]

    def are_categories_of_text(self, name: str) -> bool:
        """Return True if a column has categories of text in all files."""
        is_dictionary = pyarrow().types.is_dictionary
        return all(is_dictionary(kind) and family(kind) != CATEGORIES for kind in self.kinds(name))

    def _spans(self, k: int) -> Iterator[Span]:
        """Yield the row groups of a file, small ones together."""
        metadata = self.metadata[k]
        start, before, rows = 0, 0, 0
        for index in range(metadata.num_row_groups):
            rows += metadata.row_group(index).num_rows
            if rows >= ROWS or (rows and index == metadata.num_row_groups - 1):
                yield Span(k, range(start, index + 1), before, rows)
                start, before, rows = index + 1, before + rows, 0

    def read(self, span: Span, names: Sequence[str]) -> Iterator[Batch]:
        """Yield the batches of some row groups, with some columns."""
        before = span.before
        arrow, path, in_names = pyarrow(), self.files[span.file], self.in_names[span.file]
        stored = [name for name in names if name not in in_names]
        try:
            # A row group may be larger than memory, so a column is read about a batch at a time.
            with arrow.parquet.ParquetFile(
                path, metadata=self.metadata[span.file], buffer_size=8 * ROWS, pre_buffer=False
            ) as file:
                for batch in file.iter_batches(
                    ROWS, row_groups=list(span.row_groups), columns=stored, use_threads=False
                ):
                    made = {name: arrow.repeat(in_names[name], batch.num_rows) for name in in_names}
                    columns = {**dict(zip(batch.schema.names, batch.columns, strict=True)), **made}
                    yield Batch(span.file, before, arrow.RecordBatch.from_pydict(columns) if made else batch)
                    before += batch.num_rows
        except (arrow.ArrowException, OSError) as error:
            value = f"{_said(error)}, after row {before}"
            rule = "must be a Parquet file that can be read"
            raise InputError(str(path), rule, value, "Write it again.") from None

    def row_names(self, others: Collection[str | None]) -> list[str]:
        """Return the columns that only name rows, besides some others."""
        index = stored_index(self.files[self.first])
        names = [name for name in self.types if name not in others]
        return [name for name in names if name in index or ROW_NAMES.fullmatch(name) or self._counts(name)]

    def _counts(self, name: str) -> bool:
        """Return True if a column is called an index and its first rows are 0, 1, 2, ... or 1, 2, 3, ..."""
        if not COUNTERS.fullmatch(name) or not self.spans:
            return False
        batches = self.read(self.spans[0], [name])
        return counts(np.concatenate([column(batch.table[name], name)[0] for batch in batches]))

    def place(self, file: int, row: int) -> str:
        """Return words for a row of a file, counted from 1."""
        return f"row {row + 1} of {self.files[file]}"

    def places(self, batch: Batch) -> Place:
        """Return the words for the rows of a batch."""
        return lambda k: self.place(batch.file, batch.before + k)


class ParquetEngine:
    """Rows of Parquet files with the same columns, in the order of the names of the files."""

    names: tuple[str, ...] | None

    def __init__(
        self,
        files: ParquetFiles,
        groups: Any = None,
        parameter_blocks: Any = None,
        *,
        features: Sequence[str] | None = None,
        model: Model | None = None,
        where: str | None = None,
        in_where: Sequence[str] = (),
    ) -> None:
        self.files = files
        labels = (groups, parameter_blocks)
        check_label_columns(labels, files.types, "files larger than memory", str(files.files[files.first]))
        names: tuple[str, ...] = ()
        if model is None:
            names = tuple(features or self._inferred({*labels}))
            first = str(files.files[files.first])
            check_features(names, files.types, first, lambda kind: family(kind) == NUMBERS)
        self.layout, self.is_single = layout_of(names, labels, model, where, in_where, files.singles)
        self.names = self.layout.names
        self.dim = len(self.names)
        self.labels = groups is not None, parameter_blocks is not None
        self.ordered = tuple(name is not None and files.are_categories_of_text(name) for name in labels)
        sizes = [span.n_rows for span in files.spans]
        if where is not None:
            sizes = [sum(len(rows) for _, rows in self._kept(span)) for span in files.spans]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self.n_rows = int(self.starts[-1])

    def _inferred(self, labels: set[str | None]) -> list[str]:
        """Return the columns that are features: all but labels and those that only name rows."""
        files, types = self.files, self.files.types
        others = [name for name in types if name not in labels]
        refuse_saved_design(others, str(files.files[files.first]))
        rows = files.row_names(labels)
        if rows:
            warnings.warn(
                f"columns {listed(rows)} name the rows and are not features; rename them if they are.",
                stacklevel=4,
            )
        return [name for name in others if name not in rows]

    def reduce(self, task: Task, merge: Merge, args: tuple[Any, ...] = (), *, features: bool = True) -> Any:
        """Return the merged results of all chunks; threads work on several row groups at a time."""
        done = rows_read(self.n_rows)
        occupied = np.flatnonzero(np.diff(self.starts))

        def work(low: int, high: int) -> Any:
            def results() -> Iterator[Any]:
                for k in occupied[low:high].tolist():
                    for chunk in self._chunks(k, features):
                        yield task(chunk, *args)
                        done(len(chunk.x))

            return fold(merge, results())

        return fold(merge, threads.in_order(work, len(occupied), 1, threads.PIECE // 2))

    def _chunks(self, at: int, features: bool) -> Iterator[Chunk]:
        """Yield the batches of some row groups as chunks, without those that have no row."""
        first = int(self.starts[at])
        buffer = np.empty(self.dim * min(ROWS, self.files.spans[at].n_rows), self.layout.kind)
        for batch in self.files.read(self.files.spans[at], self.layout.needed(features)):
            raise_if_stopped()
            n, place = batch.table.num_rows, self.files.places(batch)
            chunk = self.layout.chunk(first, batch.table, n, place, features, buffer)
            if len(chunk.x):
                yield chunk
            first += len(chunk.x)

    def _kept(self, span: Span, names: Sequence[str] = ()) -> Iterator[tuple[Batch, np.ndarray]]:
        """Yield the batches of some row groups with the rows that meet the condition.

        Batches have the columns ``names``. Default: those of the candidates.
        """
        for batch in self.files.read(span, names or self.layout.columns):
            raise_if_stopped()
            rows = self.layout.kept(batch.table, self.files.places(batch))
            yield batch, np.arange(batch.table.num_rows) if rows is None else rows

    def _by_span(self, rows: np.ndarray) -> Iterator[tuple[Span, np.ndarray]]:
        """Yield the row groups of some candidates, with their places among the candidates of these groups."""
        for at in np.unique(np.searchsorted(self.starts, rows, side="right") - 1).tolist():
            own = rows[(rows >= self.starts[at]) & (rows < self.starts[at + 1])]
            yield self.files.spans[at], own - self.starts[at]

    def table(self, rows: np.ndarray) -> tuple[np.ndarray, Table]:
        """Return the rows of some candidates, counted through all files, and all their columns."""
        before = np.cumsum([0, *(metadata.num_rows for metadata in self.files.metadata)])
        numbers, parts = [], []
        for span, own in self._by_span(rows):
            seen = 0
            for batch, kept in self._kept(span, list(self.files.types)):
                places = kept[own[(own >= seen) & (own < seen + len(kept))] - seen]
                seen += len(kept)
                if len(places):
                    numbers.append(before[batch.file] + batch.before + places)
                    parts.append(pyarrow().Table.from_batches([batch.table]).take(places))
        whole = pyarrow().concat_tables(parts, promote_options="permissive")
        return np.concatenate(numbers), plain_table(whole, self.files.files[0].parent)

    def place(self, row: int) -> str:
        """Return the file of a candidate and its row there."""
        span, own = next(self._by_span(np.array([row])))
        at = span.before + own
        if self.layout.where is not None:
            at = np.concatenate([batch.before + kept for batch, kept in self._kept(span)])[own]
        return self.files.place(span.file, int(at[0]))


def family(kind: Any) -> str:
    """Return what types of columns have in common that go together."""
    types = pyarrow().types
    if types.is_dictionary(kind):
        return CATEGORIES if is_numeric(kind.value_type) else family(kind.value_type)
    if is_numeric(kind):
        return NUMBERS
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return "text"
    return str(kind)


NUMBERS, CATEGORIES = "numbers", "categories of numbers"


def _metadata(file: Path) -> Any:
    """Return the metadata of a file. Raise InputError unless it is a Parquet file."""
    arrow = pyarrow()
    try:
        return arrow.parquet.read_metadata(file)
    except (arrow.ArrowException, OSError) as error:
        value, remedy = f"it is none ({_said(error)})", "Write it again, or move it elsewhere."
        raise InputError(str(file), "must be a Parquet file", value, remedy) from None


def _columns_in_names(path: Path, files: list[Path]) -> list[dict[str, Any]]:
    """Return the values of the columns that the names of directories below a path hold, for every file."""
    if not any("=" in part for file in files if file != path for part in file.relative_to(path).parts[:-1]):
        return [{} for _ in files]
    arrow, dataset = pyarrow(), optional("pyarrow.dataset", "Parquet files need", "parquet")
    try:
        found = dataset.dataset(
            list(map(str, files)), format="parquet", partitioning="hive", partition_base_dir=str(path)
        )
    except arrow.ArrowException as error:
        rule = "must name columns in its directories in one way"
        value = f"it does not ({_said(error)})"
        remedy = "Write the files again; a column is in the files or in the names of directories."
        raise InputError(str(path), rule, value, remedy) from None
    values = []
    spelled: dict[tuple[str, Any], str] = {}
    for fragment in found.get_fragments():
        keys = dataset.get_partition_keys(fragment.partition_expression)
        for name, value in keys.items():
            parts = Path(fragment.path).parts
            written = [part for part in parts if unquote(part).startswith(f"{name}=")][-1]
            if spelled.setdefault((name, value), written) != written and not isinstance(value, int):
                rule, got = "must spell a value in the names of directories in one way", spelled[name, value]
                raise InputError(str(path), rule, f"got {got} and {written}", "Rename one of them.")
            if isinstance(value, int) and f"{name}={value}" != written:
                rule = "must write whole numbers in the names of directories without leading zeros or signs"
                remedy = "Rename the directories, or put the column into the files, as text if 01 is not 1."
                raise InputError(str(path), rule, f"got {written}", remedy)
        values.append(
            {name: arrow.scalar(value, found.schema.field(name).type) for name, value in keys.items()}
        )
    return values


def _said(error: Exception) -> str:
    """Return the first line of an error."""
    return str(error).partition("\n")[0].rstrip(".")


def parquet_files(path: Path) -> list[Path]:
    """Return a Parquet file, or those of a directory in the order of their names.

    Names that begin with a dot or an underscore are left out, as other programs do.
    """
    if path.suffix.lower() == ".parquet" and path.is_file():
        return [path]
    found = []
    for file in sorted(path.glob("**/*.parquet")):
        parts = file.relative_to(path).parts
        if any(part.startswith((".", "_")) for part in parts) or not file.is_file():
            continue
        found.append(file)
    return found
