"""Outputs of a command, checked before the work: may they be written, and would they overwrite an input?"""

from __future__ import annotations

from pathlib import Path

from optdesign.cli import candidate_file as files
from optdesign.errors import InputError
from optdesign.plot import style
from optdesign.tables import files as tables


def check(out: Path | None, plot: Path | None, inputs: list[Path], *, force: bool) -> None:
    """Refuse, before the work is done, outputs that could not be written or would overwrite an input."""
    for option, path in (("--out", out), ("--plot", plot)):
        if path is not None and any(_same_file(path, file) for file in inputs):
            raise InputError(option, "must not be a file that is read", f"got {path}", "Choose another path.")
    if out is not None:
        if tables.check_suffix(out, "--out", files.SUFFIXES) == ".parquet":
            tables.pyarrow()
        tables.check_writable(out, "--out", force=force)
    if plot is not None:
        tables.check_suffix(plot, "--plot", style.SUFFIXES)
        style.require_matplotlib()
        tables.check_writable(plot, "--plot", force=force)


def _same_file(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve() or (one.exists() and other.exists() and one.samefile(other))
