"""Evaluations as tables: text, HTML and plain values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from optdesign.design.display import aligned, html_table

if TYPE_CHECKING:
    from optdesign.evaluation.evaluation import Evaluation

TERMS_SHOWN = 30
"""Coefficients that a printed table lists."""


def columns(e: Evaluation) -> dict[str, Any]:
    """Return the columns of the table of coefficients, under the names of a data frame."""
    return {
        "term": list(e.terms),
        "coefficient": e.coefficients,
        "standard_error": e.standard_errors,
        "relative_variance": e.relative_variances,
        "vif": e.vif,
        "power": e.power,
    }


def facts(e: Evaluation) -> list[tuple[str, str]]:
    """Return the facts about a design beside its coefficients, in words."""
    parts = f"{e.lack_of_fit_df:g} for lack of fit, {e.pure_error_df:g} of replicates"
    against = ", ".join(f"{name} {least(value)}" for name, value in efficiencies(e).items())
    variance = f"average {e.average_variance:.4g}, largest {e.largest_variance:.4g}"
    out = [
        ("model", e.formula or "the features as they are"),
        ("runs", f"{e.n_runs:g}, rank {e.rank} of {len(e.terms)}"),
        ("error", f"{e.error_df:g} degrees of freedom: {parts}"),
        ("tests", f"effect {_effect(e.effect)}, sigma {e.sigma:g}, alpha {e.alpha:g}"),
        ("variance", f"of predictions in units of sigma^2: {variance}"),
        ("measures", f"{e.measures} per run, D and A in this coding"),
        ("efficiency", f"at least {against}, against the best designs on these candidates"),
    ]
    return out + [("note", note) for note in e.notes]


def efficiencies(e: Evaluation) -> dict[str, float]:
    """Return the lower bounds on the efficiencies against the best designs on the candidates."""
    return {"D": e.d_efficiency, "A": e.a_efficiency, "G": e.g_efficiency, "I": e.i_efficiency}


def least(value: float) -> str:
    """Return a lower bound with four digits, rounded down.

    >>> least(0.97599), least(1.0), least(float("nan"))
    ('0.9759', '1.0000', 'unknown')
    """
    return "unknown" if math.isnan(value) else f"{math.floor(value * 1e4) / 1e4:.4f}"


def text(e: Evaluation) -> str:
    """Return the facts, the coefficients and the terms as text."""
    lines = [f"{name:<12}{value}" for name, value in facts(e)]
    lines += ["", *aligned(_coefficients(e), left=1)]
    if len(e.terms) > TERMS_SHOWN:
        lines.append(f"... and {len(e.terms) - TERMS_SHOWN} coefficients more; see to_frame()")
    if np.any(e.effect_df > 1):
        lines += ["", *aligned(_terms(e), left=1)]
    return "\n".join(lines)


def html(e: Evaluation) -> str:
    """Return the facts, the coefficients and the terms in HTML. Every name and value is escaped."""

    def table(rows: list[list[str]]) -> str:
        return html_table(rows[0], rows[1:])

    more = len(e.terms) - TERMS_SHOWN
    caption = f"<p>{more} coefficients are not shown; see to_frame().</p>" if more > 0 else ""
    terms = table(_terms(e)) if np.any(e.effect_df > 1) else ""
    return f"{html_table(None, facts(e))}{table(_coefficients(e))}{caption}{terms}"


def plain(e: Evaluation) -> dict[str, Any]:
    """Return all figures as plain values. JSON has no infinity and no NaN: they are text."""
    table = columns(e)
    return {
        "model": e.formula,
        "runs": _plain(e.n_runs),
        "rank": e.rank,
        "error_df": e.error_df,
        "lack_of_fit_df": e.lack_of_fit_df,
        "pure_error_df": e.pure_error_df,
        "sigma": e.sigma,
        "alpha": e.alpha,
        "coefficients": [
            dict(zip(table, map(_plain, cells), strict=True)) for cells in zip(*table.values(), strict=True)
        ],
        "terms": [
            {"term": name, "df": int(df), "power": _plain(power)}
            for name, df, power in zip(e.effect_terms, e.effect_df, e.effect_power, strict=True)
        ],
        "correlation": [[_plain(v) for v in line] for line in e.correlation],
        "alias_terms": list(e.alias_terms),
        "alias": [[_plain(v) for v in line] for line in e.alias],
        "average_variance": _plain(e.average_variance),
        "largest_variance": _plain(e.largest_variance),
        "measures": {name: _plain(value) for name, value in e.measures._asdict().items()},
        "d_efficiency": e.d_efficiency,
        "a_efficiency": _plain(e.a_efficiency),
        "g_efficiency": e.g_efficiency,
        "i_efficiency": _plain(e.i_efficiency),
        "leverages": [_plain(v) for v in e.leverages],
        "notes": list(e.notes),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return float(value) if math.isfinite(value) else str(float(value))


def _effect(effect: Any) -> str:
    if isinstance(effect, dict):
        return ", ".join(f"{name} {value:g}" for name, value in effect.items()) + ", others 1"
    return f"{effect:g}" if np.ndim(effect) == 0 else "as listed for each coefficient"


def _coefficients(e: Evaluation) -> list[list[str]]:
    head = ["coefficient", "anticipated", "standard error", "relative variance", "VIF", "power"]
    rows = list(zip(*columns(e).values(), strict=True))[:TERMS_SHOWN]
    return [head, *([name, *(cell(v) for v in values)] for name, *values in rows)]


def _terms(e: Evaluation) -> list[list[str]]:
    rows = zip(e.effect_terms, e.effect_df, e.effect_power, strict=True)
    return [
        ["term", "df", "power"],
        *([name, str(df), cell(power)] for name, df, power in list(rows)[:TERMS_SHOWN]),
    ]


def cell(value: float) -> str:
    """Return a number of a table: four digits after the point, or four significant ones.

    >>> cell(0.25), cell(1234.5678), cell(float("inf")), cell(float("nan")), cell(1e-9)
    ('0.2500', '1235', 'inf', '', '1e-09')
    """
    if math.isnan(value):
        return ""
    if value == 0 or 1e-3 <= abs(value) < 1000:
        return f"{value:.4f}"
    return f"{value:.4g}"
