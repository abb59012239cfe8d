"""Problems whose candidates are larger than memory.

Such a problem keeps nothing of length N. It has the same rank decision, coordinates and exact check of the
rank as one in memory, computed by passes over the chunks of an engine (:mod:`optdesign.sources.engine`), and
a sample of the candidates. Solvers work on a *pool* of candidates, which :meth:`LargeProblem.part` makes an
ordinary problem, in the coordinates and with the bounds on round-off of all candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from optdesign.errors import InputError
from optdesign.problem import chunks, inputs
from optdesign.problem.coordinates import Rows, refined_rows
from optdesign.problem.exact_rank import combined, normals_of
from optdesign.problem.problem import DesignProblem
from optdesign.problem.selection import Pool, united
from optdesign.problem.source import Source, read_only
from optdesign.problem.span import DECISION, Span, signed_sums
from optdesign.sources.engine import Engine, Found, distinct, merge_distinct
from optdesign.sources.opening import open_engine


class Sample(NamedTuple):
    """Numbers of candidates that are drawn."""

    each: int = 8
    """Candidates per dimension of a parameter block, and per entry of its information."""
    most: int = 1 << 14
    """Largest number of candidates, unless groups are more: every group has 2."""


SAMPLE = Sample()


class LargeProblem(DesignProblem):
    """A problem whose candidates stay where they are. Made by :class:`optdesign.DesignProblem`."""

    engine: Engine
    numbers: chunks.Numbers
    basis_pool: Pool
    """The candidates of the basis."""
    sample: Pool
    """Drawn candidates of every group and parameter block, those with the largest entries, and the basis."""

    def __init__(
        self,
        candidates: Any,
        groups: Any = None,
        parameter_blocks: Any = None,
        budgets: Any = None,
        *,
        names: Sequence[str] | None = None,
        settings: None = None,
        group_names: Sequence[Any] | None = None,
        parameter_block_names: Sequence[Any] | None = None,
        blocks: None = None,
        _budgets: Callable[[tuple[Any, ...] | None], Any] | None = None,
    ) -> None:
        inputs.refuse_blocks(blocks)
        if settings is not None:
            remedy = "Drop the argument."
            raise InputError("settings", "must be left out for candidates larger than memory", remedy=remedy)
        engine = open_engine(candidates, groups, parameter_blocks)
        if not engine.n_rows or not engine.dim:
            value = f"got {(engine.n_rows, engine.dim)}"
            remedy = "Put one candidate a row."
            raise InputError("candidates", "must have shape (N, d), neither of them 0", value, remedy)
        found = engine.reduce(distinct, merge_distinct, features=False) if any(engine.labels) else ({}, {})
        named = hasattr(budgets, "items")
        numbers, n_groups, of_groups = _numbering(
            found[0], engine, "groups", group_names, named, engine.ordered[0]
        )
        block_numbers, n_blocks, of_blocks = _numbering(
            found[1], engine, "parameter_blocks", parameter_block_names, False, engine.ordered[1]
        )
        budget = inputs.check_budgets(_budgets(of_groups) if _budgets else budgets, n_groups, of_groups)
        n_groups = len(budget)
        columns = inputs.column_names(engine.names if names is None else names, engine.dim)
        self.__dict__.update(
            engine=engine, budgets=budget, n_parameter_blocks=n_blocks, names=columns, settings=None,
            group_names=of_groups, parameter_block_names=of_blocks,
            numbers=(numbers, block_numbers), _grid=None,
        )  # fmt: skip
        wanted = SAMPLE.each * (16 + n_blocks * engine.dim * (engine.dim + 1) // 2)
        drawn = max(2, min(SAMPLE.most, wanted) // n_groups), SAMPLE.each * engine.dim
        scanned = self.reduce(chunks.scan, chunks.merge_scans, ((n_groups, n_blocks), drawn))
        self._check(scanned)
        rtol = DECISION.tolerance(engine.is_single)
        highest = scanned.highest.take(np.flatnonzero(scanned.highest.rows >= 0))
        pool = united(highest, scanned.by_group.pool, scanned.by_block.pool)
        span, basis = self._find_span(pool, scanned.peaks, rtol)
        inputs.check_span("candidates", span.maps, of_blocks)
        self.__dict__.update(peaks=scanned.peaks, span=span, sample=united(pool, basis), basis_pool=basis)

    def _check(self, scanned: chunks.Scanned) -> None:
        """Raise InputError unless all entries are finite, some are not 0, and all groups have candidates."""
        if len(scanned.bad.rows):
            place, x = self.engine.place(int(scanned.bad.rows[0])), scanned.bad.x[0]
            at = int(np.argmin(np.isfinite(x)))
            named = self.names is not None and f"{self.names[at]!r} is {x[at]} in {place}"
            remedy = "Drop the row or fill in its missing entries."
            raise InputError("candidates", "must be finite", named or f"{place} = {x.tolist()}", remedy)
        inputs.check_peaks(
            "candidates", scanned.peaks, self.n_candidates, self.names, self.parameter_block_names
        )
        inputs.check_groups(scanned.sizes, self.group_names)

    def _find_span(self, pool: Pool, peaks: np.ndarray, rtol: float) -> tuple[Span, Pool]:
        """Choose a basis of every parameter block, as :func:`optdesign.problem.span.find_span` does.

        Returns the span, whose pivots are numbers of candidates, and the candidates of the basis.
        """
        n_blocks, root = self.n_parameter_blocks, read_only(np.sqrt(self.budgets))
        span = chunks.span_of(pool, root, rtol, n_blocks)
        occupied: np.ndarray = np.maximum.reduce(peaks, axis=1) > 0
        if (
            np.any(span.ranks[occupied] < self.dim)
            or np.any(occupied[span.close_blocks])
            or self.reduce(chunks.modesty, max, (root, signed_sums(span.maps))) > DECISION.modest
        ):
            merge = partial(chunks.merge_winners, row_scale=root, rtol=rtol)
            winners = self.reduce(chunks.contest, merge, (root, rtol, n_blocks))
            pool = winners.pool
            span = chunks.span_of(pool, root, rtol, n_blocks)
            np.maximum(winners.rejected, span.margin[:, 0], out=span.margin[:, 0])
        at = span.pivots >= 0
        basis = pool.take(np.sort(span.pivots[at]))
        span.pivots[at] = pool.rows[span.pivots[at]]
        return span.narrowed(), basis

    def reduce(self, task: Callable[..., Any], merge: Callable[..., Any], args: tuple[Any, ...] = ()) -> Any:
        """Return the merged results of ``task(first, x, groups, blocks, *args)`` of all chunks."""
        return self.engine.reduce(chunks.with_numbers, merge, (task, self.numbers, args))

    def fetch(self, rows: np.ndarray) -> Pool:
        """Return some candidates, whose numbers ascend, by one pass over the data."""
        return self.reduce(chunks.fetch, united, (np.asarray(rows, np.int64),))

    def part(self, pool: Pool) -> Part:
        """Return the problem of some candidates, with those of the basis and one of every group."""
        return Part(self, pool)

    @cached_property
    def reach(self) -> np.ndarray:
        """Bound, by block and column, on refined coordinates times the root of the budget; takes a pass."""
        return self.reduce(chunks.reach, np.maximum, (self.span.maps, read_only(np.sqrt(self.budgets))))

    @cached_property
    def exact_rank(self) -> np.ndarray:
        """Compare the exact rank of each parameter block with ``ranks``; a pass if one is not full."""
        ranks = self.ranks
        normals = normals_of(self.pivots_of(np.arange(self.n_parameter_blocks)), ranks)
        if not np.any(ranks < self.dim):
            return combined(*(verdict for _, verdict in normals))
        return combined(*self.reduce(chunks.outside, np.maximum, (ranks, normals)))

    def pivots_of(self, blocks: int | np.ndarray) -> np.ndarray:
        """Return the candidates of the basis of some parameter blocks, one after the other."""
        own = self.span.pivots[blocks]
        return self.basis_pool.x[np.searchsorted(self.basis_pool.rows, own[own >= 0])]

    @property
    def _table(self) -> Engine:
        return self.engine

    def _not_in_memory(self) -> NoReturn:
        """Raise InputError: candidates and labels are not in memory."""
        value = f"its {self.n_candidates} candidates are not"
        remedy = "Use result.in_memory(), which has the candidates with weight, and its problem."
        raise InputError("the problem", "must be in memory for this", value, remedy)

    source: Any = property(_not_in_memory)
    groups: Any = property(_not_in_memory)
    parameter_blocks: Any = property(_not_in_memory)


class Part(DesignProblem):
    """Some candidates of a problem that is larger than memory, as a problem in memory.

    Its coordinates, its rank and its bounds on round-off are those of all candidates.
    """

    whole: LargeProblem
    pool: Pool

    def __init__(self, whole: LargeProblem, pool: Pool) -> None:
        pivots = whole.span.pivots
        at = np.where(pivots >= 0, np.searchsorted(pool.rows, pivots), -1)
        self.__dict__.update(
            whole=whole, pool=pool, source=Source(read_only(pool.x)), groups=read_only(pool.groups),
            parameter_blocks=read_only(pool.blocks), budgets=whole.budgets, names=whole.names, settings=None,
            n_parameter_blocks=whole.n_parameter_blocks, group_names=whole.group_names,
            parameter_block_names=whole.parameter_block_names, span=whole.span._replace(pivots=at),
            peaks=whole.peaks, _grid=None,
        )  # fmt: skip

    @cached_property
    def refined(self) -> Rows:
        """The coordinates of these candidates, with the bounds on round-off of all candidates."""
        return refined_rows(self, self.span.maps, self.whole.reach)

    @property
    def exact_rank(self) -> np.ndarray:
        """The comparison of the ranks for all candidates."""
        return self.whole.exact_rank

    def alone(self) -> DesignProblem:
        """Return the problem of these candidates without the others."""
        return DesignProblem(
            self.source.whole(), self.groups, self.parameter_blocks, self.budgets, names=self.names,
            group_names=self.group_names, parameter_block_names=self.parameter_block_names,
            _single=self.span.is_single,
        )  # fmt: skip


def _numbering(
    found: Found, engine: Engine, name: str, names: Any, by_label: bool, ordered: bool
) -> tuple[dict[Any, int] | None, int, tuple[Any, ...] | None]:
    """Return the number of every label (None if labels are numbers), how many there are, and their names.

    With ``by_label``, integers that are not 0, 1, 2, ... are labels like others.
    """
    if not found:
        return None, 1, inputs.label_names(names, 1, name)
    present = [label for label, (_, has_row) in found.items() if has_row]
    present.sort(key=(lambda label: found[label][0] or (0, 0)) if ordered else None)
    are_numbers = next(iter(found.values()))[0] is None
    if are_numbers and not (by_label and names is None and present != list(range(len(present)))):
        if present[0] < 0:
            raise InputError(name, "must not be negative", f"got {present[0]}", "Number them from 0.")
        if present[-1] >= max(1000, 10 * engine.n_rows):
            value = f"got {present[-1]} with {engine.n_rows} candidates"
            remedy = "Renumber: numpy.unique(labels, return_inverse=True)[1]."
            raise InputError(name, "must be numbered 0, 1, 2, ...", value, remedy)
        known = inputs.label_names(names, present[-1] + 1, name)
        return None, present[-1] + 1 if known is None else len(known), known
    inputs.refuse_names(names, name)
    names = tuple(present)
    if isinstance(present[0], np.datetime64):  # as text with the digits that the latest needs
        names = tuple(np.datetime_as_string(np.array(present), unit="auto").tolist())
    return {label: k for k, label in enumerate(present)}, len(present), names
