"""Pricing of candidates that are larger than memory, chunk by chunk.

A pass computes the variance of every candidate and returns, for every group, the largest one and few
violators: candidates whose variance exceeds the bound of their group. Half of them are those of the largest
variances. The other half is drawn by the number of the row: neighbours on a fine grid have almost the same
variance, and the largest alone would all come from one place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.algebra.passes import variances_of_few
from optdesign.problem.chunks import refined
from optdesign.problem.selection import Kept, draw_all, empty_slots, kept, merge_kept, offer
from optdesign.runtime.jit import kernel


class Priced(NamedTuple):
    """The largest variance of every group, and violators."""

    largest: np.ndarray
    top: Kept
    drawn: Kept


def price(
    first: int,
    x: np.ndarray,
    groups: np.ndarray,
    blocks: np.ndarray,
    white: np.ndarray,
    bound: np.ndarray,
    maps: np.ndarray | None,
    most: int,
) -> Priced:
    """Price a chunk: the largest variances, and up to 2 x ``most`` violators of every group. A task.

    ``white`` applies to refined coordinates if ``maps`` is given, and to the rows otherwise.
    """
    g = chunk_variances(first, x, groups, blocks, white, maps)[first]
    largest = np.zeros(len(bound))
    top, drawn = empty_slots(len(bound), most), empty_slots(len(bound), most)
    at = np.empty(len(g), np.int64)
    at = at[: _violators(groups, g, bound, largest, at)]
    keys = np.empty(len(at))
    draw_all(first, at, keys)
    offer(keys, at, groups, *drawn)
    offer(-g[at], at, groups, *top)
    return Priced(
        largest, kept(first, x, groups, blocks, *top[:2]), kept(first, x, groups, blocks, *drawn[:2])
    )


def merge_priced(one: Priced, other: Priced) -> Priced:
    """Return the largest variances and the violators of two results. A merge."""
    return Priced(
        np.maximum(one.largest, other.largest),  # which keeps what is not a number
        merge_kept(one.top, other.top),
        merge_kept(one.drawn, other.drawn),
    )


def chunk_variances(
    first: int,
    x: np.ndarray,
    groups: np.ndarray,  # noqa: ARG001
    blocks: np.ndarray,
    white: np.ndarray,
    maps: np.ndarray | None,
) -> dict[int, np.ndarray]:
    """Return the variances of a chunk by the number of its first row. A task; its merge is ``dict.__or__``.

    Each variance is computed by itself, in one order, so that it does not depend on the chunk.
    """
    g = np.empty(len(x))
    variances_of_few(x if maps is None else refined(x, blocks, maps), blocks, white, g)
    return {first: g}


@kernel
def _violators(groups, g, bound, largest, at):
    """Raise largest to the variances g of a chunk, and write the places of violators to ``at``.

    Returns their number.
    """
    count = 0
    for n in range(len(g)):
        i = groups[n]
        if g[n] > largest[i] or g[n] != g[n]:
            largest[i] = g[n]
        if g[n] > bound[i]:
            at[count] = n
            count += 1
    return count
