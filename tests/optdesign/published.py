"""The published examples of benchmarks/published.py."""

from benchmark_scripts import SCRIPTS, load

_module = load(next(script for script in SCRIPTS if script.stem == "published"))
EXAMPLES, Row, coffee_table = _module.EXAMPLES, _module.Row, _module.coffee_table
