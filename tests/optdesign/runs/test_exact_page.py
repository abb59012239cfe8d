"""The page on whole runs does what it says."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "exact.md"


@pytest.mark.slow
def test_the_page_runs_from_top_to_bottom(capsys):
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), flags=re.M | re.S)
    assert len(code) >= 5
    exec(compile("\n".join(code), "docs/exact.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "efficiency  at least" in printed
    assert "3221225472 combinations" in printed
