"""Machine code on disk is that of the source as it is now, whichever file was edited."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import optdesign
from optdesign.numbers.roundoff import UNIT
from optdesign.runtime.jit import code_hash

ASK = """
from optdesign.design.roundoff_allowance import sum_error
print(sum_error(1, 0.0, 1.0, 5), sum(sum_error.stats.cache_hits.values()))
"""
"""The error bound of 13 roundings: roundoff_allowance.py calls gamma of roundoff.py, which reads UNIT there.

Without tiers nothing runs as plain Python: it is compiled, or found on disk.
"""


class Copy:
    """A copy of the package without machine code, and new processes that use it."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        self.folder = folder
        self.settings = os.environ | {"PYTHONPATH": str(folder)} | settings
        package = Path(optdesign.__file__).parent
        shutil.copytree(package, folder / "optdesign", ignore=shutil.ignore_patterns("__pycache__"))

    def ask(self, code: str) -> list[str]:
        said = subprocess.run(
            [sys.executable, "-c", code],
            cwd=self.folder,
            env=self.settings,
            capture_output=True,
            text=True,
            check=True,
        )
        return said.stdout.split()

    def edit(self, file: str, old: str, new: str) -> None:
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")


def rounding(n: int, unit: float) -> float:
    return n * unit / (1 - n * unit)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["beside the source", "in a directory of the user's"])
def test_an_edit_in_another_file_is_seen(tmp_path: Path, where: str) -> None:
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache") if where != "beside the source" else ""}
    copy = Copy(tmp_path, settings | {"NUMBA_DISABLE_JIT": "0", "OPTDESIGN_TIERS": "0"})
    assert copy.ask(ASK) == [str(rounding(13, UNIT)), "0"]
    assert copy.ask(ASK) == [str(rounding(13, UNIT)), "1"]
    copy.edit("optdesign/numbers/roundoff.py", "UNIT = 2.0**-53", "UNIT = 2.0**-50")
    assert copy.ask(ASK) == [str(rounding(13, 8 * UNIT)), "0"]
    copy.edit("optdesign/numbers/roundoff.py", "return n * UNIT /", "return 2 * n * UNIT /")
    expected = 2 * 13 * 8 * UNIT / (1 - 13 * 8 * UNIT)
    assert copy.ask(ASK) == [str(expected), "0"]


LIMIT, TABLE = 3, np.arange(4.0)


def added(x):
    return x + LIMIT


def subtracted(x):
    return x - LIMIT


def outer(values):
    return [added(value) * TABLE[0] for value in values]


def test_the_hash_is_that_of_code_and_constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a name is read in a comprehension, a function of its own in older Pythons."""
    hashes = [code_hash([outer])]
    assert code_hash([outer]) == hashes[0]
    other = [("LIMIT", 4), ("TABLE", np.arange(1.0, 5.0)), ("TABLE", np.arange(1, 5)), ("added", subtracted)]
    for name, value in other:
        monkeypatch.setitem(globals(), name, value)
        hashes.append(code_hash([outer]))
    assert len(set(hashes)) == 1 + len(other)


def test_code_that_moves_to_another_module_has_another_hash() -> None:
    """Machine code on disk names the modules of its functions; a module that is gone cannot be imported."""

    def here() -> float:
        return 1.0

    def there() -> float:
        return 1.0

    there.__code__ = here.__code__
    assert code_hash([here]) == code_hash([there])
    there.__module__ = "somewhere.else"
    assert code_hash([here]) != code_hash([there])
