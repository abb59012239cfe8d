"""Machine code on disk is that of the source as it is now, whichever file was edited."""

import enum
import math
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numba
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


class Mode(enum.Enum):
    ARM = 0


class Other(enum.Enum):
    ARM = 1


def module(name: str, **content: Any) -> ModuleType:
    made = ModuleType(name)
    vars(made).update(content)
    return made


def value(x):  # noqa: ARG001
    return SETTING


def attribute(x):  # noqa: ARG001
    return SETTING.inner.ARM


SETTING: Any = SimpleNamespace()

PAIR_TYPES: list[Any] = [namedtuple("Pair", fields) for fields in (("a", "b"), ("b", "a"))]

PAIRS = {
    "number in a module within a module": [module("outer", inner=module("inner", ARM=n)) for n in (0, 1)],
    "function in a module": [module("outer", inner=f) for f in (added, subtracted)],
    "class in a module": [module("outer", inner=kind) for kind in (Mode, Other)],
    "members of an Enum": [enum.Enum("Mode", {"ARM": n}, module=__name__) for n in (0, 1)],
    "member of an Enum": [Mode.ARM, Other.ARM],
    "class of named tuples": PAIR_TYPES,
    "defaults of named tuples": [namedtuple("Pair", "a", defaults=[n]) for n in (0, 1)],
    "named tuple": [kind(0, 1) for kind in PAIR_TYPES],
    "functions in tuples": [(((lambda x: x + 1),),), (((lambda x: x + 2),),)],
    "type": [np.float32, np.float64],
    "dtype": [np.dtype("f4"), np.dtype("f8")],
    "type of numba": [numba.float32, numba.float64],
    "slice": [slice(1), slice(2)],
    "function of NumPy": [np.argmin, np.argmax],
    "ufunc": [np.sin, np.cos],
    "built-in function": [math.sin, math.cos],
}
"""Two values each that a kernel may read from outside, of which numba compiles in the value of the moment."""


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_the_hash_includes_all_that_numba_compiles_in(
    pair: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def hashes(setting: Any) -> set[str]:
        monkeypatch.setitem(globals(), "SETTING", setting)
        return {code_hash([function, held(setting)]) for function in (value, attribute)}

    def held(setting: Any) -> Any:
        return lambda x: setting.inner.ARM + x

    assert hashes(pair[0]) == hashes(pair[0])
    assert not hashes(pair[0]) & hashes(pair[1])
    assert code_hash([held(pair[0])]) == code_hash([held(pair[0])]) != code_hash([held(pair[1])])


NAMED = """
from typing import NamedTuple
import numpy as np
from optdesign.runtime.jit import kernel

class State(NamedTuple):
    {fields}

@kernel
def good(state, nested):
    return state.good[0] + 2 * nested[0].good[0]
"""


@pytest.mark.slow
def test_an_edit_of_the_order_of_fields_is_seen(tmp_path: Path) -> None:
    """Machine code finds the fields of a named tuple by their positions."""
    copy = Copy(tmp_path, {"NUMBA_CACHE_DIR": "", "NUMBA_DISABLE_JIT": "0", "OPTDESIGN_TIERS": "0"})
    arrays = "good=np.ones(1), bad=np.zeros(1)"
    ask = f"from named import *; state = State({arrays}); print(good(state, (state,)))"
    file = tmp_path / "named.py"
    for fields in ("good: np.ndarray; bad: np.ndarray", "bad: np.ndarray; good: np.ndarray"):
        file.write_text(NAMED.format(fields=fields), encoding="utf-8")
        assert copy.ask(ask) == ["3.0"]
