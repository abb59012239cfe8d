"""Results of tasks as compressed bytes: most of the bytes of small integers are zero."""

from __future__ import annotations

import pickle
import zlib
from typing import Any


def pack(value: Any) -> bytes:
    """Return a value as bytes.

    >>> unpack(pack(list(range(3)))), len(pack(list(range(3000)))) < 3000 * 8
    ([0, 1, 2], True)
    """
    return zlib.compress(pickle.dumps(value, protocol=5), 1)


def unpack(packed: bytes) -> Any:
    """Return the value that was packed."""
    return pickle.loads(zlib.decompress(packed))
