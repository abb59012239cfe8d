"""Tables of a design: candidates, weights and variances.

A candidate is named by its settings in the factors' own units; without settings by its features, if these
have names; and by the labels of its group and parameter block. Its row is counted from 1, as in pictures
and on the command line; its index into the arrays of the problem, from 0, is called ``candidate``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from optdesign.factors.coding import mixtures
from optdesign.factors.formula import pandas
from optdesign.problem.dependence import in_words
from optdesign.problem.inputs import CANDIDATE as CANDIDATE
from optdesign.tables.values import objects

if TYPE_CHECKING:
    from optdesign.design.result import DesignResult
    from optdesign.design.run_list import Runs
    from optdesign.problem.problem import DesignProblem

HIGH_POWER = re.compile(r"(\*\*|\^)\s*[3-9]|poly\([^()]*,\s*(degree\s*=\s*)?[3-9]")
"""A power of three or more in a formula."""

GROUP, BLOCK, WEIGHT, VARIANCE = "group", "parameter_block", "weight", "variance"
"""Columns that a table of a design has besides those of the candidates."""

RUN, RUNS = "run", "runs"
"""Columns that number the runs of a list, and that count the runs of a candidate."""


def own_columns(problem: DesignProblem) -> dict[str, np.ndarray]:
    """Return the columns that identify candidates: settings, features by name, or none."""
    if problem.settings is not None:
        return dict(problem.settings)
    if problem.names is not None:
        return dict(zip(problem.names, problem.source.whole().T, strict=True))
    return {}


def labels(problem: DesignProblem, which: str) -> np.ndarray:
    """Return the label of the group, or of the parameter block, of every candidate."""
    names, numbers = problem.parameter_block_names, problem.parameter_blocks
    if which == GROUP:
        names, numbers = problem.group_names, problem.groups
    return numbers if names is None else objects(names)[numbers]


def columns(problem: DesignProblem) -> dict[str, np.ndarray]:
    """Return the columns to show of every candidate: its own, and its labels if they add information.

    Labels are in the column ``group_`` if a factor is called ``group``, and likewise for parameter blocks.
    """
    shown = own_columns(problem)
    for which, count in ((GROUP, problem.n_groups), (BLOCK, problem.n_parameter_blocks)):
        label = labels(problem, which)
        if count > 1 and not any(np.array_equal(label, column) for column in shown.values()):
            shown = joined(shown, {which: label})
    return shown


def group_places(problem: DesignProblem) -> np.ndarray:
    """Return the place of every group in the order in which the candidates have them, from 0.

    Groups without labels are in the order of their numbers.
    """
    if problem.group_names is None:
        return np.arange(problem.n_groups)
    first = np.unique(problem.groups, return_index=True)[1]
    return np.argsort(np.argsort(first))


def to_frame(design: DesignResult | Runs) -> Any:
    """Return a pandas frame with a row for every candidate; see :meth:`optdesign.DesignResult.to_frame`."""
    problem = design.problem
    counts = getattr(design, "counts", None)
    ours = {
        GROUP: labels(problem, GROUP),
        BLOCK: labels(problem, BLOCK),
        **({WEIGHT: design.weights} if counts is None else {RUNS: counts}),  # type: ignore[union-attr]
        VARIANCE: design.variances,
    }
    own = own_columns(problem)
    table: dict[str, np.ndarray] = {}
    for name, column in own.items():
        shown = f"{name}_setting" if name in ours else name
        while shown != name and shown in own:
            shown += "_"
        table[shown] = column
    frame = pandas().DataFrame({name: np.array(column) for name, column in (table | ours).items()})
    return frame.rename_axis(CANDIDATE)


def joined(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Join columns. A column of the second mapping whose name is taken is renamed ``name_``.

    >>> list(joined({"run": np.arange(2)}, {"run": np.ones(2), "run_": np.ones(2)}))
    ['run', 'run_', 'run__']
    """
    out = dict(ours)
    for name, column in theirs.items():
        while name in out:
            name += "_"
        out[name] = column
    return out


def text(value: Any) -> str:
    """Return a setting as a table shows it: numbers of up to 10 digits as given, others to 6 digits.

    Whole numbers are shown as they were given.

    >>> text(20), text(0.1 + 0.2), text("a"), text(np.float64(1e-9)), text(1234567.5), text(1 / 3)
    ('20', '0.3', 'a', '1e-09', '1234567.5', '0.333333')
    >>> text(1700000000123.0), text(1e20), text(np.float32(100000.3))
    ('1700000000123', '1e+20', '100000.3')
    """
    if isinstance(value, np.floating) and not isinstance(value, float):  # in lower precision
        value = float(str(value))
    if not isinstance(value, float):
        return str(value)
    short = f"{value:.10g}"
    if without_roundoff(np.array([value]))[0] == float(short):
        return short
    return f"{value:.0f}" if value.is_integer() and abs(value) <= 2**53 else f"{value:.6g}"


def texts(column: np.ndarray) -> list[str]:
    """Return settings as a table shows them, with as many digits as keep different ones apart.

    >>> texts(np.array([100000.0, 100000 + 1 / 3, 0.3, 0.1 + 0.2]))
    ['100000', '100000.3333', '0.3', '0.3']
    """
    shown = [text(value) for value in column]
    if column.dtype == np.float64:
        different = len(np.unique(without_roundoff(column)))
        for digits in (10, 12, 15, 17):
            if len(set(shown)) >= different:
                break
            shown = [f"{value:.{digits}g}" for value in column.tolist()]
    return shown


def without_roundoff(column: np.ndarray) -> np.ndarray:
    """Return a column in which floats that differ by round-off from a number of 12 digits are that number.

    Whole numbers stay as they are, because large ones may be levels that differ in the last digits.

    >>> without_roundoff(np.array([0.1 + 0.2, 1 / 3])).tolist()
    [0.3, 0.3333333333333333]
    """
    if column.dtype != np.float64:
        return column
    short = np.array([float(f"{value:.12g}") for value in column.tolist()])
    with np.errstate(invalid="ignore"):
        is_near = np.abs(short - column) <= 4 * np.spacing(np.abs(column))
        return np.where(is_near & (column != np.floor(column)), short, column)


def largest(values: np.ndarray, most: int) -> np.ndarray:
    """Return the candidates with the largest values other than 0, at most so many, in their order."""
    support = np.flatnonzero(values)
    return np.sort(support[np.argsort(-values[support], kind="stable")[:most]])


def aligned(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Return the lines of a table: the first ``left`` columns to the left, the others to the right."""
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = [str.ljust] * left + [str.rjust] * (len(width) - left)
    return [
        "  ".join(f(cell, w) for f, cell, w in zip(align, row, width, strict=True)).rstrip() for row in rows
    ]


def html_table(heading: list[str] | None, rows: Iterable[Sequence[str]]) -> str:
    """Return rows of cells as a table in HTML. Every cell is escaped."""

    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    head = "" if heading is None else f"<thead>{row(heading, 'th')}</thead>"
    return f"<table>{head}<tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>"


def report(status: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a status and facts as text, one line each."""
    return f"{status}\n" + "\n".join(f"  {name:<10}  {value}" for name, value in facts)


def html_report(status: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return a status and facts as a table in HTML."""
    plain = [(name, value.replace("    ", ", ")) for name, value in facts]
    return html_table(None, [("status", status), *plain])


def html(result: DesignResult, facts: str) -> str:
    """Return the facts, which are in HTML, and the largest weights in HTML."""
    listed = 20  # candidates of a design that are listed in a notebook
    shown, rows = columns(result.problem), largest(result.weights, listed)
    settings = [texts(column[rows]) for column in shown.values()]
    numbers = [[f"{value:.6f}" for value in values[rows]] for values in (result.weights, result.variances)]
    body = list(zip(map(str, rows + 1), *settings, *numbers, strict=True))
    more = len(result.support) - len(rows)
    caption = f"<p>{more} smaller weights are not shown; see to_frame().</p>" if more else ""
    return facts + html_table(["row", *shown, WEIGHT, VARIANCE], body) + caption


def duration(seconds: float, compile_seconds: float) -> str:
    """Return the seconds of a result in words, and those of first use if they are not negligible.

    >>> duration(0.25, 0.02), duration(8.5, 8.25)
    ('0.25 s', '8.5 s (8.25 s for first use)')
    """
    # First use is shown from 0.1 s and 1 % of all seconds on.
    if compile_seconds < max(0.1, 0.01 * seconds):
        return f"{seconds:.3g} s"
    return f"{seconds:.3g} s ({compile_seconds:.3g} s for first use)"


def notes(problem: DesignProblem) -> list[str]:
    """Return the notes on a problem for readers of its designs."""
    return [note for note in (in_words(problem), problem.rank_note, grid_note(problem)) if note]


def grid_note(problem: DesignProblem) -> str:
    """Return a sentence that offers finer levels if the given ones may cost efficiency, or an empty string.

    These are levels of a numeric factor in a power of three or more, and mixtures with bounds.
    """
    model, settings = problem.model, problem.settings
    if model is None or settings is None:
        return ""
    columns = {
        name: settings[name].astype(np.float64)
        for name in model.factors
        if name not in model.categories and settings[name].dtype.kind in "iuf"
    }
    bounded = False
    for names in mixtures(columns):
        total = np.sum([columns[name] for name in names], axis=0).max() * (1 - 1e-9)
        limits = [columns[name].min() > 0 or columns[name].max() < total for name in names]
        bounded |= len(names) > 2 and any(limits)
    if not columns or not (bounded or HIGH_POWER.search(model.formula)):
        return ""
    why = "the mixtures have bounds" if bounded else "the model has a power of 3 or more"
    return f"{why}, so that other levels may be better: optdesign.refine(problem) measures by how much."
