"""Checkpoints belong to the code that wrote them: other sources or versions make them stale."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bandits
from bandits.simulation import identity, runner, sources
from bandits.simulation.fingerprints import differences, fingerprint

ENV = bandits.environments.authors(4, 3, 2, seed=0)


def test_every_source_and_version_counts(tmp_path, monkeypatch):
    for name in sources.PACKAGES:
        folder = tmp_path / name
        (folder / "deep").mkdir(parents=True)
        (folder / "one.py").write_text("X = 1\n")
        (folder / "deep" / "two.py").write_text("Y = 1\n")

    def now():
        return sources.packages_hash({name: tmp_path / name for name in sources.PACKAGES})

    seen = {now()}
    (tmp_path / "bandits" / "__pycache__").mkdir()
    (tmp_path / "bandits" / "__pycache__" / "one.pyc").write_bytes(b"compiled")
    (tmp_path / "bandits" / "notes.txt").write_text("no code")
    assert {now()} == seen
    for change in (
        lambda: (tmp_path / "bandits" / "deep" / "two.py").write_text("Y = 2\n"),
        lambda: (tmp_path / "optdesign" / "one.py").write_text("X = 1.0\n"),
        lambda: (tmp_path / "optdesign" / "three.py").touch(),
        lambda: (tmp_path / "optdesign" / "one.py").rename(tmp_path / "optdesign" / "four.py"),
        lambda: monkeypatch.setattr(np, "__version__", "0"),
        lambda: monkeypatch.setattr(sources, "__version__", "0"),
    ):
        change()
        before = len(seen)
        seen.add(now())
        assert len(seen) == before + 1


def test_the_hash_of_the_packages_is_that_of_their_files():
    assert sources.packages_hash() == sources.CODE
    assert f"code={sources.CODE} " in fingerprint(bandits.FedPE(), ENV, 100, np.array([100]), 0)


def stale_run(path, text):
    run = bandits.simulate(bandits.FedPE(), ENV, 100, trials=2)
    wrong = replace(run, regret=run.regret + 1.0, identity=text(run.identity))
    wrong.save(path)
    return run, wrong


@pytest.mark.parametrize(
    "text",
    [
        lambda _: "0" * 64,  # as versions before 0.2 wrote it
        lambda now: now.replace(sources.CODE, "0" * 64),
        lambda now: now.replace(sources.CODE, "0" * 64).replace("policy=", "policy=0"),
    ],
    ids=["old format", "other code", "other code and hash of the policy"],
)
def test_a_checkpoint_of_other_code_is_put_aside_and_played_again(text, tmp_path):
    path = tmp_path / "run.npz"
    run, wrong = stale_run(path, text)
    with pytest.warns(UserWarning, match=r"run.npz is stale: .* 2 trial\(s\) .* now run.stale.npz"):
        again = bandits.simulate(bandits.FedPE(), ENV, 100, trials=2, checkpoint=path)
    np.testing.assert_array_equal(again.regret, run.regret)
    np.testing.assert_array_equal(bandits.load(tmp_path / "run.stale.npz").regret, wrong.regret)
    once_more = bandits.simulate(bandits.FedPE(), ENV, 100, trials=2, checkpoint=path)
    np.testing.assert_array_equal(once_more.regret, run.regret)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".checkpoints.lock", "run.npz", "run.stale.npz"]


def test_another_plan_is_refused_whatever_the_code(tmp_path):
    stale_run(tmp_path / "run.npz", lambda now: now.replace(sources.CODE, "0" * 64))
    with pytest.raises(ValueError, match="another code and another horizon, times or seed"):
        bandits.simulate(bandits.FedPE(), ENV, 100, trials=2, seed=1, checkpoint=tmp_path / "run.npz")


def test_runs_say_in_what_they_differ():
    run = bandits.simulate(bandits.FedPE(), ENV, 100, trials=1)
    assert differences(run.identity, run.identity) == []
    other = bandits.simulate(bandits.FedPE(delta=0.2), ENV, 100, trials=1, seed=1)
    with pytest.raises(ValueError, match="FedPE differs from FedPE in policy, plan"):
        bandits.concatenate([run, other])
    assert differences("unknown 1", run.identity) == ["content that cannot be compared"]


MUTANTS = {
    "bandits/theory/confidence.py": ("return min(", "return 0.2 * min("),
    "bandits/environments/noise.py": (
        "mean + scale * rng.standard_normal()",
        "mean + scale * rng.standard_normal() + 1.0",
    ),
    "optdesign/design/feasible.py": ("FEASIBILITY_RTOL = 1e-6", "FEASIBILITY_RTOL = 2e-6"),
}


@pytest.mark.slow
def test_a_change_of_the_package_makes_checkpoints_stale(tmp_path):
    """A copy of both packages, run in processes of their own, before and after every change."""
    root = Path(bandits.__file__).parents[1]
    for name in sources.PACKAGES:
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import bandits, warnings; warnings.simplefilter('always');"
        "env = bandits.environments.authors(4, 3, 2);"
        "print(bandits.simulate(bandits.FedPE(), env, 500, trials=1, checkpoint='run.npz').regret[0, -1])"
    )

    def play():
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return float(done.stdout), "is stale" in done.stderr

    first, stale = play()
    assert not stale
    assert play() == (first, False)
    for name, (old, new) in MUTANTS.items():
        file = tmp_path / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))
        changed, stale = play()
        assert stale, name
        if "confidence" in name:
            assert changed != first


LIBRARY = """
import bandits

def first(trial):
    return bandits.LocalUCB(sigma={sigma}).start(trial)

class Learner(bandits.Stepwise):
    start = staticmethod(first)
"""


@pytest.mark.parametrize("is_package", [False, True])
def test_installed_libraries_count_by_their_sources(tmp_path, monkeypatch, is_package):
    """A library may be installed again with other code and the same version, or have no version."""
    file = tmp_path / "made_up_library" / "__init__.py" if is_package else tmp_path / "made_up_library.py"
    file.parent.mkdir(exist_ok=True)
    monkeypatch.setattr(identity, "LIBRARIES", (f"{tmp_path}{os.sep}",))
    monkeypatch.syspath_prepend(tmp_path)

    def late():
        import made_up_library

        return made_up_library

    def hashes(sigma):
        file.write_text(LIBRARY.format(sigma=sigma))
        monkeypatch.delitem(sys.modules, "made_up_library", raising=False)
        importlib.invalidate_caches()
        sources.library_hash.cache_clear()
        unseen = identity.content_hash(late)
        library = importlib.import_module("made_up_library")
        found = [identity.content_hash(thing) for thing in (library.Learner(), library.first, library)]
        return [unseen, *found]

    one, again, other = hashes("1.0"), hashes("1.0"), hashes("10.0")
    assert one == again
    assert all(a != b for a, b in zip(one, other, strict=True))


def test_modules_that_a_function_imports_count_by_their_whole_package(tmp_path, monkeypatch):
    package = tmp_path / "late_package"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)

    def late():
        from late_package import rules

        return rules.ARM

    def found(arm):
        # Python compiles a file again if its size differs; two writes may have the same time.
        (package / "rules.py").write_text(f"ARM = {arm}\n" + "#" * arm)
        importlib.invalidate_caches()
        return identity.content_hash(late)

    before = found(0)
    assert late() == 0
    assert found(0) == before != found(1)
    for name in ("late_package", "late_package.rules"):
        monkeypatch.delitem(sys.modules, name)
    assert late() == 1
    assert found(1) != before


def test_a_trial_that_another_process_has_saved_meanwhile_is_kept_once(tmp_path, monkeypatch):
    """The other process saves all trials while this one plays the first; this one saves after each trial."""
    monkeypatch.setattr(runner, "SAVE_EVERY", 0.0)
    path, play = tmp_path / "run.npz", runner._trial
    whole = bandits.simulate(bandits.LocalUCB(), ENV, 50, trials=3)

    def with_another(policy, env, horizon, times, seed, n):
        if n == 0:
            whole.save(path)
        return play(policy, env, horizon, times, seed, n)

    monkeypatch.setattr(runner, "_trial", with_another)
    run = bandits.simulate(bandits.LocalUCB(), ENV, 50, trials=3, checkpoint=path)
    for found in (run, bandits.load(path)):
        np.testing.assert_array_equal(found.regret, whole.regret)
