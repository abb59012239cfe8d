"""Candidates from factors and a model: what may be run, and what each run tells about the parameters.

The settings of a run are the values of its factors. A model turns settings s into features x = f(s), and the
candidate of :mod:`optdesign.problem` is that vector; the settings stay with it, in the factors' own units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optdesign.settings import Settings


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """Candidates with their names. Frozen; arrays are read-only."""

    features: np.ndarray
    """(N, d), one candidate a row."""
    names: tuple[str, ...]
    """Of the d columns."""
    settings: Settings
    """The factors' columns, N entries each, in their own units."""

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"Candidates({len(self)} x {len(self.names)}: {', '.join(self.names)})"
