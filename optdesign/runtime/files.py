"""Files that appear whole or not at all.

Public for packages that build on this one: :func:`atomic`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["atomic"]


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, which replaces ``path`` if the block succeeds.

    After an error or Ctrl-C the temporary file is removed and the file at ``path`` is unchanged. An error of
    the file system names ``path``.

    Parameters
    ----------
    path : Path
        File to replace.

    Yields
    ------
    Path
        Temporary file in the same directory.

    See Also
    --------
    optdesign.save : Save a design in this way.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic(Path(folder) / "a.txt") as partial:
    ...         _ = partial.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    target = path.resolve()
    temporary = target.with_name(f".{uuid.uuid4().hex[:12]}-{target.name}")
    try:
        temporary.touch()  # an unwritable directory raises here, whatever writes the content
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        if error.filename != str(temporary):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):  # raised in a directory that is not writable
            temporary.unlink(missing_ok=True)
