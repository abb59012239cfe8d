"""Why a design is optimal: no variance exceeds its bound.

A design is optimal exactly if, in every group i, no candidate has a larger variance than the mean of those
that carry the weight. That mean, times the budget, is the group's share of the rank,

    s_i = sum_{n in i} w_n g_n,      sum_i s_i = D,

and f_i g_n <= s_i for all n in i says the same. With one group it is the general equivalence theorem: budget
times variance is at most the rank. What the largest of each group exceed their bounds by sums to the gap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optdesign.plotting.naming import MOST_TICKS, Names
from optdesign.plotting.style import BLUE, GREY, ORANGE, thinned
from optdesign.plotting.text import readable
from optdesign.plotting.weights import label_candidates, limits, positions
from optdesign.result import DesignResult, rounded_up


class Sensitivities(NamedTuple):
    """Budget times variance of every candidate, and the bound of every group."""

    scaled: np.ndarray
    bounds: np.ndarray

    def relative(self, groups: np.ndarray) -> np.ndarray:
        """Every candidate's fraction of the bound of its group; of a bound of zero, zero."""
        bound = self.bounds[groups]
        return np.divide(self.scaled, bound, out=np.zeros_like(self.scaled), where=bound > 0)


def sensitivities(result: DesignResult) -> Sensitivities:
    """What is compared with what."""
    p = result.problem
    informed = np.where(result.weights > 0, result.variances, 0.0)
    bounds = np.bincount(p.groups, weights=result.weights * informed, minlength=p.n_groups)
    return Sensitivities(p.budgets[p.groups] * result.variances, bounds)


def headline(result: DesignResult) -> str:
    """Rank and gap, for a title."""
    return f"rank {result.rank} of {result.problem.n_parameters}, gap {rounded_up(result.gap)}"


def draw_rows(axes: Any, result: DesignResult, names: Names) -> None:
    """Budget times variance of every candidate against its bound, in the order of groups and rows."""
    p = result.problem
    scaled, bounds = sensitivities(result)
    x = positions(result)
    left, right = limits(x)
    finite = np.isfinite(scaled)
    edges = np.array([left, right]) if p.n_groups == 1 else np.arange(p.n_groups + 1) - 0.5
    if p.n_groups == 1:
        label = "bound: the rank"
    else:
        label = f"bound of each {readable(names.words[0])}: they sum to the rank"
    # Below the points, unless there are so many that they would hide it.
    above = 2 if p.n_groups <= MOST_TICKS else 5
    axes.stairs(bounds, edges, baseline=None, color=ORANGE, linewidth=1.3, label=label, zorder=above)
    idle = thinned(np.flatnonzero(finite & (result.weights == 0)))
    for rows, color, size, zorder, label in (
        (result.support, BLUE, 16, 4, "candidate with weight"),
        (idle, GREY, 7, 3, "candidate without weight"),
    ):
        if not len(rows):
            continue
        axes.scatter(
            x[rows], scaled[rows], s=size, color=color, label=label, linewidths=0, zorder=zorder,
            rasterized=len(rows) > 2000,
        )  # fmt: skip
    top = max(bounds.max(), scaled[finite].max(initial=0.0))
    axes.set(
        ylabel="budget × variance", title=f"Variance and its bound\n{headline(result)}", xlim=(left, right),
        ylim=(0, 1.32 * top),
    )  # fmt: skip
    label_candidates(axes, names)
    axes.legend(loc="upper left")
