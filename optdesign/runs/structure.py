"""The moves that suit the structure of a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optdesign.design.result import DesignResult
from optdesign.runs.blocks import BlockMoves
from optdesign.runs.grid import Grid
from optdesign.runs.levels import ListedLevelMoves
from optdesign.runs.lists import ListMoves


def moves_of(
    best: DesignResult,
    runs: np.ndarray,
    grid: Grid | None,
    *,
    first: np.ndarray | None,
    spanning: Callable[[], np.ndarray],
) -> Any:
    """Return changes of levels on a grid, moves between blocks with additive effects, or exchanges."""
    if grid is not None and runs[0] >= best.rank:
        return ListedLevelMoves(grid, best.weights, int(runs[0]), spanning)
    return BlockMoves.fit(best, runs, spanning) or ListMoves(best, runs, first)
