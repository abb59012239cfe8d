"""Ranks, determinants and optima of a design problem, in exact and in ball arithmetic.

Everything is computed from the definitions, with python-flint, and nothing from the package under test:

    U_b = sum_{n in b} w_n x_n x_n',   g_n = x_n' U_b^+ x_n,   F = sum_b log Det U_b,   G = sum_i f_i max g_n.

*Ranks* are those of integer matrices: a double is an integer times a power of 2.

*Determinants.* Let J be columns that carry the rank r of a block, P rows that do, and R = X_PJ^-1 X_P. Then
X = X_J R, so Det U = det(X_J' W X_J) det(R R') and g_n is the variance in the columns J alone.

*Optima.* Any feasible weights v bracket the maximum F* of F: F(v) <= F* <= F(v) + D log(G(v) / D). The origin
of v is irrelevant, and several v give a narrower bracket.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import flint
import numpy as np
from flint import arb, arb_mat, fmpz, fmpz_mat, nmod_mat

PRIME = 18446744073709551557
"""The largest prime below 2^64; the package uses others."""

BITS, MOST_BITS = 192, 12_288
"""Ball arithmetic starts with the first number of bits and doubles it until the answer is conclusive."""

ACCURACY = 70
"""Bits to which G and the logarithms of determinants are known."""


class Instance(NamedTuple):
    """A design problem as plain arrays."""

    x: np.ndarray
    groups: np.ndarray
    blocks: np.ndarray
    budgets: np.ndarray


def instance(x: np.ndarray, groups=None, blocks=None, budgets=None) -> Instance:
    """Return an instance; the defaults are 1 group, 1 parameter block and budgets of 1."""
    zeros = np.zeros(len(x), np.int64)
    groups = zeros if groups is None else np.asarray(groups)
    blocks = zeros if blocks is None else np.asarray(blocks)
    if budgets is None:
        budgets = np.ones(int(groups.max()) + 1)
    return Instance(np.asarray(x), groups, blocks, np.atleast_1d(np.asarray(budgets, dtype=float)))


def number(v: float) -> arb:
    """Return the exact value of a double."""
    numerator, denominator = float(v).as_integer_ratio()
    return arb((fmpz(numerator), fmpz(1 - denominator.bit_length())))


def integer_rows(x: np.ndarray) -> list[list[int]]:
    """Return the rows, each multiplied by its own power of 2, so that all entries are integers."""
    out = []
    for row in x:
        ratios = [float(v).as_integer_ratio() for v in row]
        common = max(denominator for _, denominator in ratios)
        out.append([numerator * (common // denominator) for numerator, denominator in ratios])
    return out


def rank(x: np.ndarray) -> int:
    """Return the exact rank of a matrix of doubles."""
    return int(fmpz_mat(integer_rows(x)).rank()) if len(x) else 0


def pivots(rows: list[list[int]]) -> list[int]:
    """Return columns that carry the rank of an integer matrix, by elimination modulo a prime."""
    reduced, found = nmod_mat([[v % PRIME for v in row] for row in rows], PRIME).rref()
    return [next(j for j in range(len(rows[0])) if int(reduced[i, j]) != 0) for i in range(found)]


class Measured(NamedTuple):
    """F, G and the variances of a design, as balls."""

    log_det: arb
    g_value: arb
    variances: list[arb]


class Bracket(NamedTuple):
    """Bounds on the largest F over all weights that meet the budgets."""

    low: arb
    high: arb


class Block(NamedTuple):
    """The candidates of a parameter block, in the columns that carry its rank."""

    rows: np.ndarray
    x: arb_mat
    """The columns J of the rows."""
    rank: int
    whole: arb_mat | None
    """X_P, or None if all columns carry the rank."""
    part: arb_mat | None
    """X_PJ."""


class Truth:
    """Exact facts about one instance."""

    def __init__(self, problem: Instance) -> None:
        self.problem = problem
        self.n_groups, self.n_blocks = len(problem.budgets), int(problem.blocks.max()) + 1

    @cached_property
    def ranks(self) -> list[int]:
        """Rank of every parameter block."""
        return [rank(self.problem.x[self.problem.blocks == b]) for b in range(self.n_blocks)]

    @property
    def rank(self) -> int:
        """D, the sum of the ranks."""
        return sum(self.ranks)

    def has_full_rank(self, weights: Sequence[float] | np.ndarray) -> bool:
        """Return True if the candidates with positive weight span every parameter block."""
        used, blocks = np.asarray(weights) > 0, self.problem.blocks
        return all(rank(self.problem.x[used & (blocks == b)]) == r for b, r in enumerate(self.ranks))

    @cached_property
    def blocks(self) -> list[Block]:
        out = []
        for b, r in enumerate(self.ranks):
            rows = np.flatnonzero(self.problem.blocks == b)
            if r == 0:
                continue
            x = np.asarray(self.problem.x[rows], dtype=float)
            integers = integer_rows(x)
            columns = pivots(integers)
            assert len(columns) == r
            whole = part = None
            if r < x.shape[1]:
                own = pivots([list(column) for column in zip(*integers, strict=True)])
                whole, part = _balls(x[own]), _balls(x[own][:, columns])
            out.append(Block(rows, _balls(x[:, columns]), r, whole, part))
        return out

    def scaled(self, weights: np.ndarray) -> list[arb]:
        """Return the weights times the factors that make the sum of every group its budget."""
        exact = [number(v) for v in weights]
        factors = []
        for i, budget in enumerate(self.problem.budgets):
            total = sum((exact[n] for n in np.flatnonzero(self.problem.groups == i)), arb(0))
            factors.append(number(budget) / total)
        return [w * factors[i] for w, i in zip(exact, self.problem.groups, strict=True)]

    def measure(self, weights: np.ndarray, *, scale: bool = True) -> Measured | None:
        """Return F, G and the variances of a design, or None if it loses rank.

        The weights are first scaled to the budgets, unless ``scale`` is False.
        """
        if not self.has_full_rank(weights):
            return None
        bits = BITS
        while bits <= MOST_BITS:
            flint.ctx.prec = bits  # through the module: a copy of the context would set nothing
            found = self._measured(self.scaled(weights) if scale else [number(v) for v in weights])
            if (
                found is not None
                and _is_sharp(found.log_det)
                and found.g_value.rel_accuracy_bits() > ACCURACY
            ):
                return found
            bits *= 2
        raise ArithmeticError(f"{MOST_BITS} bits are not enough")

    def _measured(self, weights: list[arb]) -> Measured | None:
        variances = [arb(0)] * len(weights)
        log_det = arb(0)
        for block in self.blocks:
            r, n = block.rank, len(block.rows)
            w = [weights[k] for k in block.rows]
            used = [i for i in range(n) if w[i] > 0]
            x = arb_mat([[block.x[i, j] for j in range(r)] for i in used])
            weighted = arb_mat([[w[i] * block.x[i, j] for j in range(r)] for i in used])
            information = x.transpose() * weighted
            transposed = block.x.transpose()
            try:
                solved = information.solve(transposed)
                det = information.det()
                if block.whole is not None and block.part is not None:
                    echelon = block.part.solve(block.whole)
                    det *= (echelon * echelon.transpose()).det()
            except ZeroDivisionError:
                return None
            if not det > 0:
                return None
            log_det += det.log()
            for i, k in enumerate(block.rows):
                variances[k] = sum((block.x[i, j] * solved[j, i] for j in range(r)), arb(0))
        top = [arb(0)] * self.n_groups
        for g, i in zip(variances, self.problem.groups, strict=True):
            top[i] = top[i].max(g)
        total = sum((number(f) * g for f, g in zip(self.problem.budgets, top, strict=True)), arb(0))
        return Measured(log_det, total, variances)

    def bracket(self, witnesses: Iterable[np.ndarray]) -> Bracket | None:
        """Return bounds on the optimum from designs of any origin; None if all of them lose rank."""
        found = [m for m in map(self.measure, witnesses) if m is not None]
        if not found:
            return None
        lows = [m.log_det for m in found]
        highs = [m.log_det + self.rank * (m.g_value / self.rank).log() for m in found]
        low, high = lows[0], highs[0]
        for other in lows[1:]:
            low = low.max(other)
        for other in highs[1:]:
            high = high.min(other)
        return Bracket(low, high)

    def ascended(self, weights: np.ndarray, steps: int) -> np.ndarray:
        """Return better weights after steps of the multiplicative algorithm, w_n <- w_n g_n f_i / sum w g."""
        w = np.array(weights, dtype=float)
        groups, budgets = self.problem.groups, self.problem.budgets
        for _ in range(steps):
            found = self.measure(w)
            if found is None:
                break
            w = w * np.array([float(g.mid()) for g in found.variances])
            w *= (budgets / np.bincount(groups, w, len(budgets)))[groups]
        return w


def _balls(x: np.ndarray) -> arb_mat:
    return arb_mat([[number(v) for v in row] for row in x])


def _is_sharp(log: arb) -> bool:
    """Return True if a logarithm is known to 2^-ACCURACY, relative to its size where that exceeds 1."""
    return bool(log.rad() < arb(2) ** -ACCURACY * abs(log).max(arb(1)))


def cholesky(a: arb_mat) -> arb_mat:
    """Return the lower triangular L with a = L L', for a positive definite matrix."""
    r = a.nrows()
    lower = [[arb(0)] * r for _ in range(r)]
    for i in range(r):
        for j in range(i + 1):
            rest = a[i, j] - sum((lower[i][k] * lower[j][k] for k in range(j)), arb(0))
            lower[i][j] = rest.sqrt() if i == j else rest / lower[j][j]
    return arb_mat(lower)
