"""Other limits of the reference solver for the duration of a test."""

from dataclasses import replace
from typing import Any

import pytest

from optdesign.verification import reference


def limit(monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
    """Change some of the limits."""
    monkeypatch.setattr(reference, "LIMITS", replace(reference.LIMITS, **limits))
