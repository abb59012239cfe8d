"""Identity of the code that plays: sources of this package and of ``optdesign``, versions of libraries.

Checkpoints hold results of code. The sources are read when this module is imported, together with the rest
of the package, so that a later edit of a file is not taken for the code that plays in this process.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

import numba
import numpy as np
import scipy

from optdesign import __version__

PACKAGES = ("bandits", "optdesign")
"""Packages whose sources count."""

VERSIONED = ("numpy", "scipy", "numba")
"""Libraries that count by their versions."""

SUFFIXES = (".py", ".pyc")
"""Files that count: sources, or compiled files where a package has been installed without them."""


def packages_hash(folders: dict[str, Traversable] | None = None) -> str:
    """Return the hash of the sources in folders, by default those of the packages, and of all versions."""
    found = {name: files(name) for name in PACKAGES} if folders is None else folders
    whole = hashlib.sha256()
    for part in (__version__, sys.version.split()[0], np.__version__, scipy.__version__, numba.__version__):
        whole.update(f"{part}\n".encode())
    for name in sorted(found):
        for path, content in _sources(found[name], name):
            whole.update(f"{path} {len(content)}\n".encode())
            whole.update(content)
    return whole.hexdigest()


@lru_cache
def library_hash(package: str) -> str:
    """Return the hash of the sources of a package or module, imported or not.

    It is empty for Python's own, for ``VERSIONED``, and for the packages of ``CODE``.
    """
    if package in (*sys.stdlib_module_names, *VERSIONED, *PACKAGES):
        return ""
    module = sys.modules.get(package)
    spec = find_spec(package) if package and module is None else None
    places = getattr(module, "__path__", None) or getattr(spec, "submodule_search_locations", None)
    file = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    whole = hashlib.sha256()
    for place in places or ():
        for path, content in _sources(Path(place), package) if Path(place).is_dir() else ():
            whole.update(f"{path} {len(content)}\n".encode())
            whole.update(content)
    if not places and file is not None and Path(file).is_file():
        whole.update(Path(file).read_bytes())
    return whole.hexdigest()


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every source file, in the order of their paths."""
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        inner = f"{path}/{item.name}"
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _sources(item, inner)
        elif item.name.endswith(SUFFIXES):
            yield inner, item.read_bytes()


CODE = packages_hash()
"""Hash of the code of this process."""
