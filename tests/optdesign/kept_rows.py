"""The rows that meet a condition, as a list that may be empty."""

from typing import Any

import numpy as np

from optdesign.factors.conditions import kept
from optdesign.tables.columns import Settings

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def rows(columns: Any, where: str) -> list[int]:
    """Return the rows that meet a condition, also if there are none."""
    table = columns if isinstance(columns, Settings) else Settings(columns)
    try:
        return kept(table, where).tolist()
    except ValueError as error:
        if "leaves none" in str(error):
            return []
        raise
