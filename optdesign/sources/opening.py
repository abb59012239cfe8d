"""Decide whether candidates are larger than memory, and open the engine that suits them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optdesign.errors import InputError
from optdesign.runtime import memory
from optdesign.sources.arrays import ArrayEngine, npy_file
from optdesign.sources.clusters import DaskEngine
from optdesign.sources.engine import Engine
from optdesign.sources.modelled import LargeCandidates
from optdesign.sources.parquet import ParquetEngine, ParquetFiles, parquet_files
from optdesign.tables.files import pyarrow

MEMORY_SHARE = 0.1
"""Problems that would take more than this share of the memory stay where their candidates are."""


def is_larger_than_memory(candidates: Any) -> bool:
    """Return True if candidates should stay where they are: on a disk, or on a cluster."""
    if isinstance(candidates, np.ndarray):
        return candidates.ndim == 2 and _exceeds(*candidates.shape)
    if isinstance(candidates, LargeCandidates):
        return True
    if not isinstance(candidates, str | Path):
        return hasattr(candidates, "__dask_graph__")
    path = Path(candidates)
    if path.suffix.lower() == ".parquet" and path.is_file():
        arrow = pyarrow()
        try:
            metadata = arrow.parquet.read_metadata(path)
        except (arrow.ArrowException, OSError):
            return False  # whoever reads it says so
        return _exceeds(metadata.num_rows, metadata.num_columns)
    return path.is_dir() or (path.suffix.lower() == ".npy" and path.is_file())


def _exceeds(n_rows: int, dim: int) -> bool:
    """Return True if a problem of this size would take more than its share of the memory."""
    # Candidates and their coordinates in double precision, labels, weights, variances and work space.
    return n_rows * (16 * dim + 64) > MEMORY_SHARE * memory.available()


def open_engine(candidates: Any, groups: Any, parameter_blocks: Any) -> Engine:
    """Return the engine of candidates."""
    if isinstance(candidates, np.ndarray):
        return ArrayEngine([candidates], groups, parameter_blocks)
    if isinstance(candidates, LargeCandidates):
        return candidates.open(groups, parameter_blocks)
    if hasattr(candidates, "__dask_graph__"):
        return DaskEngine(candidates, groups, parameter_blocks)
    path = Path(candidates)
    if path.suffix.lower() == ".npy":
        return ArrayEngine([npy_file(path)], groups, parameter_blocks, [path])
    files = parquet_files(path)
    arrays = sorted(path.glob("*.npy"))
    if files and arrays:
        value = f"it has {files[0].name} and {arrays[0].name}"
        raise InputError(str(path), "must hold files of one kind", value, "Move one kind elsewhere.")
    if files:
        return ParquetEngine(ParquetFiles(path), groups, parameter_blocks)
    if arrays:
        return ArrayEngine([npy_file(file) for file in arrays], groups, parameter_blocks, arrays)
    raise InputError("candidates", "must be a directory of Parquet or NPY files", f"{path} has none")
