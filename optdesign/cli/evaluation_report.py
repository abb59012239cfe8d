"""Reports of the command ``optdesign evaluate``: one design, or two side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import typer

from optdesign import plot as pictures
from optdesign.evaluation.evaluation import Evaluation
from optdesign.evaluation.report import aligned, cell, facts, text


def described(path: Path, e: Evaluation, other_path: Path | None, other: Evaluation | None) -> dict[str, Any]:
    """Return the figures of one design, or of two under the names of their files."""
    if other is None:
        return e.to_dict()
    return {"designs": [{"file": str(path), **e.to_dict()}, {"file": str(other_path), **other.to_dict()}]}


def print_evaluation(path: Path, e: Evaluation, other_path: Path | None, other: Evaluation | None) -> None:
    """Print the table of one design, or of two side by side."""
    if other is None:
        typer.echo(text(e))
        return
    for file, one in ((path, e), (other_path, other)):
        typer.echo(str(file))
        for fact, value in facts(one):
            typer.echo(f"  {fact:<12}{value}")
        typer.echo()
    pair = [path.stem, Path(str(other_path)).stem]
    if pair[0] == pair[1]:
        pair = [str(path), str(other_path)]
    rows = [["", "standard error", "", "VIF", "", "power", ""], ["coefficient", *pair * 3]]
    names = [*e.terms, *(name for name in other.terms if name not in e.terms)]
    for name in names:
        values = [_value(one, column, name) for column in COLUMNS for one in (e, other)]
        rows.append([name, *(cell(value) for value in values)])
    typer.echo("\n".join(aligned(rows)))


COLUMNS = ("standard_errors", "vif", "power")
"""Attributes of an evaluation that are compared for every coefficient."""


def _value(e: Evaluation, column: str, name: str) -> float:
    return float(getattr(e, column)[e.terms.index(name)]) if name in e.terms else np.nan


def draw(path: Path, e: Evaluation, other_path: Path | None, other: Evaluation | None, plot: Path) -> None:
    """Draw the prediction variance of one design or two over the fraction of the region."""
    if other is None:
        pictures.design_space(e, path=plot)
    else:
        pictures.design_space(e, other, labels=[path.name, Path(str(other_path)).name], path=plot)
