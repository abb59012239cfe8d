"""The groups and blocks of the rows of a Newton system."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from optdesign.algebra.blocks import entries


class Layout:
    """Rows sorted by group, each in a block."""

    def __init__(self, block: np.ndarray, starts: np.ndarray, ranks: np.ndarray) -> None:
        self.block, self.starts, self.ranks = block, starts, ranks
        self.n_rows, self.n_groups = len(block), len(starts) - 1

    @cached_property
    def group(self) -> np.ndarray:
        """Group of every row."""
        return np.repeat(np.arange(self.n_groups), np.diff(self.starts))

    @cached_property
    def sizes(self) -> np.ndarray:
        """Rows of every block."""
        return np.bincount(self.block, minlength=len(self.ranks))

    @property
    def largest(self) -> int:
        """Rows of the largest block."""
        return self.n_rows if len(self.ranks) == 1 else int(self.sizes.max())

    @cached_property
    def entries(self) -> np.ndarray:
        """Number r (r + 1) / 2 of entries of every block."""
        return entries(self.ranks)

    @cached_property
    def offsets(self) -> np.ndarray:
        """First entry of every block, and the end of the last."""
        out = np.zeros(len(self.ranks) + 1, np.int64)
        np.cumsum(self.entries, out=out[1:])
        return out

    @cached_property
    def _rows(self) -> Sequence[np.ndarray | slice]:
        if len(self.ranks) == 1:
            return [slice(None)]
        return np.split(np.argsort(self.block, kind="stable"), np.cumsum(self.sizes)[:-1])

    def blocks(self) -> Iterator[tuple[int, np.ndarray | slice, int]]:
        """Yield number, rows and rank of every block that has any rows."""
        for b, (rows, size, rank) in enumerate(zip(self._rows, self.sizes, self.ranks, strict=True)):
            if size:
                yield b, rows, rank
