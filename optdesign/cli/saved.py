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


def design(source: CandidateFile, path: Path) -> DesignResult:
    """The weights of a file with a fresh certificate; unless given, budgets are the sums of the weights."""
    weights = source.weights
    if weights is None:
        raise InputError(
            "a saved design",
            "must have a column 'weight'",
            f"{path} has {listed(source.columns)}",
            "Save one with optdesign solve --out.",
        )
    names, numbers = source.groups
    sums = np.bincount(numbers, weights=weights, minlength=len(names))
    if source.budgets is None:
        empty = np.flatnonzero(~(sums > 0))
        if len(empty):
            raise InputError(
                "the weights of a group",
                "must sum to something positive, its budget",
                f"those of group {str(names[empty[0]])!r} in {path} sum to {sums[empty[0]]:g}",
                "Drop its rows.",
            )
        source = replace(source, budgets=sums)
    else:
        wrong = np.flatnonzero(~(np.abs(sums - source.budgets) <= FEASIBILITY_RTOL * source.budgets))
        if len(wrong):
            i = wrong[0]
            raise InputError(
                "the weights of a group",
                "must sum to the budget",
                f"those of group {str(names[i])!r} in {path} sum to {sums[i]:g}, and its budget is "
                f"{source.budgets[i]:g}",
                "Solve again with this budget.",
            )
    return DesignResult.given(source.problem(), weights, method="saved")
