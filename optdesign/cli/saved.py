"""Designs that were saved as tables: their weights with a fresh certificate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from optdesign.cli.candidate_file import CandidateFile
from optdesign.design.feasible import FEASIBILITY_RTOL
from optdesign.design.result import DesignResult
from optdesign.errors import InputError
from optdesign.tables.columns import listed


def design(source: CandidateFile, path: Path) -> tuple[CandidateFile, DesignResult]:
    """Return the candidates of a saved design and the design; unless given, budgets are sums of weights."""
    weights = source.weights
    if weights is None:
        value = f"{path} has {listed(source.columns)}"
        remedy = "Save one with optdesign solve --out."
        raise InputError("a saved design", "must have a column 'weight'", value, remedy)
    names, numbers = source.groups
    sums = np.bincount(numbers, weights=weights, minlength=len(names))
    budgets = sums if source.budgets is None else source.budgets
    wrong = ~((budgets > 0) & (np.abs(sums - budgets) <= FEASIBILITY_RTOL * budgets))
    for i in np.flatnonzero(wrong)[:1]:
        given = source.budgets is not None
        rule = "must sum to the budget" if given else "must sum to something positive, its budget"
        value = f"those of group {str(names[i])!r} in {path} sum to {sums[i]:g}"
        value += f", and its budget is {budgets[i]:g}" if given else ""
        remedy = "Solve again with this budget." if given else "Drop its rows."
        raise InputError("the weights of a group", rule, value, remedy)
    note = (
        f"the certificate is that of the groups, parameter blocks and model named above, without "
        f"{', '.join(source.ignored)}; if the design was solved with other --model, --group, "
        "--parameter-block or --features, give the same here."
    )
    source = replace(source, budgets=budgets, notes=source.notes + ((note,) if source.ignored else ()))
    return source, DesignResult.given(source.problem(), weights, method="saved")
