"""Exact ranks of floating-point matrices, by arithmetic modulo two primes.

A finite double is an integer times a power of two, so it has a value modulo any odd prime p, and sums and
products of doubles have the values of the exact results: there is no rounding. Two facts follow.

*A minor that is not zero modulo p is not zero.* Rows that are independent modulo p are independent.

*Rows outside a span are detected.* Let v be drawn at random from the vectors with P v = 0 modulo p, for rows
P that are independent modulo p. A row of the span of P has x v = 0. A row with x v != 0 therefore lies
outside: the rank exceeds that of P. A row outside the span modulo p is missed with probability 1 / p, about
5e-10; a second prime squares that.

So a rank above r is proved. A rank of r is wrong only if both primes fail by coincidence. The rank decision
made in floating point is compared with this result.
"""

from __future__ import annotations

import math

import numpy as np

from optdesign.problem.source import Source
from optdesign.runtime.jit import kernel

PRIMES = (1_869_753_167, 1_403_580_259)
"""Below 2^31, so that products fit; far from powers of two and ten, which data are made of."""

LOWEST_EXPONENT = -1140
"""Lowest exponent of two that occurs in doubles, down to their last digits. The highest is below 1040."""

POWERS = tuple(np.array([pow(2, e % (p - 1), p) for e in range(LOWEST_EXPONENT, 1040)]) for p in PRIMES)
"""2^e modulo each prime, e from LOWEST_EXPONENT."""

SMALLER, SAME_RANK, LARGER = -1, 0, 1
"""Comparison of the exact rank with the given one."""


def compare_ranks(source: Source, blocks: np.ndarray, basis: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """Compare the exact rank of every block with the given one; the rows ``basis`` are theirs, in turn.

    SMALLER: the pivots are dependent modulo both primes. LARGER: some candidate lies outside their span. A
    pass for each prime over the candidates of the blocks that have not full rank.
    """
    normals = normals_of(source.take(basis), ranks)
    if np.any(ranks < source.dim):
        for (normal, verdict), prime, powers in zip(normals, PRIMES, POWERS, strict=True):
            for first, x in source.pieces():
                mark_outside(x, blocks, first, ranks, normal, prime, powers, verdict)
    return combined(*(verdict for _, verdict in normals))


def combined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the verdicts of both primes: if one prime happens to divide a minor, the other one decides."""
    return np.where(one == SMALLER, other, np.where(other == SMALLER, one, np.maximum(one, other)))


def normals_of(pivots: np.ndarray, ranks: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a vector orthogonal to the pivots of every block, and a verdict on them, for each prime."""
    out = []
    for prime, powers in zip(PRIMES, POWERS, strict=True):
        free = np.random.default_rng(prime).integers(1, prime, size=pivots.shape[1])
        normal, verdict = np.zeros((len(ranks), pivots.shape[1]), np.int64), np.zeros(len(ranks), np.int64)
        _normals(pivots, ranks, free, prime, powers, normal, verdict)
        out.append((normal, verdict))
    return out


def rank_of(x: np.ndarray) -> int:
    """Return the rank of the rows of x: elimination modulo a prime, so never more than the exact rank."""
    return _eliminated(_residues(x), _residues(x[:0]))


def is_outside(x: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return True for the rows of ``at`` that are outside of the span of the rows of x, modulo a prime."""
    rest = _residues(at)
    _eliminated(_residues(x), rest)
    return np.any(rest, axis=1)


def are_used(independent: np.ndarray, dependent: np.ndarray) -> np.ndarray:
    """Return which columns of a square matrix enter the combinations that are other columns, (r, k) booleans.

    A coefficient that is not zero may be zero modulo the prime, by coincidence.
    """
    prime, r = PRIMES[0], independent.shape[1]
    a = _residues(np.column_stack([independent, dependent]))
    for j in range(r):
        found = np.flatnonzero(a[j:, j])
        if not len(found):  # dependent modulo the prime
            return np.ones((r, dependent.shape[1]), bool)
        a[[j, j + found[0]]] = a[[j + found[0], j]]
        a[j] = a[j] * pow(int(a[j, j]), -1, prime) % prime
        rest = np.arange(len(a)) != j
        a[rest] = (a[rest] - a[rest, j, None] * a[j]) % prime
    return a[:, r:] != 0


def _residues(x: np.ndarray) -> np.ndarray:
    """Return doubles modulo a prime."""
    prime = PRIMES[0]
    mantissa, exponent = np.frexp(x)
    return (mantissa * 2.0**53).astype(np.int64) % prime * POWERS[0][exponent - 53 - LOWEST_EXPONENT] % prime


def _eliminated(a: np.ndarray, rest: np.ndarray) -> int:
    """Eliminate with pivots of a, also in other rows. Overwrites both matrices. Returns the rank of a."""
    prime, rank = PRIMES[0], 0
    for j in range(a.shape[1]):
        found = np.flatnonzero(a[rank:, j])
        if len(found):
            a[[rank, rank + found[0]]] = a[[rank + found[0], rank]]
            pivot = a[rank] * pow(int(a[rank, j]), -1, prime) % prime
            rank += 1
            a[rank:] = (a[rank:] - a[rank:, j, None] * pivot) % prime
            rest[:] = (rest - rest[:, j, None] * pivot) % prime
    return rank


@kernel
def residue(value, prime, powers):
    """Return a double modulo the prime."""
    mantissa, exponent = math.frexp(abs(value))
    r = np.int64(mantissa * 2.0**53) % prime * powers[exponent - 53 - LOWEST_EXPONENT] % prime
    return prime - r if value < 0.0 and r > 0 else r


@kernel
def inverse_modulo(a, prime):
    """1 / a modulo the prime: a^(prime - 2)."""
    out, power = 1, prime - 2
    while power > 0:
        if power & 1:
            out = out * a % prime
        a = a * a % prime
        power >>= 1
    return out


@kernel
def _normals(x, ranks, free, prime, powers, normal, verdict):
    """Overwrite normal with a vector orthogonal to the pivots of every block.

    Its free entries are ``free``. Rows of x are the pivots, block by block.

    Gauss-Jordan elimination modulo the prime. Sets verdict to SMALLER where pivots are dependent.
    """
    d = x.shape[1]
    a = np.empty((d, d), np.int64)
    column = np.empty(d, np.int64)
    first = 0
    for b in range(len(ranks)):
        r = ranks[b]
        normal[b] = free
        for i in range(r):
            for j in range(d):
                a[i, j] = residue(x[first + i, j], prime, powers)
        first += r
        for k in range(r):
            column[k] = -1
            for j in range(d):
                if a[k, j] != 0:
                    column[k] = j
                    break
            if column[k] < 0:
                verdict[b] = SMALLER
                break
            scale = inverse_modulo(a[k, column[k]], prime)
            for j in range(d):
                a[k, j] = a[k, j] * scale % prime
            for i in range(r):
                c = a[i, column[k]]
                if i != k and c != 0:
                    for j in range(d):
                        a[i, j] = (a[i, j] - c * a[k, j]) % prime
        if verdict[b] != SMALLER:
            for k in range(r):
                normal[b, column[k]] = 0
            for k in range(r):
                dot = 0
                for j in range(d):
                    dot = (dot + a[k, j] * normal[b, j] * (j != column[k])) % prime
                # The other pivots' columns are zero in this row, so the order does not matter.
                normal[b, column[k]] = (prime - dot) % prime


@kernel
def mark_outside(x, blocks, first, ranks, normal, prime, powers, verdict):
    """Set verdict to LARGER for blocks with a candidate of a piece that is not orthogonal to their normal."""
    n, d = x.shape
    for i in range(n):
        b = blocks[first + i]
        if ranks[b] == d or verdict[b] != SAME_RANK:
            continue
        dot = 0
        for j in range(d):
            if x[i, j] != 0.0:
                dot = (dot + residue(x[i, j], prime, powers) * normal[b, j]) % prime
        if dot != 0:
            verdict[b] = LARGER
