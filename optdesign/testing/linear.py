"""Matrices whose ranks are beyond doubt: entries with few binary digits, eigenvalues far from zero.

Everything is composed of integers, so examples shrink towards small, round and plain ones.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays


def lattice() -> st.SearchStrategy[float]:
    """Return a strategy of multiples of 1/4 between -2 and 2, integers first.

    Sums and products of a few such numbers are exact. Zeros, duplicates and dependent rows are common.

    Returns
    -------
    hypothesis strategy of float
        The strategy.

    See Also
    --------
    optdesign.testing.matrices : Draw matrices of such entries.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(lattice(), lambda v: 0 < v < 1, settings=smallest)
    0.25
    """
    return st.one_of(st.integers(-2, 2).map(float), st.integers(-8, 8).map(lambda v: v / 4))


@st.composite
def matrices(
    draw: st.DrawFn, max_rows: int = 8, max_dim: int = 4, *, entries: st.SearchStrategy[float] | None = None
) -> np.ndarray:
    """Return a strategy of matrices that are not zero.

    Parameters
    ----------
    max_rows : int, default 8
        Largest number of rows.
    max_dim : int, default 4
        Largest number of columns.
    entries : hypothesis strategy of float, optional
        Entries. Default: :func:`optdesign.testing.lattice`.

    Returns
    -------
    hypothesis strategy of ndarray
        The strategy.

    See Also
    --------
    optdesign.testing.semidefinite : Draw positive semi-definite matrices.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(matrices(), lambda x: x.shape == (1, 2), settings=smallest).tolist()
    [[1.0, 0.0]]
    """
    n, d = draw(st.integers(1, max_rows)), draw(st.integers(1, max_dim))
    return draw(filled((n, d), lattice() if entries is None else entries))


@st.composite
def filled(draw: st.DrawFn, shape: tuple[int, ...], entries: st.SearchStrategy[float]) -> np.ndarray:
    """Return an array of that shape; if all entries were zero the first is one instead."""
    x = draw(arrays(np.float64, shape, elements=entries, fill=st.nothing()))
    if not x.any():
        x.flat[0] = 1.0
    return x


@st.composite
def semidefinite(draw: st.DrawFn, max_dim: int = 4) -> np.ndarray:
    """Return a strategy of symmetric positive semi-definite matrices whose rank is certain.

    Eigenvalues are 0 or in [1/4, 4]. A diagonal matrix is multiplied by reflections along vectors of
    integers.

    Parameters
    ----------
    max_dim : int, default 4
        Largest order.

    Returns
    -------
    hypothesis strategy of ndarray
        The strategy.

    See Also
    --------
    optdesign.testing.matrices : Draw matrices of any shape.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(semidefinite(), lambda a: a.trace() == 2, settings=smallest).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
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
