"""Few rows of many: those with the smallest keys in every stratum, whatever the chunks are.

A key orders rows, ties are broken by the number of the row, and every stratum keeps a fixed number. So the
selection of a union is the selection of the two selections: it does not depend on how rows are cut into
chunks, nor on the order in which chunks are merged. :func:`draw` gives keys that look random and depend on
the number of the row alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optdesign.runtime.jit import inlined, kernel

HASH_PRIME = 2_147_483_647
"""2^31 - 1: products of two residues fit 64 bits."""

Shape = tuple[int, int]
"""Numbers of strata and of rows of each."""


class Pool(NamedTuple):
    """Some candidates: their numbers in ascending order, features and labels."""

    rows: np.ndarray
    x: np.ndarray
    groups: np.ndarray
    blocks: np.ndarray

    def take(self, at: np.ndarray) -> Pool:
        """Return some of them, by their places."""
        return Pool(*(array[at] for array in self))


class Kept(NamedTuple):
    """Selected rows with the stratum and the key by which they were selected."""

    strata: np.ndarray
    keys: np.ndarray
    pool: Pool
    most: int
    """Number of rows that every stratum keeps."""


def united(*pools: Pool) -> Pool:
    """Return the candidates of several pools, each once."""
    every = Pool(*(np.concatenate(arrays) for arrays in zip(*pools, strict=True)))
    return every.take(np.unique(every.rows, return_index=True)[1])


def pooled(first: int, x: np.ndarray, groups: np.ndarray, blocks: np.ndarray, at: np.ndarray) -> Pool:
    """Return the rows of a chunk at some places, in double precision."""
    return Pool(first + at, x[at].astype(np.float64), groups[at], blocks[at])


def empty_slots(strata: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays that :func:`offer` fills: keys, places, and the place of the largest key."""
    return np.full((strata, most), np.inf), np.full((strata, most), -1), np.zeros(strata, np.int64)


def kept(
    first: int, x: np.ndarray, groups: np.ndarray, blocks: np.ndarray, keys: np.ndarray, places: np.ndarray
) -> Kept:
    """Return the rows of a chunk that were kept at ``places``, (strata, most), -1 where there is none."""
    strata, slot = np.nonzero(places >= 0)
    at = places[strata, slot]
    return Kept(strata, keys[strata, slot], pooled(first, x, groups, blocks, at), keys.shape[1])


def merge_kept(one: Kept, other: Kept) -> Kept:
    """Return the rows of smallest keys of every stratum."""
    strata, keys = np.concatenate([one.strata, other.strata]), np.concatenate([one.keys, other.keys])
    pool = Pool(*(np.concatenate(pair) for pair in zip(one.pool, other.pool, strict=True)))
    order = np.lexsort((pool.rows, keys, strata))
    ordered = strata[order]
    # Place of a row in its stratum: its own place less that of the first of the stratum.
    order = order[np.arange(len(order)) - np.searchsorted(ordered, ordered) < one.most]
    return Kept(strata[order], keys[order], pool.take(order), one.most)


@kernel
def draw(row):
    """Return a key for the number of a row: a permutation polynomial modulo a prime, as a float."""
    if row >= HASH_PRIME:
        h = row % HASH_PRIME * 1_103_515_245 + row // HASH_PRIME + 12_345
    else:
        h = row * 1_103_515_245 + 12_345
    h = _residue(h)
    square = _residue(h * h)
    return float(_residue(_residue(_residue(square * square) * h) + 1_013_904_223))


@inlined
def _residue(number):
    """Return a number from 0 and below 2^62 modulo HASH_PRIME: 2^31 is 1 modulo HASH_PRIME."""
    number = (number & HASH_PRIME) + (number >> 31)
    number = (number & HASH_PRIME) + (number >> 31)
    return number - HASH_PRIME if number >= HASH_PRIME else number


@kernel
def draw_all(first, at, out):
    """Overwrite out with the keys of the rows first + at."""
    for k in range(len(at)):
        out[k] = draw(first + at[k])


@kernel
def offer(values, at, strata, keys, places, worst):
    """Keep the rows ``at`` whose values are below the largest key of their stratum. Overwrites the slots.

    Rows come in ascending order, so the first of equal keys is kept.
    """
    for n in range(len(at)):
        i = strata[at[n]]
        w = worst[i]
        if not values[n] < keys[i, w]:
            continue
        keys[i, w], places[i, w] = values[n], at[n]
        for k in range(keys.shape[1]):
            if keys[i, k] > keys[i, w] or (keys[i, k] == keys[i, w] and places[i, k] > places[i, w]):
                w = k
        worst[i] = w


def samples(
    first: int, x: np.ndarray, groups: np.ndarray, blocks: np.ndarray, by_group: Shape, by_block: Shape
) -> tuple[Kept, Kept]:
    """Return drawn rows of a chunk: for so many groups, and so many blocks, so many rows of each."""
    slots, block_slots = empty_slots(*by_group), empty_slots(*by_block)
    at, drawn = np.arange(len(groups)), np.empty(len(groups))
    draw_all(first, at, drawn)
    offer(drawn, at, groups, *slots)
    offer(drawn, at, blocks, *block_slots)
    return (kept(first, x, groups, blocks, *slots[:2]), kept(first, x, groups, blocks, *block_slots[:2]))
