"""The storage of the candidates and the two ways to read it: consecutive rows, and selected rows.

All scans, bases, information matrices, variances and audits read candidates through :class:`Source`. So no
other module depends on the kind of storage: an array or a memory map.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdesign.runtime import threads


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view. Kernels are compiled once, for this kind of input."""
    out = array.view(np.ndarray)
    out.flags.writeable = False
    return out


class Frozen:
    """Base of classes with arrays that are not to be changed: those of a pickle are read-only again."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled object: its arrays are read-only again."""
        for name, value in state.items():
            object.__setattr__(self, name, read_only(value) if isinstance(value, np.ndarray) else value)


@dataclass(frozen=True, eq=False)
class Source(Frozen):
    """Rows in an array or a memory map, C-ordered, of double or single precision."""

    array: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.array.shape[0]

    @property
    def dim(self) -> int:
        """Length of a row."""
        return self.array.shape[1]

    @property
    def rows_a_piece(self) -> int:
        """Rows that are read at a time."""
        return max(1, threads.PIECE // self.dim)

    def piece(self, first: int, last: int) -> np.ndarray:
        """Return the rows first .. last - 1, in the precision they have; not to be changed."""
        return self.array[first:last]

    def pieces(self) -> Iterator[tuple[int, np.ndarray]]:
        """All rows, piece by piece: the number of the first, and the piece."""
        step = self.rows_a_piece
        for first in range(0, self.n_rows, step):
            yield first, self.piece(first, min(first + step, self.n_rows))

    def find(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return an array that has some rows, in the precision they have, and where in it they are."""
        return self.array, rows

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return a copy of some rows, in double precision."""
        x, at = self.find(rows)
        return np.asarray(x.take(at, axis=0), np.float64)

    def whole(self) -> np.ndarray:
        """All rows at once, to show or to save them."""
        return self.array
