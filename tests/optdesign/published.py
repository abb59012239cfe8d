"""The published examples of benchmarks/published.py."""

import importlib.util
from pathlib import Path

_path = Path(__file__).parents[2] / "benchmarks" / "published.py"
_spec = importlib.util.spec_from_file_location("published_examples", _path)
assert _spec is not None
assert _spec.loader is not None
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

EXAMPLES, Row, coffee_table = _module.EXAMPLES, _module.Row, _module.coffee_table
