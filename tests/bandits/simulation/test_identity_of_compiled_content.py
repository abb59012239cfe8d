"""The identity of an experiment includes content that is not in attributes: of compiled bases and methods."""

from __future__ import annotations

import collections
import functools
import random

import numba
import numpy as np
import pytest
import scipy.spatial
import scipy.special

import bandits
from bandits.simulation.identity import content_hash

ENV = bandits.environments.authors(4, 3, 2, seed=0)


class Queue(collections.deque):
    """Has its items in a compiled class."""


class Labelled(float):
    """A number with a label."""


class Measured(np.ndarray):
    """An array with a label."""


class Numbers(np.random.Generator):
    """A generator with a method."""


class Others(np.random.Generator):
    """Another one."""


def spawned(rng, n):
    rng.spawn(n)
    return rng


def labelled(thing, label):
    thing.label = label
    return thing


@pytest.mark.parametrize(
    "make",
    [
        lambda n: {1: n}.get,
        lambda n: (n * np.eye(2)).dot,
        lambda n: str(n).join,
        lambda n: random.Random(n),
        lambda n: Queue([n]),
        lambda n: labelled(Labelled(1.0), n),
        lambda n: Labelled(n),
        lambda n: labelled(np.ones(2).view(Measured), n),
        lambda n: collections.defaultdict(functools.partial(int, n)),
        lambda n: labelled(functools.partial(int), n),
        lambda n: scipy.spatial.KDTree(n * np.eye(2)),
        lambda n: np.ma.masked_array([1], [True], fill_value=n),
        lambda n: (Numbers, Others)[n - 1](np.random.PCG64(0)),
        lambda n: labelled(Numbers(np.random.PCG64(0)), n),
        lambda n: np.random.Generator(np.random.PCG64(n)),
        lambda n: spawned(np.random.default_rng(0), n),
        lambda n: numba.vectorize(["f8(f8)"])(eval(f"lambda x: x + {n}")),
    ],
)
def test_content_beyond_attributes_counts(make):
    assert content_hash(make(1)) == content_hash(make(1)) != content_hash(make(2))


def test_a_checkpoint_is_not_used_for_another_table_behind_a_method(tmp_path):
    def policy(pulls):
        return bandits.FedPE(rounding=functools.partial(by_table, {8: pulls}.get))

    path = tmp_path / "run.npz"
    bandits.simulate(policy(1), ENV, 100, trials=1, checkpoint=path)
    with pytest.raises(ValueError, match="another policy"):
        bandits.simulate(policy(3), ENV, 100, trials=1, checkpoint=path)


def by_table(least, weights, f):
    return np.maximum(np.ceil(weights * f), least(f, 1) * (weights > 0)).astype(int)


def test_ufuncs_without_a_name_are_refused():
    assert content_hash(np.add) != content_hash(np.subtract) != content_hash(scipy.special.expit)
    with pytest.raises(ValueError, match=r"numpy\.ufunc has none to look at"):
        content_hash(np.frompyfunc(lambda x: x + 1, 1, 1))
