"""A small CSV file of candidates, and the error on reading a file."""

from pathlib import Path
from typing import Any

import pytest

from optdesign.cli import candidate_file as files

CSV = """site,arm,dose,heat,note
north,a,1,0.5,first
south,b,2,0.25,"with, comma"
north,b,3,-1e3,
"""


def error(path: Path, **options: Any) -> str:
    """Return the message of the error on reading a file."""
    with pytest.raises((ValueError, OSError)) as caught:
        files.read(path, **options)
    return str(caught.value)
