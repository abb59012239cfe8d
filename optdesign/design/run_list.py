"""Whole runs: counts of an experiment, with a bound on their efficiency, and the list of runs.

Counts c_n are whole numbers, c_n runs of candidate n. With F_upper a certified upper bound on log Det over
all designs on these candidates that have as many runs in every group, fractions of runs included,

    efficiency = exp((F(counts) - F_upper) / D)

bounds the D-efficiency of the runs from below, against the best whole runs as well as against the best
weights. F_upper = F(w) + D log(G(w) / D) comes from the certificate of a design w, whether its solver has
converged or not; see :mod:`optdesign.design.efficiency`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdesign.design import display as listing
from optdesign.design.certificate import Certificate, certify
from optdesign.design.efficiency import efficiency
from optdesign.design.feasible import MOST_RUNS, exact_totals
from optdesign.design.measures import Measures, measures
from optdesign.design.result import DesignResult, rounded_down
from optdesign.errors import InputError
from optdesign.factors.formula import pandas
from optdesign.problem.dependence import scope
from optdesign.problem.inputs import one_per_candidate
from optdesign.problem.problem import DesignProblem, check_problem
from optdesign.problem.source import Frozen, read_only
from optdesign.runtime.files import atomic
from optdesign.tables.files import Table, check_suffix, check_writable, write_table

LISTED = 100
"""Lines of a run list that are shown before the others are only counted."""


class RunStatus(Enum):
    """Reason why the search for runs stopped; the value is the message.

    ``BOUND``: the certificate of the runs, taken as weights, proves that no design on these candidates has a
    larger log det, fractions of runs included. ``PROVED``: no other whole runs have a larger log det.
    ``Runs.bound`` is a number, the upper bound on log det of whole runs; a search that ends for another
    reason has a finite one as well if it was called with ``prove=True``.

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
        "rounded, then exchanged in part: moving one run at a time takes too long for so many runs or "
        "candidates. Round weights with a smaller gap, or use exact with time_limit"
    )
    BOUND = (
        "nothing left to gain: up to 1e-9, no design on these candidates is more efficient, fractions of "
        "runs included"
    )
    PROVED = "proved optimal: no other whole runs have a larger log det, up to 1e-8"
    REPEATED = "10 tries found the same log det and none a larger one; set tries or time_limit to search on"
    BUDGET = "stopped after the default work, about 1 s; set tries or time_limit to search on"
    TRIES = "all tries done; raise tries or set time_limit to search on"
    TRIES_IN_TIME = "all tries done before time_limit; raise tries, or leave it out, to search on"
    TIME_LIMIT = "stopped at time_limit; raise it to search on"
    INTERRUPTED = "interrupted; the runs are the best found so far"
    GIVEN = "given: the runs were not searched for, only certified"


@dataclass(frozen=True, eq=False)
class Runs(Frozen):
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
        Lower bound on the D-efficiency against all designs on these candidates with the same number of
        runs in every group.
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
    model : MainEffects or None
        Additive model whose combinations of levels are the candidates, if they are not listed.
    best : DesignResult or None
        Design whose certificate gives the bound on the efficiency, if there is a list of candidates.
    bound : float
        Upper bound on ``log_det`` of whole runs up to 1e-8, from ``exact(..., prove=True)`` or a bound that
        the runs attain; inf if only the efficiency bounds them.

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
    model: Any = field(default=None, repr=False)
    best: DesignResult | None = field(default=None, repr=False)
    bound: float = field(default=np.inf, repr=False)

    @classmethod
    def given(
        cls,
        problem: DesignProblem,
        counts: ArrayLike,
        *,
        best: DesignResult | None = None,
        method: str = "given",
    ) -> Runs:
        """Return runs of any origin, with the efficiency that a solved design of the problem proves.

        Parameters
        ----------
        problem : DesignProblem
            Its budgets are the numbers of runs of the groups.
        counts : (N,) array of whole numbers
            Runs of every candidate.
        best : DesignResult, optional
            A solved design of the problem, ``solve(problem)``. Without it the efficiency is the bound that
            the counts alone prove, ``runs.certificate.g_efficiency``.
        method : str, default "given"
            Origin of the runs, for display.

        Returns
        -------
        Runs
            Runs with the status ``RunStatus.GIVEN``.

        Raises
        ------
        InputError
            If the counts are not whole numbers that sum to the budgets.

        Examples
        --------
        >>> import optdesign as od
        >>> p = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=3)
        >>> runs = od.Runs.given(p, [1, 1, 1], best=od.solve(p))
        >>> round(runs.efficiency, 4), round(runs.certificate.g_efficiency, 4)
        (0.8165, 0.8)
        """
        check_problem(problem)
        c = one_per_candidate(counts, "counts", problem.n_candidates)
        if np.any(bad := ~(np.isfinite(c) & (c == np.floor(c)))):
            at = int(np.argmax(bad))
            remedy = "Round them first."
            raise InputError("counts", "must be whole numbers", f"counts[{at}] = {c[at]}", remedy)
        if np.any(c < 0):
            at = int(np.argmin(c))
            raise InputError("counts", "must not be negative", f"counts[{at}] = {c[at]:g}", "Use 0.")
        totals = exact_totals(problem, c)
        if np.any(bad := totals > MOST_RUNS):
            i = int(np.argmax(bad))
            remedy = "Larger counts are not exact in double precision."
            raise InputError(
                "counts", "must be at most 2^53 in a group", f"group {i} has {totals[i]}", remedy
            )
        if np.any(bad := totals != problem.budgets):
            i = int(np.argmax(bad))
            value = f"group {i} has {totals[i]} runs, its budget is {problem.budgets[i]:.17g}"
            remedy = "Build the problem with these numbers of runs."
            raise InputError("counts", "must sum to the budget of each group", value, remedy)
        certificate = certify(problem, c)
        return cls(
            problem=problem,
            counts=read_only(c.astype(np.int64)),
            asked=problem.budgets,
            efficiency=efficiency(problem, c, best=best),
            log_det=certificate.log_det,
            rank=problem.rank,
            status=RunStatus.GIVEN,
            method=method,
            tries=0,
            seconds=0.0,
            best=best,
        )

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
    def unlisted(self) -> bool:
        """True if the candidates are the runs themselves, without a list of candidates with row numbers."""
        return self.model is not None

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

    @cached_property
    def certificate(self) -> Certificate:
        """The certificate of the counts, taken as weights, with the efficiency of these runs.

        ``certificate.g_efficiency`` is the bound on the efficiency that the counts alone prove.
        """
        own = certify(self.problem, self.counts)
        return replace(own, efficiency=self.efficiency)

    @property
    def variances(self) -> np.ndarray:
        """Variance g_n of every candidate, in units of the variance of one response."""
        return self.certificate.variances

    @cached_property
    def measures(self) -> Measures:
        """The D-, A-, G- and I-efficiency of the runs by the usual definitions."""
        found = measures(self.problem, self.counts, self.log_det, self.variances)
        return found._replace(G=np.nan, I=np.nan) if self.unlisted else found

    def to_frame(self) -> Any:
        """Return a pandas data frame with a row for every candidate. Needs the extra ``frames``.

        Returns
        -------
        pandas.DataFrame
            Columns as those of :meth:`optdesign.DesignResult.to_frame`, with ``runs`` for ``weight``.
            ``table().to_frame()`` has a row for every run.
        """
        return listing.to_frame(self)

    def table(self, *, randomise: int | None = None, keep_groups: bool = False) -> RunTable:
        """Return the run list with one line per run: number of the candidate, labels, settings or features.

        ``candidate`` counts from 0, so that ``problem.candidates[table["candidate"]]`` are the features of
        the runs; pictures and the command line count rows from 1. A factor with the name ``run`` or
        ``candidate`` is listed as ``run_`` or ``candidate_``. If a factor is called ``group``, labels of
        groups are in ``group_``.

        Parameters
        ----------
        randomise : int, optional
            Seed of a random order of the runs. Default: groups in the order in which the candidates have
            them, and the candidates of a group in their order.
        keep_groups : bool, default False
            Keep the runs of every group together, in random order within the group.

        Returns
        -------
        RunTable
            Columns of the list.

        Examples
        --------
        >>> import optdesign as od
        >>> p = od.DesignProblem([[1.0, -1.0], [1.0, 0.0], [1.0, 1.0]], budgets=4)
        >>> print(od.round(od.solve(p)).table())
        run  candidate  x0  x1
          1          0   1  -1
          2          0   1  -1
          3          2   1   1
          4          2   1   1
        """
        p, support = self.problem, self.support
        place = listing.group_places(p)
        by_group = support[np.argsort(place[p.groups[support]], kind="stable")]
        rows = np.repeat(by_group, self.counts[by_group])
        if randomise is not None:
            rows = np.random.default_rng(randomise).permutation(rows)
            if keep_groups:
                rows = rows[np.argsort(place[p.groups[rows]], kind="stable")]
        ours: Table = {listing.RUN: np.arange(1, len(rows) + 1)}
        if not self.unlisted:
            ours[listing.CANDIDATE] = rows
        told = listing.columns(p)
        if not listing.own_columns(p):
            told |= {f"x{j}": column for j, column in enumerate(p.source.whole().T)}
        return RunTable(
            listing.joined(ours, {name: np.asarray(column)[rows] for name, column in told.items()})
        )

    def __str__(self) -> str:
        return listing.report(self.message, self._facts())

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the bound and the first lines of the run list."""
        return listing.html_report(self.message, self._facts()) + self.table()._repr_html_()

    def _facts(self) -> list[tuple[str, str]]:
        """Return the lines of a report on the runs, each a name and a value."""
        p = self.problem
        time = listing.duration(self.seconds, self.compile_seconds)
        what = f"{self.totals.sum()} runs on {len(self.support)} different candidates"
        facts = [
            ("efficiency", f"at least {rounded_down(self.efficiency)}{scope(p, listed=not self.unlisted)}"),
            ("measures", str(self.measures)),
            ("log det", f"{self.log_det:.9g}    rank {self.rank} of {p.n_parameters}    {what}"),
        ]
        if self.bound < np.inf:
            least = rounded_down(min(1.0, float(np.exp((self.log_det - self.bound) / max(self.rank, 1)))))
            facts.append(("proof", f"efficiency at least {least} among whole runs"))
        if self.status is not RunStatus.GIVEN:
            facts.append(("method", f"{self.method}, {self.tries} tries, {time}"))
        return facts + [("note", note) for note in listing.notes(p)]


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

        Settings are written as they were given, 0.3 instead of 0.30000000000000004.

        Parameters
        ----------
        path : str or Path
            File, with the ending .csv or .parquet.
        """
        target = Path(path)
        check_suffix(target, "path", (".csv", ".parquet"))
        check_writable(target, "path", force=True)
        with atomic(target) as temporary:
            write_table(temporary, {k: listing.without_roundoff(v) for k, v in self.columns.items()})

    def to_frame(self) -> Any:
        """Return the list as a pandas data frame. Needs the extra ``frames``.

        Returns
        -------
        pandas.DataFrame
            One row per run.
        """
        return pandas().DataFrame(self.columns)

    def __str__(self) -> str:
        shown = self._shown()
        text = "\n".join(listing.aligned([list(shown), *zip(*shown.values(), strict=True)]))
        return text + (f"\n... and {self._more} runs more" if self._more else "")

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the first lines of the list."""
        shown = self._shown()
        more = f"<p>{self._more} runs more; see to_frame().</p>" if self._more else ""
        return listing.html_table(list(shown), zip(*shown.values(), strict=True)) + more

    def _shown(self) -> dict[str, list[str]]:
        """Return the cells of the first lines as text, by column."""
        return {name: listing.texts(column[:LISTED]) for name, column in self.columns.items()}

    @property
    def _more(self) -> int:
        return max(0, len(self) - LISTED)
