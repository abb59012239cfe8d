"""The command that compiles every kernel in advance: later processes compile nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import optdesign
from optdesign.cli import warm_up
from optdesign.runtime import tiers

COMPILED = """
from numba.core import event

class Names(event.Listener):
    names = []

    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass

event.register("numba:compile", Names())
import digests
for _ in digests.computations():
    pass
print("compiled:", *Names.names)
"""
"""Solve problems of every structure by every method, round, search, sparsify; then print what compiled."""


def run(arguments: list[str], cache: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(Path(optdesign.__file__).parents[1]), str(tests)])
    own = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
    return subprocess.run(
        [sys.executable, *arguments], env=os.environ | own | settings, capture_output=True, text=True
    )


@pytest.mark.slow
def test_after_a_warm_up_nothing_is_compiled(tmp_path: Path) -> None:
    """Without tiers, since plain Python would hide a kernel that was not compiled."""
    first = run(["-m", "optdesign", "warm-up"], tmp_path)
    assert first.returncode == 0, first.stderr
    told = re.match(r"(\d+) kernels in (\d+) versions are ready; (\d+) versions were compiled", first.stdout)
    assert told
    kernels, versions, compiled = map(int, told.groups())
    assert 100 < kernels <= versions == compiled
    later = run(["-c", COMPILED], tmp_path, OPTDESIGN_TIERS="0")
    assert later.stdout == "compiled:\n", later.stderr
    again = run(["-m", "optdesign", "warm-up"], tmp_path)
    assert f"{kernels} kernels in {versions} versions are ready; 0 versions were compiled" in again.stdout


@pytest.mark.slow
def test_a_warm_up_without_the_compiler_is_refused(tmp_path: Path) -> None:
    done = run(["-m", "optdesign", "warm-up"], tmp_path, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    assert "NUMBA_DISABLE_JIT must not be set" in done.stderr


def test_tiers_are_as_before_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if a problem raises an error."""
    monkeypatch.setattr(tiers, "enabled", True)
    seen = []
    monkeypatch.setattr(warm_up, "_uses", lambda: (seen.append(tiers.enabled) for _ in range(1)))
    warm_up.warm_up()
    assert (seen, tiers.enabled) == ([False], True)
    monkeypatch.setattr(warm_up, "_uses", lambda: (1 / 0 for _ in range(1)))
    with pytest.raises(ZeroDivisionError):
        warm_up.warm_up()
    assert tiers.enabled
