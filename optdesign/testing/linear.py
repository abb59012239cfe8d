"""Matrices whose ranks are beyond doubt: entries with few binary digits, eigenvalues far from zero.

Everything is composed of integers, so examples shrink towards small, round and plain ones.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


def lattice() -> st.SearchStrategy[float]:
    """Multiples of 1/4 between -2 and 2, integers first.

    Sums and products of a few are exact, and zeros, duplicates and dependent rows are common.
    """
    return st.one_of(st.integers(-2, 2).map(float), st.integers(-8, 8).map(lambda v: v / 4))


@st.composite
def matrices(
    draw: st.DrawFn, max_rows: int = 8, max_dim: int = 4, *, entries: st.SearchStrategy[float] | None = None
) -> np.ndarray:
    """Matrices with entries of :func:`lattice`, or of a strategy of yours, not all of them zero."""
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_dim))
    return draw(filled((n, d), lattice() if entries is None else entries))


@st.composite
def filled(draw: st.DrawFn, shape: tuple[int, ...], entries: st.SearchStrategy[float]) -> np.ndarray:
    """An array of that shape; if all entries were zero the first is one instead."""
    x = draw(arrays(np.float64, shape, elements=entries, fill=st.nothing()))
    if not x.any():
        x.flat[0] = 1.0
    return x


@st.composite
def semidefinite(draw: st.DrawFn, max_dim: int = 4) -> np.ndarray:
    """Symmetric positive semi-definite matrices with eigenvalues in {0} or [1/4, 4], so ranks are certain.

    A diagonal matrix, turned by reflections along vectors of integers; without any it stays diagonal.
    """
    n = draw(st.integers(1, max_dim))
    small = st.one_of(st.sampled_from([0.0, 1.0, 0.5, 2.0]), st.floats(0.25, 4.0))
    values = draw(arrays(np.float64, n, elements=small, fill=st.nothing()))
    q = np.eye(n)
    for v in draw(st.lists(arrays(np.int64, n, elements=st.integers(-3, 3)), max_size=n)):
        if v.any():
            q = q - np.outer(q @ v, v) * (2.0 / float(v @ v))
    a = (q * values) @ q.T
    return (a + a.T) / 2
