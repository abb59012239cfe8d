"""The one problem of this package.

Given candidates x_n, each in a group i(n) with budget f_i and in a block b(n),

    maximise   sum_b log Det( sum_{n in b} w_n x_n x_n' )          (Det: pseudo-determinant)
    subject to sum_{n in i} w_n = f_i  for every group i,  w >= 0,

where every block keeps the rank of its candidates. Classical D-optimality is one group and one block;
a stratified design is several groups and one block; the multi-client design of Fed-PE has one block
per arm (disjoint parameters) or a single one (shared parameters).

>>> import numpy as np, optdesign as od
>>> p = od.DesignProblem(np.eye(3))
>>> p.n_candidates, p.n_groups, p.n_blocks, p.rank
(3, 1, 1, 3)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.modular import LARGER, SAME, compare_ranks
from optdesign.rows import Rows, log_volume, refined_rows, working_rows, write_refined
from optdesign.span import RANK_RTOL, Span, find_span, scan

COPY_LIMIT = 1 << 26
"""Input arrays up to this many bytes are copied; larger ones are kept by reference if their type fits."""

LARGEST = 1e60
"""Entries and budgets may be as large as this, and their largest as small as its inverse."""

SMALLEST = 1e-250
"""And the largest entry of a column of a block as small as this, if it is not zero."""

SINGLE_RTOL = 2.0**-19
"""Tolerance of the rank decision for candidates given in single precision: sixteen roundings."""

LABEL_SLACK = 1000
"""Labels may leave gaps up to here, or up to ten times the number of candidates."""


@dataclass(frozen=True, eq=False, repr=False)
class DesignProblem:
    """Candidates with their groups, blocks and budgets. Frozen, and validated once, here.

    Parameters
    ----------
    candidates : (N, d) array
        One candidate a row; integers, float32, lists and any memory order are fine, and so are zero
        vectors (they inform nothing). Row-major float64 arrays above 64 MiB, and such memory maps of
        float64 or float32, are not copied: leave them unchanged while the problem lives.
    groups : (N,) integers, optional
        Group of every candidate, 0 .. n_groups - 1, each with at least one candidate. Default: one group.
    blocks : (N,) integers, optional
        Block of every candidate. A block without candidates has rank 0. Default: one block.
    budgets : (n_groups,) array or a scalar for all, optional
        What the weights of each group sum to. Default: 1.

    Examples
    --------
    >>> x = [[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> DesignProblem(x, groups=[0, 0, 1], budgets=[2, 1])
    DesignProblem(3 candidates x 2, 2 groups, 1 block, rank 2)
    """

    candidates: np.ndarray
    groups: np.ndarray
    blocks: np.ndarray
    budgets: np.ndarray
    n_blocks: int
    span: Span = field(repr=False)
    peaks: np.ndarray = field(repr=False)
    """Largest absolute entry of every block and column."""
    _grid: tuple[int, int, np.ndarray | None] | None = None

    def __init__(
        self,
        candidates: ArrayLike,
        groups: ArrayLike | None = None,
        blocks: ArrayLike | None = None,
        budgets: ArrayLike | None = None,
        *,
        _n_blocks: int = 0,
        _grid: tuple[int, int, np.ndarray | None] | None = None,
    ) -> None:
        x = _matrix(candidates)
        n = len(x)
        if _grid is None:
            group, n_groups = _labels(groups, n, "groups")
            block, n_blocks = _labels(blocks, n, "blocks")
        else:  # made here, and right
            group, block = read_only(np.asarray(groups)), read_only(np.asarray(blocks))
            n_groups, n_blocks = _grid[0], _n_blocks
        budget = _budgets(budgets, n_groups)
        if len(budget) != n_groups or (groups is not None and _grid is None):
            _check_groups(group, budget)
        peaks, bad = scan(x, block, n_blocks)
        if bad >= 0:
            where = f"candidates[{bad}]"
            if _grid is not None:
                at = bad if _grid[2] is None else int(_grid[2][bad])
                where = f"features[{at // _grid[1]}, {at % _grid[1]}]"
            raise ValueError(
                f"{where.split('[')[0]} must be finite; {where} = {x[bad].tolist()}. "
                "Drop the row or fill in its missing entries."
            )
        source = "candidates" if _grid is None else "features"
        tallest = float(peaks.value.max())
        _check_range(source, tallest)
        _check_columns(source, peaks.value)
        if tallest == 0:
            raise ValueError(
                f"{source} must have at least one non-zero row; all {n} rows are zero. "
                "There is nothing to inform: check the feature columns."
            )
        rtol = max(RANK_RTOL, SINGLE_RTOL if _is_single(candidates) else 0.0)
        span = find_span(x, block, np.sqrt(budget), group, peaks, rtol)
        values: dict[str, Any] = {
            "candidates": x, "groups": group, "blocks": block, "budgets": budget,
            "n_blocks": n_blocks, "span": span, "peaks": peaks.value, "_grid": _grid,
        }  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def disjoint(
        cls, features: ArrayLike, active: ArrayLike | None = None, budgets: ArrayLike | None = None
    ) -> DesignProblem:
        """Clients are groups, arms are blocks: each arm has a parameter vector of its own.

        ``features`` is (M, K, d) for M clients and K arms; ``active`` (M, K), all by default, says which
        arms each client may still pull.

        >>> DesignProblem.disjoint(np.ones((4, 2, 3)))
        DesignProblem(8 candidates x 3, 4 groups, 2 blocks, rank 2)
        """
        return cls._from_grid(features, active, budgets, shared=False)

    @classmethod
    def shared(
        cls, features: ArrayLike, active: ArrayLike | None = None, budgets: ArrayLike | None = None
    ) -> DesignProblem:
        """Clients are groups, and all arms inform one parameter vector: a single block.

        >>> DesignProblem.shared(np.ones((4, 2, 3)))
        DesignProblem(8 candidates x 3, 4 groups, 1 block, rank 1)
        """
        return cls._from_grid(features, active, budgets, shared=True)

    @classmethod
    def _from_grid(
        cls,
        features: ArrayLike,
        active: ArrayLike | None,
        budgets: ArrayLike | None,
        *,
        shared: bool,
    ) -> DesignProblem:
        x = features if isinstance(features, np.ndarray) else _as_array(features, "features")
        _refuse_mask(x, "features")
        if x.ndim != 3 or 0 in x.shape:
            raise ValueError(
                f"features must have shape (clients, arms, dim), none of them 0; got {x.shape}. "
                "Stack one (arms, dim) array per client."
            )
        m, k, d = x.shape
        flat: np.ndarray | None = None
        if active is None:
            x = x.reshape(m * k, d)
            group = np.repeat(np.arange(m), k)
            arm = np.broadcast_to(np.arange(k), (m, k)).reshape(-1)
        else:
            mask = _as_array(active, "active")
            if mask.shape != (m, k) or mask.dtype != bool:
                raise ValueError(
                    f"active must be a boolean array of shape {(m, k)}; got {mask.dtype} of shape "
                    f"{mask.shape}. Pass active.astype(bool) with one row per client."
                )
            idle = np.flatnonzero(~mask.any(axis=1))
            if len(idle):
                raise ValueError(
                    f"active must leave every client an arm; client {idle[0]} has none. "
                    "Drop the client or keep one of its arms."
                )
            flat = np.flatnonzero(mask)
            group, arm = np.divmod(flat, k)
            x = x.reshape(m * k, d)[flat]
        block = np.zeros_like(arm) if shared else arm
        return cls(x, group, block, budgets, _n_blocks=1 if shared else k, _grid=(m, k, flat))

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.candidates)

    @property
    def dim(self) -> int:
        """Length of a candidate."""
        return self.candidates.shape[1]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.budgets)

    @property
    def ranks(self) -> np.ndarray:
        """Rank of every block."""
        return self.span.ranks

    @property
    def n_parameters(self) -> int:
        """Number of parameters, one a column in every block: the largest rank there could be."""
        return self.n_blocks * self.dim

    @property
    def rank(self) -> int:
        """D, the sum of the ranks of the blocks."""
        return int(self.span.ranks.sum())

    @cached_property
    def enough(self) -> int:
        """n_groups + Q, Q = sum of r (r + 1) / 2 over blocks: that many candidates with weight suffice.

        The information is linear in the weights, so a vertex of the optimal weights has no more.
        """
        return self.n_groups + int(np.sum(self.ranks * (self.ranks + 1)) // 2)

    @cached_property
    def log_volume(self) -> float:
        """What turns log det in the coordinates of :mod:`optdesign.span` into log Det of the candidates."""
        return log_volume(self)

    @cached_property
    def rows(self) -> Rows:
        """The numbers that solvers and certificates read; see :mod:`optdesign.rows`."""
        return working_rows(self)

    @cached_property
    def refined(self) -> Rows:
        """The coordinates of all candidates, as good as double precision can hold them."""
        return refined_rows(self)

    @cached_property
    def exact_rank(self) -> np.ndarray:
        """Whether the exact rank of each block is smaller (-1), the same (0) or larger (1) than ``ranks``."""
        return compare_ranks(self.candidates, self.blocks, self.span.pivots, self.ranks)

    @cached_property
    def doubtful_blocks(self) -> np.ndarray:
        """Blocks whose rank was a close decision, or is not the exact rank of the numbers as given."""
        exact = np.flatnonzero(self.exact_rank != SAME)
        return np.union1d(self.span.close_blocks, exact)

    @property
    def rank_note(self) -> str:
        """A sentence naming the blocks whose rank is open to doubt, or an empty string."""
        doubtful = self.doubtful_blocks
        if not len(doubtful):
            return ""
        b = int(doubtful[0])
        rejected, accepted = self.span.margin[b]
        note = (
            f"The rank of {len(doubtful)} block(s) is a close decision; block {b} has rank {self.ranks[b]}, "
            f"with relative residuals {accepted:.1e} accepted and {rejected:.1e} rejected."
        )
        if self.exact_rank[b] == LARGER:
            note += (
                " In exact arithmetic on the numbers as given it is larger: what exceeds it was taken for "
                "rounding, and the design is optimal for the rest."
            )
        elif self.exact_rank[b] != SAME:
            note += " In exact arithmetic on the numbers as given it is smaller."
        return note

    def coordinates(self, rows: slice | np.ndarray) -> np.ndarray:
        """Coordinates of some candidates in the basis of their blocks, shape (rows, largest rank)."""
        rows = np.arange(self.n_candidates)[rows]  # also checks them
        out = np.empty((len(rows), self.span.maps.shape[2]))
        write_refined(self.candidates, self.blocks, rows, self.span.maps, out)
        return out

    def uniform(self) -> np.ndarray:
        """The weights that share each group's budget equally."""
        return (self.budgets / np.bincount(self.groups, minlength=self.n_groups))[self.groups]

    def to_grid(self, values: np.ndarray) -> np.ndarray:
        """Lay one value per candidate out as (clients, arms), zero where inactive."""
        if self._grid is None:
            raise ValueError(
                "only problems made by DesignProblem.disjoint or .shared have clients and arms. "
                "Index by groups and blocks instead."
            )
        m, k, flat = self._grid
        if flat is None:
            return values.reshape(m, k).copy()
        grid = np.zeros(m * k)
        grid[flat] = values
        return grid.reshape(m, k)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled problem: frozen as before, which arrays by themselves do not remember."""
        for name, value in state.items():
            object.__setattr__(self, name, read_only(value) if isinstance(value, np.ndarray) else value)

    def __repr__(self) -> str:
        def count(n: int, word: str) -> str:
            return f"{n} {word}" + ("" if n == 1 else "s")

        return (
            f"DesignProblem({count(self.n_candidates, 'candidate')} x {self.dim}, "
            f"{count(self.n_groups, 'group')}, {count(self.n_blocks, 'block')}, rank {self.rank})"
        )


def _frozen(array: np.ndarray, source: object) -> np.ndarray:
    """A read-only C-ordered array that later changes of a small source do not reach."""
    out = np.ascontiguousarray(array)
    if np.may_share_memory(out, np.asarray(source)) and out.nbytes <= COPY_LIMIT:
        out = out.copy()
    return read_only(out)


def read_only(array: np.ndarray) -> np.ndarray:
    """A read-only view. Kernels are compiled once, for this kind of input."""
    out = array.view(np.ndarray)
    out.flags.writeable = False
    return out


def _matrix(candidates: ArrayLike) -> np.ndarray:
    source = candidates if isinstance(candidates, np.ndarray) else _as_array(candidates, "candidates")
    _refuse_mask(source, "candidates")
    if source.ndim != 2 or 0 in source.shape:
        raise ValueError(
            f"candidates must have shape (N, d), neither of them 0; got {source.shape}. "
            "Put one candidate a row; a single feature is a column: x[:, None]."
        )
    if source.dtype.kind not in "buif":
        raise ValueError(
            f"candidates must be real numbers; got dtype {source.dtype}. Convert the columns first."
        )
    if isinstance(source, np.memmap) and source.dtype == np.float32:
        return _frozen(source, source)
    x = np.asarray(source, dtype=np.float64)
    if source.dtype.itemsize >= 8 and source.dtype != np.float64:
        _check_exact(source, x)
    return _frozen(x, source)


def _check_exact(source: np.ndarray, x: np.ndarray) -> None:
    """Refuse integers and long doubles that double precision cannot hold."""
    lost = ~np.all((x.astype(source.dtype) == source) | (source != source), axis=1)
    if lost.any():
        at = int(np.argmax(lost))
        raise ValueError(
            f"candidates must fit double precision, which candidates[{at}] = {source[at].tolist()} does not. "
            "Subtract an offset, or round them yourself: candidates.astype(float)."
        )


def _is_single(candidates: ArrayLike) -> bool:
    """Whether candidates come in single precision or less, with the rounding that this means."""
    dtype = getattr(candidates, "dtype", None)
    return dtype is not None and dtype.kind == "f" and dtype.itemsize < 8


def _refuse_mask(array: np.ndarray, name: str) -> None:
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(
            f"{name} must not be masked; NumPy would drop the mask. Drop the masked rows, or fill them in."
        )


def _as_array(values: ArrayLike, name: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(
            f"{name} must be a rectangular array; its rows differ in length. Pad or drop the short rows."
        ) from None


def _labels(labels: ArrayLike | None, n: int, name: str) -> tuple[np.ndarray, int]:
    """Labels as integers, and how many there are: the largest and one."""
    if labels is None:
        return read_only(np.zeros(n, np.int64)), 1
    array = _as_array(labels, name)
    if array.shape != (n,):
        raise ValueError(
            f"{name} must have one label per candidate, shape ({n},); got {array.shape}. "
            "Label every row of candidates."
        )
    if array.dtype.kind not in "buif":
        raise ValueError(
            f"{name} must be integers; got dtype {array.dtype}. "
            "Number your labels: numpy.unique(labels, return_inverse=True)[1]."
        )
    if array.dtype.kind == "f":
        array = _integral(array, name)
    if array.min() < 0:
        at = int(np.argmin(array))
        raise ValueError(f"{name} must not be negative; {name}[{at}] = {array[at]}. Number them from 0.")
    count = int(array.max()) + 1
    if count > max(LABEL_SLACK, 10 * n):
        at = int(np.argmax(array))
        raise ValueError(
            f"{name} must be numbered 0, 1, 2, ...; {name}[{at}] = {array[at]} with {n} candidates. "
            "Renumber: numpy.unique(labels, return_inverse=True)[1]."
        )
    return _frozen(array.astype(np.int64, copy=False), labels), count


def _integral(array: np.ndarray, name: str) -> np.ndarray:
    bad = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array)) & (np.abs(array) < 2**53)))
    if len(bad):
        raise ValueError(
            f"{name} must be integers; {name}[{bad[0]}] = {array[bad[0]]}. "
            "Number your labels: numpy.unique(labels, return_inverse=True)[1]."
        )
    return array.astype(np.int64)


def _budgets(budgets: ArrayLike | None, n_groups: int) -> np.ndarray:
    if budgets is None:
        return read_only(np.ones(n_groups))
    array = _as_array(_by_label(budgets, n_groups), "budgets")
    if array.dtype.kind not in "buif":
        raise ValueError(f"budgets must be real numbers; got dtype {array.dtype}. Convert them first.")
    if array.ndim == 0:
        array = np.full(n_groups, array)
    if array.ndim != 1 or len(array) < n_groups:
        raise ValueError(
            f"budgets must have one entry per group, shape ({n_groups},); got {array.shape}. "
            f"The largest group label is {n_groups - 1}."
        )
    array = np.asarray(array, dtype=np.float64)
    bad = np.flatnonzero(~((array > 0) & np.isfinite(array)))
    if len(bad):
        raise ValueError(
            f"budgets must be positive and finite; budgets[{bad[0]}] = {array[bad[0]]:g}. "
            "Drop the group or give it a budget."
        )
    _check_range("budgets", float(array.max()))
    _check_range("budgets", float(array.min()))
    return _frozen(array, budgets)


def _by_label(budgets: Any, n_groups: int) -> Any:
    """Budgets in the order of the groups, if they come with labels: a dict, or a pandas Series."""
    items = budgets.items() if hasattr(budgets, "items") else None
    if items is None:
        return budgets
    given = dict(items)
    if set(given) != set(range(n_groups)):
        some = ", ".join(map(repr, list(given)[:5])) + (", ..." if len(given) > 5 else "")
        raise ValueError(
            f"budgets with labels must have those of the groups, 0 to {n_groups - 1}; got {some}. Number the "
            "groups as the labels, or pass an array in their order."
        )
    return [given[i] for i in range(n_groups)]


def _check_range(name: str, size: float) -> None:
    """Refuse magnitudes whose powers leave the range of floating point."""
    if size > LARGEST or 0 < size < 1 / LARGEST:
        raise ValueError(
            f"{name} must be between {1 / LARGEST:g} and {LARGEST:g} in size; got {size:g}. "
            "Change the units: the optimal design does not depend on them."
        )


def _check_columns(name: str, peaks: np.ndarray) -> None:
    """Refuse columns so small that their coordinates would leave the range of floating point."""
    if peaks.min() >= SMALLEST:
        return
    tiny = (peaks > 0) & (peaks < SMALLEST)
    if tiny.any():
        block, column = (int(i) for i in np.argwhere(tiny)[0])
        raise ValueError(
            f"{name} must have columns of at least {SMALLEST:g} in size; column {column} is at most "
            f"{peaks[block, column]:g} in block {block}. Change its unit: the design does not depend on it."
        )


def check_problem(problem: object) -> None:
    """Refuse what is not a problem."""
    if not isinstance(problem, DesignProblem):
        raise TypeError(
            f"problem must be a DesignProblem; got {type(problem).__name__}. Wrap it: "
            "DesignProblem(candidates)."
        )


def check_number(value: object, name: str, remedy: str) -> None:
    """Refuse what is not a real number."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number; got {value!r} of type {type(value).__name__}. {remedy}")


def floats(values: ArrayLike, name: str) -> np.ndarray:
    """Values as float64, with an error that names them."""
    array = _as_array(values, name)
    if array.dtype.kind not in "buif":
        raise ValueError(f"{name} must be real numbers; got dtype {array.dtype}. Convert them first.")
    return np.asarray(array, dtype=np.float64)


def _check_groups(groups: np.ndarray, budgets: np.ndarray) -> None:
    empty = np.flatnonzero(np.bincount(groups, minlength=len(budgets)) == 0)
    if len(empty):
        raise ValueError(
            f"every group must have a candidate; group {empty[0]} of {len(budgets)} has none. "
            "Number the groups 0, 1, 2, ... without gaps, with one budget each."
        )
