"""The memory that this process may use."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with the limit of a container, in bytes."""


@cache
def available() -> int:
    """Return the bytes of memory of the machine, or of the container if that has a limit.

    The number does not depend on the current load, so that results do not either.
    """
    sizes = []
    with suppress(OSError, ValueError, AttributeError):
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in LIMITS:
        with suppress(OSError, ValueError):
            sizes.append(int(Path(path).read_text()))
    return min(sizes, default=8 << 30)
