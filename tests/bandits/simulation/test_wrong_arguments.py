"""Wrong arguments of simulate and damaged files: the error names the argument or the file."""

import numpy as np
import pytest

import bandits


@pytest.fixture
def env():
    return bandits.environments.authors(3, 3, 2)


@pytest.mark.parametrize(
    "times", ["abc", [None], [1j], [[1], [2, 3]], {1, 2}, 2**80, [float("nan")]], ids=repr
)
def test_times_that_are_no_whole_numbers_are_named(env, times):
    with pytest.raises(ValueError, match="times must"):
        bandits.simulate(bandits.FedPE(), env, 20, trials=1, times=times)


@pytest.mark.parametrize("n_jobs", [0, "2", 1.5, True, None], ids=repr)
def test_a_wrong_number_of_jobs_is_named(env, n_jobs):
    with pytest.raises(ValueError, match="n_jobs must"):
        bandits.simulate(bandits.FedPE(), env, 20, trials=2, n_jobs=n_jobs)


@pytest.fixture
def saved(env, tmp_path):
    path = tmp_path / "run.npz"
    bandits.simulate(bandits.FedPE(), env, 200, trials=3).save(path)
    return path


def test_damaged_files_are_named(saved):
    """Bits of the archive are flipped at random; most lead to errors of other libraries."""
    raw, rng = saved.read_bytes(), np.random.default_rng(0)
    before, messages = bandits.load(saved), []
    for _ in range(500):
        damaged = bytearray(raw)
        damaged[int(rng.integers(len(raw)))] = int(rng.integers(256))
        saved.write_bytes(damaged)
        try:
            after = bandits.load(saved)
        except ValueError as error:
            messages.append(str(error))
        else:
            np.testing.assert_array_equal(after.regret, before.regret)
    assert len(messages) > 100
    assert all("must be a run saved by this package" in message for message in messages)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("regret", lambda a: a[:, :-1]),
        ("regret", lambda a: a[:2]),
        ("regret", lambda a: a + np.nan),
        ("regret", lambda a: a.astype(str)),
        ("trials", lambda a: a[::-1]),
        ("trials", lambda a: a * 0),
        ("times", lambda a: a[:-1]),
        ("uploaded", lambda a: a[:2]),
        ("downloaded", lambda a: a.astype(float)),
        ("phases", lambda a: np.ones(len(a))),
    ],
)
def test_files_whose_arrays_do_not_fit_together_are_refused(saved, name, change):
    with np.load(saved) as data:
        arrays = dict(data)
    arrays[name] = change(arrays[name])
    np.savez(saved, **arrays)
    with pytest.raises(ValueError, match="must be a run saved by this package"):
        bandits.load(saved)
