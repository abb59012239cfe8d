"""The one problem of this package.

Given candidates x_n, each in a group i(n) with budget f_i and in a parameter block b(n),

    maximise   sum_b log Det( sum_{n in b} w_n x_n x_n' )          (Det: pseudo-determinant)
    subject to sum_{n in i} w_n = f_i  for every group i,  w >= 0,

Every parameter block keeps the rank of its candidates. Classical D-optimality has one group and one
parameter block; a stratified design has several groups and one parameter block; the multi-client design of
Fed-PE has one parameter block per arm (disjoint parameters) or a single one (shared parameters).

>>> import numpy as np, optdesign as od
>>> p = od.DesignProblem(np.eye(3))
>>> p.n_candidates, p.n_groups, p.n_parameter_blocks, p.rank
(3, 1, 1, 3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.errors import InputError
from optdesign.factors.formula import Model
from optdesign.problem import inputs
from optdesign.problem.candidates import Candidates
from optdesign.problem.coordinates import Rows, log_volume, refined_rows, working_rows, write_refined
from optdesign.problem.exact_rank import LARGER, SAME_RANK, compare_ranks
from optdesign.problem.parts import unpack
from optdesign.problem.source import Frozen, Source, read_only
from optdesign.problem.span import DECISION, Peaks, Span, find_span, scan
from optdesign.sources.engine import Engine
from optdesign.sources.opening import is_larger_than_memory
from optdesign.tables.columns import Settings


@dataclass(frozen=True, eq=False, repr=False)
class DesignProblem(Frozen):
    """State a design problem: candidates, groups, parameter blocks and budgets. Frozen.

    Parameters
    ----------
    candidates : array_like of shape (N, d), data frame, path, or Candidates
        One candidate a row. Integers, float32, lists and any memory order are accepted. A zero vector is
        allowed and carries no information. Row-major float64 arrays above 64 MiB, and such memory maps of
        float64 or float32, are not copied: leave them unchanged during the lifetime of the problem. The
        columns of a data frame (pandas, polars, pyarrow) or of a CSV or Parquet file are the features.
        Columns that groups and parameter blocks name are not features, and neither are columns that only name
        rows ("Unnamed: 0", "index" if it counts, an unnamed first column). Candidates that would take more
        than a tenth of the memory, and directories of Parquet or NPY files, are read chunk by chunk.
    groups : array_like of shape (N,) or str, optional
        Group of every candidate, or the name of a column. Groups are integers 0 .. n_groups - 1, each with at
        least one candidate, or labels of any other kind, numbered in sorted order or in the order of their
        categories. With budgets by label, integers that are not 0 .. n_groups - 1 are labels, too. Default:
        one group.
    parameter_blocks : array_like of shape (N,) or str, optional
        Parameter block of every candidate, or the name of a column. Candidates of one parameter block inform
        the same parameters, and every parameter block has parameters of its own. A blocking factor, such as
        a day, is different: its effect is a term of the model, and each day is a group. A parameter block
        without candidates has rank 0. Default: one parameter block.
    budgets : array_like of shape (n_groups,), mapping or float, optional
        Sum of the weights of each group, by number or by label. A scalar holds for every group. Default: 1.
    names : sequence of str, optional
        Names of the columns of an array.
    settings : mapping of str to columns of N entries, optional
        Settings behind the rows of an array, in the factors' own units.
    group_names : sequence, optional
        Names of groups that are given as integers, in the order of the integers.
    parameter_block_names : sequence, optional
        Names of parameter blocks that are given as integers, in the order of the integers.
    blocks : None
        Any other value raises an error that explains parameter blocks and blocking factors.

    Attributes
    ----------
    source : Source
        Access to the candidates, in memory or elsewhere.
    groups : ndarray of shape (N,)
        Group of every candidate, as integers.
    parameter_blocks : ndarray of shape (N,)
        Parameter block of every candidate, as integers.
    budgets : ndarray of shape (n_groups,)
        Sum of the weights of every group.
    n_parameter_blocks : int
        Number of parameter blocks.
    names : tuple of str or None
        Names of the columns.
    settings : Settings or None
        Columns of the factors in their own units, if the candidates were made of factors.
    model : Model or None
        Model that made the features, if they were made by :func:`optdesign.candidates`.
    group_names : tuple or None
        Label of every group, if groups were not given as plain integers.
    parameter_block_names : tuple or None
        Label of every parameter block, if they were not given as plain integers.
    span : Span
        Bases and ranks of the parameter blocks.
    peaks : ndarray
        Largest absolute entry of every parameter block and column.

    Raises
    ------
    InputError
        If an argument breaks one of these rules. The message names the argument, the rule, the value and a
        remedy.

    See Also
    --------
    optdesign.candidates : Make candidates from factors and a model.
    optdesign.solve : Find the optimal weights of a problem.
    optdesign.exact : Find a list of whole runs.

    Examples
    --------
    >>> x = [[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]]
    >>> DesignProblem(x, groups=[0, 0, 1], budgets=[2, 1])
    DesignProblem(3 candidates x 2, 2 groups, 1 parameter block, rank 2)
    >>> p = DesignProblem(x, groups=["Lyon", "Lyon", "Turin"], budgets={"Turin": 1, "Lyon": 2})
    >>> p.group_names, p.budgets.tolist()
    (('Lyon', 'Turin'), [2.0, 1.0])
    """

    source: Source
    groups: np.ndarray
    parameter_blocks: np.ndarray
    budgets: np.ndarray
    n_parameter_blocks: int
    names: tuple[str, ...] | None
    settings: Settings | None
    group_names: tuple[Any, ...] | None
    parameter_block_names: tuple[Any, ...] | None
    span: Span = field(repr=False)
    peaks: np.ndarray = field(repr=False)
    _grid: tuple[int, int, np.ndarray | None] | None = None
    model: Model | None = field(default=None, repr=False)

    def __new__(cls, candidates: Any = None, *_: Any, **__: Any) -> DesignProblem:
        """Return an empty problem, of the subclass for candidates that are larger than memory if they are."""
        if cls is DesignProblem and is_larger_than_memory(candidates):
            from optdesign.problem.large import LargeProblem  # which is a subclass

            return object.__new__(LargeProblem)
        return object.__new__(cls)

    def __init__(
        self,
        candidates: Any,
        groups: Any = None,
        parameter_blocks: Any = None,
        budgets: Any = None,
        *,
        names: Sequence[str] | None = None,
        settings: Mapping[str, ArrayLike] | None = None,
        group_names: Sequence[Any] | None = None,
        parameter_block_names: Sequence[Any] | None = None,
        _n_blocks: int = 0,
        _grid: tuple[int, int, np.ndarray | None] | None = None,
        blocks: None = None,
        _single: bool = False,
        _model: Model | None = None,
    ) -> None:
        inputs.refuse_blocks(blocks)
        parts = unpack(candidates, names, settings, (groups, parameter_blocks))
        source = Source(inputs.matrix(parts.candidates))
        n = source.n_rows
        if _grid is None:
            group, n_groups, of_groups = inputs.label(
                groups, n, "groups", names=group_names, columns=parts.columns, budgets=budgets
            )
            block, n_blocks, of_blocks = inputs.label(
                parameter_blocks, n, "parameter_blocks", names=parameter_block_names, columns=parts.columns
            )
        else:  # made by this class, and valid
            group, block = read_only(np.asarray(groups)), read_only(np.asarray(parameter_blocks))
            n_groups, n_blocks, of_groups, of_blocks = _grid[0], _n_blocks, None, None
        budget = inputs.check_budgets(budgets, n_groups, of_groups)
        if len(budget) != n_groups or (groups is not None and _grid is None):
            inputs.check_groups(np.bincount(group, minlength=len(budget)), of_groups)
        inputs.check_settings(parts.settings, n)
        given = "candidates" if _grid is None else "features"
        peaks, bad = scan(source, block, n_blocks)
        if bad >= 0:
            where = f"candidates[{bad}]"
            if _grid is not None:
                at = bad if _grid[2] is None else int(_grid[2][bad])
                where = f"features[{at // _grid[1]}, {at % _grid[1]}]"
            value = f"{where} = {source.piece(bad, bad + 1)[0].tolist()}"
            raise InputError(given, "must be finite", value, "Drop the row or fill in its missing entries.")
        columns = inputs.column_names(parts.names, source.dim)
        inputs.check_peaks(given, peaks.value, n, columns, of_blocks)
        rtol = DECISION.tolerance(parts.is_single or _single)
        values: dict[str, Any] = {
            "source": source, "groups": group, "parameter_blocks": block, "budgets": budget,
            "n_parameter_blocks": n_blocks, "names": columns, "settings": parts.settings,
            "group_names": of_groups, "parameter_block_names": of_blocks, "peaks": peaks.value,
            "_grid": _grid, "model": candidates.model if isinstance(candidates, Candidates) else _model,
        }  # fmt: skip
        self.__dict__.update(values)
        self._decide_rank(peaks, rtol)

    def _decide_rank(self, peaks: Peaks, rtol: float) -> None:
        """Choose bases of the parameter blocks. Sets ``span``."""
        root = np.sqrt(self.budgets)
        span = find_span(self.source, self.parameter_blocks, root, self.groups, peaks, rtol)
        inputs.check_span(
            "candidates" if self._grid is None else "features", span.maps, self.parameter_block_names
        )
        self.__dict__["span"] = span

    @classmethod
    def disjoint(
        cls, features: ArrayLike, active: ArrayLike | None = None, budgets: ArrayLike | None = None
    ) -> DesignProblem:
        """Return the problem of clients and arms in which every arm has a parameter vector of its own.

        Clients are groups, and arms are parameter blocks.

        Parameters
        ----------
        features : array_like of shape (M, K, d)
            Feature vectors of K arms for each of M clients.
        active : array_like of bool of shape (M, K), optional
            True for the arms that a client may still pull. Default: all.
        budgets : array_like of shape (M,), optional
            Budget of every client. Default: 1.

        Returns
        -------
        DesignProblem
            The problem. ``result.weights_matrix()`` has the shape (M, K).

        Examples
        --------
        >>> DesignProblem.disjoint(np.ones((4, 2, 3)))
        DesignProblem(8 candidates x 3, 4 groups, 2 parameter blocks, rank 2)
        """
        return cls._from_grid(features, active, budgets, shared=False)

    @classmethod
    def shared(
        cls, features: ArrayLike, active: ArrayLike | None = None, budgets: ArrayLike | None = None
    ) -> DesignProblem:
        """Return the problem of clients and arms in which all arms inform one parameter vector.

        Clients are groups, and there is 1 parameter block.

        Parameters
        ----------
        features : array_like of shape (M, K, d)
            Feature vectors of K arms for each of M clients.
        active : array_like of bool of shape (M, K), optional
            True for the arms that a client may still pull. Default: all.
        budgets : array_like of shape (M,), optional
            Budget of every client. Default: 1.

        Returns
        -------
        DesignProblem
            The problem. ``result.weights_matrix()`` has the shape (M, K).

        Examples
        --------
        >>> DesignProblem.shared(np.ones((4, 2, 3)))
        DesignProblem(8 candidates x 3, 4 groups, 1 parameter block, rank 1)
        """
        return cls._from_grid(features, active, budgets, shared=True)

    @classmethod
    def _from_grid(
        cls, features: ArrayLike, active: ArrayLike | None, budgets: ArrayLike | None, *, shared: bool
    ) -> DesignProblem:
        x = inputs.as_array(features, "features")
        inputs.check_axes(x, "features", "clients, arms, dim", "Stack one (arms, dim) array per client.")
        m, k, d = x.shape
        flat: np.ndarray | None = None
        if active is None:
            x = x.reshape(m * k, d)
            group = np.repeat(np.arange(m), k)
            arm = np.broadcast_to(np.arange(k), (m, k)).reshape(-1)
        else:
            mask = inputs.as_array(active, "active")
            if mask.shape != (m, k) or mask.dtype != bool:
                rule = f"must be a boolean array of shape {(m, k)}"
                remedy = "Pass active.astype(bool) with one row per client."
                raise InputError("active", rule, f"got {mask.dtype} of shape {mask.shape}", remedy)
            for client in np.flatnonzero(~mask.any(axis=1))[:1]:
                rule = "must leave every client an arm"
                remedy = "Drop the client or keep one of its arms."
                raise InputError("active", rule, f"client {client} has none", remedy)
            flat = np.flatnonzero(mask)
            group, arm = np.divmod(flat, k)
            x = x.reshape(m * k, d)[flat]
        block = np.zeros_like(arm) if shared else arm
        return cls(x, group, block, budgets, _n_blocks=1 if shared else k, _grid=(m, k, flat))

    @property
    def formula(self) -> str | None:
        """Formula that makes the candidates of the settings, if they were made of factors."""
        return None if self.model is None or self.model.scale is not None else self.model.formula

    @property
    def candidates(self) -> np.ndarray:
        """All candidates as one array, (N, d), read-only."""
        return self.source.whole()

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return self._table.n_rows

    @property
    def dim(self) -> int:
        """Length of a candidate."""
        return self._table.dim

    @property
    def _table(self) -> Source | Engine:
        return self.source

    @cached_property
    def basis(self) -> np.ndarray:
        """Candidates that span the parameter blocks, one parameter block after the other."""
        return self.span.pivots[self.span.pivots >= 0]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.budgets)

    @property
    def ranks(self) -> np.ndarray:
        """Rank of every parameter block."""
        return self.span.ranks

    @property
    def largest_rank(self) -> int:
        """Largest rank of a parameter block."""
        return self.span.maps.shape[2]

    @property
    def n_parameters(self) -> int:
        """Number of parameters, one for every column in every parameter block: an upper bound of the rank."""
        return self.n_parameter_blocks * self.dim

    @cached_property
    def rank(self) -> int:
        """D, the sum of the ranks of the parameter blocks."""
        return int(np.add.reduce(self.span.ranks))

    @cached_property
    def support_bound(self) -> int:
        """Number of candidates that suffices for an optimal design: n_groups + Q, Q = sum of r (r + 1) / 2.

        The sum is over the ranks r of the parameter blocks. The information is linear in the weights, so a
        vertex of the set of optimal weights has no more positive entries.
        """
        return self.n_groups + int(self.ranks @ (self.ranks + 1)) // 2

    @cached_property
    def log_volume(self) -> float:
        """Log Det of the candidates less log det in coordinates; see :mod:`optdesign.problem.span`."""
        return log_volume(self, self.span.maps)

    @cached_property
    def rows(self) -> Rows:
        """Coordinates that solvers and certificates read; see :mod:`optdesign.problem.coordinates`."""
        return working_rows(self)

    @cached_property
    def refined(self) -> Rows:
        """Coordinates of all candidates, to the precision of double numbers."""
        return refined_rows(self, self.span.maps)

    @cached_property
    def exact_rank(self) -> np.ndarray:
        """Sign of the exact rank less ``ranks``, by parameter block: -1 smaller, 0 equal, 1 larger."""
        return compare_ranks(self.source, self.parameter_blocks, self.basis, self.ranks)

    @cached_property
    def doubtful_blocks(self) -> np.ndarray:
        """Parameter blocks whose rank is a close decision, or differs from the exact rank of the data."""
        exact = np.flatnonzero(self.exact_rank != SAME_RANK)
        return np.union1d(self.span.close_blocks, exact)

    @property
    def rank_note(self) -> str:
        """Sentence that names the parameter blocks whose rank is in doubt, or an empty string."""
        doubtful = self.doubtful_blocks
        if not len(doubtful):
            return ""
        b = int(doubtful[0])
        rejected, accepted = self.span.margin[b]
        note = (
            f"The rank of {len(doubtful)} parameter block(s) is a close decision; parameter block "
            f"{inputs.called(self.parameter_block_names, b)} has rank {self.ranks[b]}, "
            f"with relative residuals {accepted:.1e} accepted and {rejected:.1e} rejected."
        )
        if self.exact_rank[b] == LARGER:
            note += (
                " In exact arithmetic on the numbers as given it is larger. The differences beyond rank "
                f"{self.ranks[b]} are treated as round-off: the design and its certificate do not cover them."
            )
        elif self.exact_rank[b] != SAME_RANK:
            note += " In exact arithmetic on the numbers as given it is smaller."
        return note

    def pivots_of(self, blocks: int | np.ndarray) -> np.ndarray:
        """Return the candidates of the basis of some parameter blocks, one after the other.

        Parameters
        ----------
        blocks : int or ndarray of int
            Numbers of the parameter blocks.

        Returns
        -------
        ndarray of shape (pivots, d)
            Candidates of the bases.
        """
        own = self.span.pivots[blocks]
        return self.source.take(own[own >= 0])

    def coordinates(self, rows: slice | np.ndarray) -> np.ndarray:
        """Return the coordinates of some candidates in the basis of their parameter block.

        Parameters
        ----------
        rows : slice or ndarray of int
            Numbers of the candidates.

        Returns
        -------
        ndarray of shape (rows, largest_rank)
            Coordinates, padded with zeros.
        """
        rows = np.arange(self.n_candidates)[rows]  # also checks them
        out = np.empty((len(rows), self.span.maps.shape[2]))
        write_refined(
            read_only(self.source.take(rows)), read_only(self.parameter_blocks[rows]), self.span.maps, out
        )
        return out

    @cached_property
    def equal_shares(self) -> np.ndarray:
        """Weight of a candidate by group, if the budget of the group is shared equally."""
        return read_only(self.budgets / np.bincount(self.groups, minlength=self.n_groups))

    def uniform(self) -> np.ndarray:
        """Return the weights that share the budget of each group equally.

        Returns
        -------
        ndarray of shape (N,)
            Feasible weights.
        """
        return self.equal_shares[self.groups]

    def to_grid(self, values: np.ndarray) -> np.ndarray:
        """Arrange one value per candidate by clients and arms.

        Parameters
        ----------
        values : ndarray of shape (N,)
            One value per candidate.

        Returns
        -------
        ndarray of shape (M, K)
            The values, with zeros for inactive arms.
        """
        if self._grid is None:
            raise ValueError(
                "only problems made by DesignProblem.disjoint or .shared have clients and arms. "
                "Index by groups and parameter blocks instead."
            )
        m, k, flat = self._grid
        if flat is None:
            return values.reshape(m, k).copy()
        grid = np.zeros(m * k)
        grid[flat] = values
        return grid.reshape(m, k)

    def __repr__(self) -> str:
        def count(n: int, word: str) -> str:
            return f"{n} {word}" + ("" if n == 1 else "s")

        return (
            f"DesignProblem({count(self.n_candidates, 'candidate')} x {self.dim}, "
            f"{count(self.n_groups, 'group')}, {count(self.n_parameter_blocks, 'parameter block')}, "
            f"rank {self.rank})"
        )


def check_problem(problem: object) -> None:
    """Raise TypeError unless the argument is a DesignProblem."""
    if not isinstance(problem, DesignProblem):
        name = type(problem).__name__
        remedy = "Wrap it: DesignProblem(candidates)."
        if name == "MainEffects":
            remedy = (
                "It has no list of candidates, and so no weights: pass it to exact for whole runs, or list "
                "the candidates: DesignProblem(candidates(factors, model))."
            )
        raise TypeError(f"problem must be a DesignProblem; got {name}. {remedy}")
