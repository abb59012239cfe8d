"""Whole runs: what an experiment is made of, with a bound on how good they are.

Counts c_n are whole numbers, c_n runs of candidate n. With F_upper a certified upper bound on log Det over
all designs that have as many runs in every group, fractions of runs included,

    efficiency = exp((F(counts) - F_upper) / D)

bounds the D-efficiency of the runs from below, against the best whole runs as well as against the best
weights. F_upper = F(w) + D log(G(w) / D) comes from the certificate of a design w, whether its solver has
converged or not; see :mod:`optdesign.design.efficiency`.

The certificate of the runs proves their rank. If their information is too ill-conditioned for that, exact
arithmetic (:mod:`optdesign.verification.exact_arithmetic`) computes rank and log Det, and the efficiency
is 0.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from optdesign.design import display as listing
from optdesign.design.certificate import certify
from optdesign.design.efficiency import efficiency
from optdesign.design.result import DesignResult, rounded_down
from optdesign.errors import InputError
from optdesign.factors.formula import pandas
from optdesign.problem.dependence import of_what
from optdesign.problem.problem import DesignProblem
from optdesign.problem.source import read_only
from optdesign.runs.rank_basis import exact_rank
from optdesign.runtime.files import atomic
from optdesign.solvers.solve import solve
from optdesign.tables.files import Table, check_suffix, check_writable, write_table
from optdesign.verification.exact_arithmetic import factorise, information

MOST_RUNS = 1 << 53
"""Largest number of runs of a group: counts stay exact in double precision."""


class RunStatus(Enum):
    """Reason why the search for runs stopped; the value is the message.

    See Also
    --------
    optdesign.Runs : Runs that have a status.

    Examples
    --------
    >>> print(RunStatus.ROUNDED.value)
    rounded: the runs follow the weights
    """

    ROUNDED = "rounded: the runs follow the weights"
    EXCHANGED = "rounded, then exchanged: moving any one run within its group raises log det by at most 1e-8"
    IN_PART = (
        "rounded, then exchanged in part: moving one run at a time takes too long for so many runs. Round "
        "weights with a smaller gap, or use exact with time_limit"
    )
    BOUND = "nothing left to gain: no design is better, fractions of runs included"
    TRIES = "all tries done; raise tries or set time_limit to search on"
    TRIES_IN_TIME = "all tries done before time_limit; raise tries, or leave it out, to search on"
    TIME_LIMIT = "stopped at time_limit; raise it to search on"
    INTERRUPTED = "interrupted; the runs are the best found so far"


@dataclass(frozen=True, eq=False)
class Runs:
    """Whole runs of every candidate. All numbers are recomputed from the final counts.

    Attributes
    ----------
    problem : DesignProblem
        Problem whose budgets are the numbers of runs in the groups.
    counts : ndarray of int of shape (N,)
        Number of runs of every candidate.
    asked : ndarray of shape (n_groups,)
        Budgets as given. Rounding up exceeds them.
    efficiency : float
        Lower bound on the D-efficiency against all designs with the same number of runs in every group.
    log_det : float
        F, the sum over parameter blocks of log Det of the information.
    rank : int
        D, the sum of the ranks of the parameter blocks.
    status : RunStatus
        Reason why the search stopped; its value is the message.
    method : str
        Method that found the runs.
    tries : int
        Number of starts of the search.
    seconds : float
        Wall time, including ``compile_seconds``.
    compile_seconds : float
        Part of ``seconds`` for first use in the calling thread, as in :class:`optdesign.DesignResult`.
    unlisted : bool
        True if the candidates are the runs themselves, without a list of candidates with row numbers.

    See Also
    --------
    optdesign.exact : Search for runs.
    optdesign.round : Round a design to runs.
    optdesign.plot.runs : Draw runs.

    Examples
    --------
    >>> import optdesign as od
    >>> p = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=4)
    >>> runs = od.exact(p)
    >>> runs.counts.tolist(), runs.support.tolist(), runs.rank
    ([2, 0, 2], [0, 2], 2)
    """

    problem: DesignProblem = field(repr=False)
    counts: np.ndarray = field(repr=False)
    asked: np.ndarray = field(repr=False)
    efficiency: float
    log_det: float
    rank: int
    status: RunStatus
    method: str
    tries: int
    seconds: float
    compile_seconds: float = field(default=0.0, repr=False)
    unlisted: bool = field(default=False, repr=False)

    @property
    def message(self) -> str:
        """Message of the status, followed by the caveats."""
        return self.status.value + self.caveats

    @property
    def caveats(self) -> str:
        """Text after the status if there are more runs than were asked for, or no bound; empty otherwise."""
        more = self.totals - self.asked
        text = ""
        if np.any(more > 1e-9 * self.asked):
            text += (
                f"; {self.totals.sum()} runs where {self.asked.sum():g} were asked for, and the efficiency "
                f"is that among designs of {self.totals.sum()} runs"
            )
        if self.efficiency == 0:
            text += "; the information is too near to singular for a bound on the efficiency"
        return text

    @property
    def totals(self) -> np.ndarray:
        """Number of runs of every group."""
        return np.bincount(self.problem.groups, self.counts, self.problem.n_groups).astype(np.int64)

    @property
    def support(self) -> np.ndarray:
        """Indices of the candidates that are run."""
        return np.flatnonzero(self.counts)

    def counts_matrix(self) -> np.ndarray:
        """Return the counts by clients and arms, for problems made by disjoint or shared.

        Returns
        -------
        ndarray of int of shape (M, K)
            Counts, zero where an arm is inactive.
        """
        return self.problem.to_grid(self.counts.astype(np.float64)).astype(np.int64)

    def table(self, *, randomise: int | None = None) -> RunTable:
        """Return the run list with one line per run: number of the candidate, labels, settings or features.

        ``candidate`` counts from 0, so that ``problem.candidates[table["candidate"]]`` are the features of
        the runs; pictures and the command line count rows from 1. A factor with the name ``run`` or
        ``candidate`` is listed as ``run_`` or ``candidate_``.

        Parameters
        ----------
        randomise : int, optional
            Seed of a random order of the runs. Default: the order of the candidates.

        Returns
        -------
        RunTable
            Columns of the list.

        Examples
        --------
        >>> import optdesign as od
        >>> p = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=4)
        >>> print(od.round(od.solve(p)).table())
        run  candidate   x0    x1
          1          0  1.0  -1.0
          2          0  1.0  -1.0
          3          2  1.0   1.0
          4          2  1.0   1.0
        """
        p, support = self.problem, self.support
        by_group = support[np.argsort(p.groups[support], kind="stable")]
        rows = np.repeat(by_group, self.counts[by_group])
        if randomise is not None:
            rows = np.random.default_rng(randomise).permutation(rows)
        ours: Table = {listing.RUN: np.arange(1, len(rows) + 1)}
        if not self.unlisted:
            ours[listing.CANDIDATE] = rows
        told = listing.columns(p)
        if not listing.own_columns(p):
            told |= {f"x{j}": column for j, column in enumerate(p.source.whole().T)}
        return RunTable(
            listing.beside(ours, {name: np.asarray(column)[rows] for name, column in told.items()})
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore pickled runs: frozen as before, which arrays by themselves do not remember."""
        for name, value in state.items():
            object.__setattr__(self, name, read_only(value) if isinstance(value, np.ndarray) else value)

    def __str__(self) -> str:
        time = listing.duration(self.seconds, self.compile_seconds)
        text = (
            f"{self.message}\n"
            f"  efficiency  at least {rounded_down(self.efficiency)}{of_what(self.problem)}\n"
            f"  log det     {self.log_det:.9g}    rank {self.rank} of {self.problem.n_parameters}    "
            f"{self.totals.sum()} runs of {len(self.support)} candidates\n"
            f"  method      {self.method}, {self.tries} tries, {time}"
        )
        for note in listing.notes(self.problem):
            text += f"\n  note        {note}"
        return text


@dataclass(frozen=True, eq=False)
class RunTable:
    """Run list: columns of equal length, by name. ``table["name"]`` is a column, ``str(table)`` the list.

    Attributes
    ----------
    columns : mapping of str to columns
        Columns in order.

    See Also
    --------
    optdesign.Runs.table : Make the list.

    Examples
    --------
    >>> import optdesign as od
    >>> p = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=4)
    >>> od.exact(p).table()["candidate"].tolist()
    [0, 0, 2, 2]
    """

    columns: Table

    def __len__(self) -> int:
        return len(self.columns[listing.RUN])

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def write(self, path: str | Path) -> None:
        """Write the list to a CSV or Parquet file. An interrupted call leaves no partial file.

        Parameters
        ----------
        path : str or Path
            File, with the ending .csv or .parquet.
        """
        target = Path(path)
        check_suffix(target, "path", (".csv", ".parquet"))
        check_writable(target, "path", force=True)
        with atomic(target) as temporary:
            write_table(temporary, self.columns)

    def to_frame(self) -> Any:
        """Return the list as a pandas data frame. Needs the extra ``frames``.

        Returns
        -------
        pandas.DataFrame
            One row per run.
        """
        return pandas().DataFrame(self.columns)

    def __str__(self) -> str:
        listed = 20  # lines of a printed run list before the rest is only counted
        shown = {name: column[:listed].tolist() for name, column in self.columns.items()}
        text = io.StringIO()
        width = {name: max(map(len, [name, *map(str, values)])) for name, values in shown.items()}
        text.write("  ".join(name.rjust(width[name]) for name in shown))
        for line in zip(*shown.values(), strict=True):
            cells = (str(value).rjust(width[name]) for name, value in zip(shown, line, strict=True))
            text.write("\n" + "  ".join(cells))
        if len(self) > listed:
            text.write(f"\n... and {len(self) - listed} runs more")
        return text.getvalue()


def whole_runs(problem: DesignProblem) -> np.ndarray:
    """The budgets as numbers of runs, or an error."""
    budgets = problem.budgets
    bad = np.flatnonzero((budgets != np.floor(budgets)) | (budgets > MOST_RUNS))
    if len(bad):
        raise InputError(
            "budgets",
            "must be whole numbers of runs, at most 2^53",
            f"budgets[{bad[0]}] = {budgets[bad[0]]}",
            "Build the problem with the number of runs of every group: DesignProblem(..., budgets=runs).",
        )
    return budgets.astype(np.int64)


def judged(
    problem: DesignProblem,
    counts: np.ndarray,
    best: DesignResult,
    *,
    spanning: Callable[[], np.ndarray],
    status: RunStatus,
    method: str,
    tries: int,
    seconds: float,
    compile_seconds: float,
) -> Runs:
    """Return runs with their efficiency, against a solved design of the problem.

    ``spanning`` returns counts of full rank in exact arithmetic, which replace counts that lose rank.
    """
    asked = problem.budgets
    totals = np.bincount(problem.groups, counts, problem.n_groups)
    if np.any(totals != problem.budgets):
        problem, best = _with_budgets(problem, best, totals)
    certificate = certify(problem, counts)
    log_det = certificate.log_det
    if not certificate.gap < np.inf:  # the rank is not proved
        if exact_rank(problem, np.flatnonzero(counts)) < problem.rank:
            counts = spanning()
        log_det = _exact_log_det(problem, counts)
    return Runs(
        problem=problem,
        counts=read_only(counts.astype(np.int64)),
        asked=asked,
        efficiency=efficiency(problem, counts, best=best),
        log_det=log_det,
        rank=problem.rank,
        status=status,
        method=method,
        tries=tries,
        seconds=seconds,
        compile_seconds=compile_seconds,
    )


def _exact_log_det(problem: DesignProblem, counts: np.ndarray) -> float:
    """Return log Det of runs of full rank, by exact arithmetic."""
    total = Decimal(0)
    for b in np.flatnonzero(problem.ranks):
        rows = np.flatnonzero((counts > 0) & (problem.parameter_blocks == b))
        u = information(problem.source.take(rows), counts[rows].astype(np.float64))
        factor = factorise(u, int(problem.ranks[b]))
        if factor is None:
            return -np.inf
        total += factor.log_det
    return float(total)


def _with_budgets(
    problem: DesignProblem, best: DesignResult, budgets: np.ndarray
) -> tuple[DesignProblem, DesignResult]:
    """The same candidates under other budgets, solved."""
    other = object.__new__(DesignProblem)
    for one in fields(problem):  # and nothing that was computed from the budgets
        object.__setattr__(other, one.name, getattr(problem, one.name))
    object.__setattr__(other, "budgets", read_only(budgets.astype(np.float64)))
    return other, solve(other, start=best.weights)
