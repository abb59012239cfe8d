"""Imports of optional libraries, with an error that names the extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def optional(module: str, purpose: str, extra: str) -> Any:
    """Return an optional module. Raise ImportError with the command that installs it if it is missing.

    ``purpose`` begins the message, as in "Parquet files need".
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{purpose} {module.partition('.')[0]}, which is not installed. Install the extra {extra} of "
            f"optdesign-bandits; from a clone: python -m pip install '.[{extra}]'"
        ) from None
