"""Results of tasks as bytes: integers take no more bytes than their values need."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np


class _Packer(pickle.Pickler):
    """Writes arrays of int64 in the smallest type that holds their values."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how an array is restored."""
        if type(obj) is np.ndarray and obj.dtype == np.int64 and obj.size:
            small = np.result_type(np.min_scalar_type(obj.min()), np.min_scalar_type(obj.max()))
            if small.itemsize < 8 and small.kind in "iu":
                return _widened, (obj.astype(small),)
        return NotImplemented


def _widened(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64)


def pack(value: Any) -> bytes:
    """Return a value as bytes.

    >>> unpack(pack(np.arange(3))).tolist(), len(pack(np.arange(3000))) < 3000 * 8
    ([0, 1, 2], True)
    """
    file = io.BytesIO()
    _Packer(file, protocol=5).dump(value)
    return file.getvalue()


def unpack(packed: bytes) -> Any:
    """Return the value that was packed."""
    return pickle.loads(packed)
