"""Notes on columns of a file that may not be as intended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from optdesign.tables.files import Table, looks_numeric


def categories(columns: Table, factors: Sequence[str]) -> Iterator[str]:
    """Yield sentences about factors whose text may be meant as numbers."""
    for name in factors:
        values = columns[name]
        if values.dtype == object and all(looks_numeric(str(value)) for value in values):
            yield (
                f"factor {name!r} is text, such as {str(values[0])!r}, and so a category with a level "
                "for each; if it is meant as a number, write it with a decimal point and no thousands "
                "separators."
            )


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
