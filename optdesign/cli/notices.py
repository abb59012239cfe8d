"""Notes on columns of a file that may not be as intended."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def counting(candidates: np.ndarray, names: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence about a feature that only counts the rows, as numbers of runs do."""
    n, d = candidates.shape
    count = np.arange(n)
    for j in range(d if d > 1 and n > 2 else 0):
        if np.array_equal(candidates[:, j] - candidates[0, j], count):
            return (
                f"column {names[j]!r} counts the rows and was taken as a feature; if it only numbers them, "
                f"choose the others with --features.",
            )
    return ()
