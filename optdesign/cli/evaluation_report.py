"""Reports of the command ``optdesign evaluate``: one design, or two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from optdesign import plot as pictures
from optdesign.design.display import aligned
from optdesign.evaluation.evaluation import Evaluation
from optdesign.evaluation.report import cell, facts, text


def described(found: list[tuple[Path, Evaluation]]) -> dict[str, Any]:
    """Return the report of one design, or of two, in JSON."""
    if len(found) == 1:
        return found[0][1].to_dict()
    return {"designs": [{"file": str(path), **e.to_dict()} for path, e in found]}


def print_evaluations(found: list[tuple[Path, Evaluation]]) -> None:
    """Print the table of one design, or of two side by side."""
    if len(found) == 1:
        typer.echo(text(found[0][1]))
        return
    for path, e in found:
        typer.echo(str(path))
        for fact, value in facts(e):
            typer.echo(f"  {fact:<12}{value}")
        typer.echo()
    pair = [path.stem for path, _ in found]
    if pair[0] == pair[1]:
        pair = [str(path) for path, _ in found]
    rows = [["", "standard error", "", "VIF", "", "power", ""], ["coefficient", *pair * 3]]
    for name in dict.fromkeys(name for _, e in found for name in e.terms):
        values = [_value(e, column, name) for column in COLUMNS for _, e in found]
        rows.append([name, *(cell(value) for value in values)])
    typer.echo("\n".join(aligned(rows, left=1)))


COLUMNS = ("standard_errors", "vif", "power")
"""Attributes of an evaluation that are compared for every coefficient."""


def _value(e: Evaluation, column: str, name: str) -> float:
    return float(getattr(e, column)[e.terms.index(name)]) if name in e.terms else np.nan


def draw(found: list[tuple[Path, Evaluation]], plot: Path) -> None:
    """Draw the prediction variance of one design or two over the fraction of the region."""
    labels = [path.name for path, _ in found] if len(found) > 1 else None
    pictures.design_space(*(e for _, e in found), labels=labels, path=plot)
