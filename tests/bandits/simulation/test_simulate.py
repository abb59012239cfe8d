"""Simulation: regret against playing pull by pull, streams, saving, joining, resuming."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits.simulation import runner
from bandits.simulation.checkpoints import merge
from bandits.trials.regret import RegretClock
from bandits.trials.trial import PHASE

ENV = bandits.environments.authors(5, 4, 2, seed=0)


@pytest.mark.kernels
@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_regret_within_phases_is_that_of_playing_pull_by_pull(m, k, phases, seed):
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(size=(m, k))
    plans = [
        (rng.integers(0, 4, (m, k)), rng.integers(k, size=m), int(rng.integers(0, 6))) for _ in range(phases)
    ]
    plans = [(f, best, int(f.sum(axis=1).max()) + extra) for f, best, extra in plans]
    total = sum(length for *_, length in plans)
    horizon = int(rng.integers(1, total + 1)) if total else 0
    if horizon == 0:
        return
    played = np.zeros((m, horizon))
    for i in range(m):
        arms = []
        for f, best, length in plans:
            own = np.repeat(np.arange(k), f[i])
            arms.extend([*own, *[best[i]] * (length - len(own))])
        played[i] = gaps[i][np.array(arms[:horizon], dtype=int)]
    times = np.unique(np.append(rng.integers(1, horizon + 1, 5), horizon))
    clock = RegretClock(gaps, times)
    for f, best, length in plans:
        clock.advance(f, best, length)
    assert clock.time == horizon
    # Sums of at most 100 terms below 1, in two orders.
    np.testing.assert_allclose(clock.regret, played.mean(axis=0).cumsum()[times - 1], rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        bandits.FedPE(),
        bandits.EnhancedFedPE(),
        bandits.CollaborativeFedPE(),
        bandits.LocalUCB(),
        bandits.LinUCB(),
        bandits.LinTS("shared"),
        bandits.DisLinUCB(),
        bandits.FedUCB(period=100),
    ],
    ids=lambda policy: policy.name,
)
def test_results_do_not_depend_on_n_jobs_or_on_other_trials(policy):
    one = bandits.simulate(policy, ENV, 1000, trials=3, seed=7)
    two = bandits.simulate(policy, ENV, 1000, trials=3, seed=7, n_jobs=2)
    fewer = bandits.simulate(policy, ENV, 1000, trials=2, seed=7)
    for name in ("regret", "uploaded", "downloaded", "phases", "trials"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.regret[:2], fewer.regret)
    other = bandits.simulate(policy, ENV, 1000, trials=3, seed=8)
    assert not np.array_equal(one.regret, other.regret)


def test_no_trial_of_a_seed_is_a_trial_of_another():
    """Seeds are not offsets: trial 1 of seed 0 and trial 0 of seed 1 have nothing in common."""
    regrets = [bandits.simulate(bandits.FedPE(), ENV, 200, trials=3, seed=seed).regret for seed in range(3)]
    ends = np.concatenate(regrets)[:, -1]
    assert len(np.unique(ends)) == 9


def test_regret_does_not_depend_on_the_times_asked_for():
    coarse = bandits.simulate(bandits.FedPE(), ENV, 1000, trials=1, times=[250, 500])
    fine = bandits.simulate(bandits.FedPE(), ENV, 1000, trials=1, times=np.arange(1, 1001))
    assert coarse.times.tolist() == [250, 500, 1000]
    np.testing.assert_allclose(coarse.regret, fine.regret[:, [249, 499, 999]], rtol=1e-12)
    steps = np.diff(np.append(0.0, fine.regret[0]))
    assert np.all((steps >= -1e-12) & (steps <= ENV.gaps.max() + 1e-12))
    assert len(bandits.simulate(bandits.FedPE(), ENV, 1000, trials=1).times) == 128
    assert bandits.simulate(bandits.FedPE(), ENV, 20, trials=1).times.tolist() == list(range(1, 21))


def test_phase_records_are_tidy():
    run = bandits.simulate(bandits.FedPE(), ENV, 1000, trials=2)
    phases = run.phases
    assert sorted(set(phases["trial"])) == [0, 1]
    for n in (0, 1):
        rows = phases[phases["trial"] == n]
        assert rows["phase"].tolist() == list(range(1, len(rows) + 1))
        assert rows["start"][0] == ENV.arms
        np.testing.assert_array_equal(rows["start"][1:], (rows["start"] + rows["length"])[:-1])
        assert rows["start"][-1] + rows["length"][-1] == 1000
        assert np.all(np.diff(rows["active"]) <= 0)
        assert np.all(rows["sparsity"] >= 1)
        assert np.all(rows["gap"] <= 0.1)
        assert np.all(rows["iterations"] >= 0)
        assert rows["uploaded"].sum() == run.uploaded[n]


def test_runs_can_be_saved_loaded_and_joined(tmp_path):
    run = bandits.simulate(bandits.FedPE(), ENV, 600, trials=4)
    path = tmp_path / "deep" / "run.npz"
    run.save(path)
    again = bandits.load(path)
    for name in ("policy", "horizon", "identity"):
        assert getattr(run, name) == getattr(again, name)
    for name in ("times", "trials", "regret", "uploaded", "downloaded", "phases"):
        np.testing.assert_array_equal(getattr(run, name), getattr(again, name))
    joined = bandits.concatenate([run.select([3, 1]), run.select([0]), run.select([2])])
    np.testing.assert_array_equal(joined.regret, run.regret)
    np.testing.assert_array_equal(joined.phases, run.phases)
    assert run.select([0]).std.max() == 0
    # Of two numbers, the unbiased estimate of the deviation is their distance over the root of two.
    a, b = run.regret[:2]
    np.testing.assert_allclose(run.select([0, 1]).std, np.abs(a - b) / np.sqrt(2), rtol=1e-12)
    np.testing.assert_allclose(run.mean, run.regret.mean(axis=0))
    with pytest.raises(ValueError, match="different trials"):
        bandits.concatenate([run, run])
    with pytest.raises(ValueError, match="agree"):
        bandits.concatenate([run, bandits.simulate(bandits.FedPE(), ENV, 600, trials=1, seed=1)])
    with pytest.raises(ValueError, match="at least one"):
        bandits.concatenate([])


@pytest.mark.parametrize("order", [[[0, 1, 2]], [[2, 0], [1]], [[1], [0], [2]], [[2], [], [1, 0]]])
def test_trials_are_in_their_order_however_they_finish(order):
    """Every column belongs to its trial: regret, scalars up, scalars down, phases."""

    def record(n):
        phases = np.zeros(2, PHASE)
        phases["phase"], phases["uploaded"] = [1, 2], n
        return bandits.Record(np.array([n, 10.0 * n]), 100 + n, 200 - n, phases)

    run = bandits.Run.empty("made up", 8, np.array([4, 8]), "made up")
    for numbers in order:
        run = run.extended((n, record(n)) for n in numbers)
    assert run.trials.tolist() == [0, 1, 2]
    assert run.regret.tolist() == [[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]]
    assert run.uploaded.tolist() == [100, 101, 102]
    assert run.downloaded.tolist() == [200, 199, 198]
    assert run.phases["trial"].tolist() == run.phases["uploaded"].tolist() == [0, 0, 1, 1, 2, 2]
    assert run.phases["phase"].tolist() == [1, 2] * 3


class Fragile(bandits.FedPE):
    """Fails after some trials, as an interrupt would. Its counter does not determine a trial."""

    identity = "Fragile"
    left = 0

    def play(self, *arguments):
        if Fragile.left == 0:
            raise KeyboardInterrupt
        Fragile.left -= 1
        return super().play(*arguments)


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "run.npz"
    Fragile.left = 2
    with pytest.raises(KeyboardInterrupt):
        bandits.simulate(Fragile(), ENV, 600, trials=5, checkpoint=path)
    assert bandits.load(path).trials.tolist() == [0, 1]
    Fragile.left = 3
    run = bandits.simulate(Fragile(), ENV, 600, trials=5, checkpoint=path)
    assert Fragile.left == 0, "finished trials are not played again"
    np.testing.assert_array_equal(run.regret, bandits.simulate(bandits.FedPE(), ENV, 600, trials=5).regret)
    fewer = bandits.simulate(Fragile(), ENV, 600, trials=3, checkpoint=path)
    assert fewer.trials.tolist() == [0, 1, 2]
    assert bandits.load(path).trials.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="checkpoint must belong"):
        bandits.simulate(bandits.FedPE(), ENV, 700, trials=5, checkpoint=path)


class Watchful(bandits.FedPE):
    """Looks at the checkpoint before every trial."""

    identity = "Watchful"
    seen: ClassVar = []
    path = None

    def play(self, trial):
        Watchful.seen.append(bandits.load(Watchful.path).trials.tolist() if Watchful.path.exists() else [])
        super().play(trial)


@pytest.mark.parametrize(("pause", "seen"), [(0.0, [[], [0], [0, 1]]), (np.inf, [[], [], []])])
def test_trials_are_saved_while_the_run_goes_on(pause, seen, tmp_path, monkeypatch):
    """After every trial, if the disk had its rest: what is on it survives whatever happens next."""
    monkeypatch.setattr(runner, "SAVE_EVERY", pause)
    monkeypatch.setattr(Watchful, "path", tmp_path / "run.npz")
    Watchful.seen.clear()
    bandits.simulate(Watchful(), ENV, 100, trials=3, checkpoint=Watchful.path)
    assert Watchful.seen == seen
    assert bandits.load(Watchful.path).trials.tolist() == [0, 1, 2]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_write_that_is_cut_short_leaves_the_old_file(error, tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    run = bandits.simulate(bandits.FedPE(), ENV, 100, trials=2)
    run.select([0]).save(path)
    before = path.read_bytes()

    def half(file, **_):
        file.write(before[: len(before) // 2])
        raise error

    monkeypatch.setattr(np, "savez_compressed", half)
    with pytest.raises(error):
        run.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


class Shared(bandits.FedPE):
    """Lets something else happen during its first trial."""

    identity = "Shared"
    meanwhile: ClassVar = []

    def play(self, trial):
        while Shared.meanwhile:
            Shared.meanwhile.pop()()
        super().play(trial)


def test_a_run_keeps_trials_that_another_saved_meanwhile(tmp_path):
    path = tmp_path / "run.npz"
    Shared.meanwhile.append(lambda: bandits.simulate(Shared(), ENV, 600, trials=4, checkpoint=path))
    run = bandits.simulate(Shared(), ENV, 600, trials=2, checkpoint=path)
    assert run.trials.tolist() == [0, 1]
    kept = bandits.load(path)
    assert kept.trials.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(kept.regret, bandits.simulate(bandits.FedPE(), ENV, 600, trials=4).regret)


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "run.npz"
    run = bandits.simulate(bandits.FedPE(), ENV, 100, trials=16)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: merge(run.select([n]), path), range(16)))
    np.testing.assert_array_equal(bandits.load(path).regret, run.regret)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".checkpoints.lock", "run.npz"]


def foreign(path):
    np.savez(path, a=np.ones(3))


def other_kind(path):
    path.write_bytes(b"not a run at all")


def cut(path):
    bandits.simulate(bandits.FedPE(), ENV, 100, trials=1).save(path)
    path.write_bytes(path.read_bytes()[:-200])


def damaged(path):
    bandits.simulate(bandits.FedPE(), ENV, 100, trials=1).save(path)
    data = bytearray(path.read_bytes())
    data[60:160] = b"x" * 100
    path.write_bytes(data)


def single_array(path):
    with path.open("wb") as file:
        np.save(file, np.ones(3))


@pytest.mark.parametrize("spoil", [lambda p: p.touch(), foreign, other_kind, cut, damaged, single_array])
def test_a_checkpoint_that_cannot_be_read_is_named_with_the_remedy(spoil, tmp_path):
    path = tmp_path / "run.npz"
    spoil(path)
    before = path.read_bytes()
    for use in (
        lambda: bandits.load(path),
        lambda: bandits.simulate(bandits.FedPE(), ENV, 100, trials=1, checkpoint=path),
    ):
        with pytest.raises(ValueError, match=r"run\.npz must be a run saved .* Delete it, or name another"):
            use()
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError):
        bandits.load(tmp_path / "none.npz")


@pytest.mark.slow
def test_ctrl_c_ends_the_run_and_keeps_its_trials(tmp_path):
    """Also when it arrives within the design solver, which would go on with what it has."""
    path = tmp_path / "run.npz"
    code = (
        "import bandits; bandits.simulate(bandits.FedPE(), bandits.environments.authors(20, 5, 3), 2000, "
        f"trials=10**6, checkpoint={str(path)!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert path.exists(), "a checkpoint is written long before a million trials are over"
    saved = bandits.load(path).trials
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in said
    kept = bandits.load(path)
    assert kept.trials.tolist() == list(range(len(kept.trials)))
    assert len(kept.trials) >= len(saved) > 0
    env = bandits.environments.authors(20, 5, 3)
    np.testing.assert_array_equal(kept.regret[0], bandits.simulate(bandits.FedPE(), env, 2000, 1).regret[0])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_progress_bar_shows_trials_and_time_left(monkeypatch):
    monkeypatch.setattr("optdesign.runtime.progress.DELAY", 0.1)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stderr = Terminal()
    monkeypatch.setattr("sys.stderr", stderr)

    class Slow(bandits.FedPE):
        def play(self, *arguments):
            time.sleep(0.3)
            return super().play(*arguments)

    bandits.simulate(Slow(), ENV, 50, trials=3, progress=True)
    assert "trials 1/3" in stderr.getvalue()
    assert "left" in stderr.getvalue()


def test_importing_the_package_is_light():
    heavy = "matplotlib", "cvxpy", "typer", "hypothesis"
    code = f"import bandits, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_arguments_are_checked():
    with pytest.raises(ValueError, match="horizon"):
        bandits.simulate(bandits.FedPE(), ENV, 0)
    for wrong in (True, 10.0, "10", -1):
        with pytest.raises(ValueError, match="horizon must be a whole number of at least 1; got"):
            bandits.simulate(bandits.FedPE(), ENV, wrong)
        with pytest.raises(ValueError, match="trials must be a whole number of at least 1; got"):
            bandits.simulate(bandits.FedPE(), ENV, 10, wrong)
        with pytest.raises(ValueError, match="seed must be a whole number of at least 0; got"):
            bandits.simulate(bandits.FedPE(), ENV, 10, 1, wrong)
    assert bandits.simulate(bandits.FedPE(), ENV, np.int64(10), np.int32(1)).horizon == 10
    with pytest.raises(ValueError, match=r"times must be whole numbers of pulls; got 2\.5"):
        bandits.simulate(bandits.FedPE(), ENV, 10, times=[2.5])
    with pytest.raises(ValueError, match="times"):
        bandits.simulate(bandits.FedPE(), ENV, 10, times=[0, 5])
    with pytest.raises(ValueError, match="times"):
        bandits.simulate(bandits.FedPE(), ENV, 10, times=[50])
    with pytest.raises(ValueError, match="horizon"):
        bandits.FedPE().setting(2, 2, 2, 0, 1.0, 1.0)
