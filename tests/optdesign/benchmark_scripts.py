"""The scripts of benchmarks/, as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

SCRIPTS = sorted((Path(__file__).parents[2] / "benchmarks").glob("*.py"))


def load(script: Path) -> ModuleType:
    """Return a script as a module. Its folder must be on the path if it imports others."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
