"""Work that is done in pieces, done at once."""

from collections.abc import Generator
from typing import Any


def done(pieces: Generator[Any, None, Any]) -> Any:
    """What a generator returns when it has come to its end."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            return end.value
