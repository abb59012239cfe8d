"""Checkpoints belong to one experiment: its content decides, in this process and in any other."""

from __future__ import annotations

import functools
import subprocess
import sys
import threading

import numpy as np
import pytest

import bandits
from bandits.identity import content_hash
from bandits.run import fingerprint

ENV = bandits.environments.authors(4, 3, 2, seed=0)
TIMES = np.array([50, 100])


def identity(policy=None, env=ENV):
    return fingerprint(policy or bandits.FedPE(), env, 100, TIMES, 0)


def rounding(weights, f, extra=0):
    return np.ceil(weights * f).astype(int) + extra * (weights > 0)


class Recorded:
    """A noise of ones own that holds a large array."""

    sigma = 1.0

    def __init__(self, draws):
        self.draws = draws

    def sums(self, rng, means, counts):
        return counts * means + np.sqrt(counts) * self.draws[rng.integers(len(self.draws), size=means.shape)]


class Shifted(bandits.LinearEnvironment):
    """Pays one more than it says."""

    def pull(self, rng, counts):
        return super().pull(rng, counts) + counts


def test_functions_differ_by_their_code_and_closure():
    def above(bonus):
        return lambda w, f: np.ceil(w * f + bonus).astype(int)

    policies = [
        bandits.FedPE(),
        bandits.FedPE(rounding=lambda w, f: np.ceil(w * f).astype(int)),
        bandits.FedPE(rounding=lambda w, f: np.floor(w * f).astype(int) + 1),
        bandits.FedPE(rounding=above(0)),
        bandits.FedPE(rounding=above(1)),
        bandits.FedPE(rounding=rounding),
        bandits.FedPE(rounding=functools.partial(rounding, extra=0)),
        bandits.FedPE(rounding=functools.partial(rounding, extra=1)),
    ]
    assert len({identity(policy) for policy in policies}) == len(policies)
    assert identity(bandits.FedPE(rounding=above(1))) == identity(policies[4])
    assert identity(bandits.FedPE(rounding=functools.partial(rounding, extra=1))) == identity(policies[-1])


def test_arrays_count_in_full():
    draws = np.random.default_rng(0).standard_normal(5000)
    other = draws.copy()
    other[2500] += 1e-9
    envs = [bandits.LinearEnvironment(ENV.features, ENV.parameters, Recorded(d)) for d in (draws, other)]
    assert repr(draws) == repr(other)
    assert identity(env=envs[0]) != identity(env=envs[1])
    again = bandits.LinearEnvironment(ENV.features, ENV.parameters, Recorded(draws.copy()))
    assert identity(env=envs[0]) == identity(env=again)


def test_everything_an_environment_tells_counts_and_what_it_remembers_does_not():
    plain = bandits.LinearEnvironment(ENV.features, ENV.parameters)
    roomy = bandits.LinearEnvironment(ENV.features, ENV.parameters, s=2.0)
    shifted = Shifted(ENV.features, ENV.parameters)
    assert len({identity(env=env) for env in (plain, roomy, shifted)}) == 3
    before = identity(env=plain)
    assert plain.gaps.shape == plain.optimal.shape
    assert identity(env=plain) == before


def test_a_checkpoint_of_another_rounding_is_refused_and_of_the_same_resumed(tmp_path):
    path = tmp_path / "run.npz"
    policy = bandits.FedPE(rounding=functools.partial(rounding, extra=0))
    run = bandits.simulate(policy, ENV, 100, trials=1, checkpoint=path)
    same = bandits.FedPE(rounding=functools.partial(rounding, extra=0))
    more = bandits.simulate(same, ENV, 100, trials=2, checkpoint=path)
    np.testing.assert_array_equal(more.regret[0], run.regret[0])
    other = bandits.FedPE(rounding=functools.partial(rounding, extra=1))
    with pytest.raises(ValueError, match="checkpoint must belong"):
        bandits.simulate(other, ENV, 100, trials=2, checkpoint=path)


def test_the_hash_is_the_same_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests/bandits'); import test_identity as t, functools, bandits;"
        "print(t.identity(bandits.FedPE(rounding=functools.partial(t.rounding, extra=2)), t.shifted()))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = identity(bandits.FedPE(rounding=functools.partial(rounding, extra=2)), shifted())
    assert said.strip() == here


def shifted():
    return Shifted(ENV.features, ENV.parameters, Recorded(np.arange(3.0)))


class Guarded:
    """Holds what has no content."""

    sigma = 1.0

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, _):
        return self

    def sums(self, _, means, counts):
        return counts * means


def test_what_has_no_content_must_have_a_name_to_be_resumed(tmp_path):
    env = bandits.LinearEnvironment(ENV.features, ENV.parameters, Guarded())
    with pytest.raises(ValueError, match=r"_thread.lock has none to look at.*attribute identity"):
        bandits.simulate(bandits.FedPE(), env, 100, trials=1, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="agree"):
        bandits.concatenate([bandits.simulate(bandits.FedPE(), env, 100, trials=1) for _ in range(2)])

    def named(text):
        noise = Guarded()
        noise.identity = text
        return identity(env=bandits.LinearEnvironment(ENV.features, ENV.parameters, noise))

    assert named("a") == named("a") != named("b")


def test_containers_and_cycles_are_followed():
    first: list = [1, {"a": np.arange(3), 2: {1, 2, 3}}]
    first.append(first)
    second: list = [1, {2: {3, 2, 1}, "a": np.arange(3)}]
    second.append(second)
    assert content_hash(first) == content_hash(second)
    array, listed = np.arange(3), [1, 2]
    assert content_hash(array, array) == content_hash(array, array.copy())
    assert content_hash([listed, listed]) == content_hash([listed, [1, 2]])
    assert content_hash([1, 2], [3]) != content_hash([1], [2, 3])
    distinct = [
        1, True, 1.0, "1", b"1", None, (1,), [1], {1}, {1: 1}, np.int64(1), np.array([1]), np.array([[1]]),
        np.array([1.0]), np.array([1], dtype=object), max, np.add, np, np.random.default_rng(1),
        np.random.default_rng(2), bandits.FedPE, bandits.FedPE().play, bandits.LocalUCB(),
        bandits.LocalUCB("ucb1"), slice(1), range(1),
    ]  # fmt: skip
    assert len({content_hash(thing) for thing in distinct}) == len(distinct)


def test_defaults_of_keywords_count():
    def make(default):
        def rule(x, *, scale=default):
            return scale * x

        return rule

    assert content_hash(make(1)) == content_hash(make(1))
    assert content_hash(make(1)) != content_hash(make(2))
