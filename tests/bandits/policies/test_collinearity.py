"""Collinear classes, and the corollary that other classes do not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from play import Rewards, converse

import bandits
from bandits.policies.collinearity import collinear_classes
from bandits.testing import environments


def by_definition(features):
    """Classes from the paper's definition, trying every subset of clients; exponential in their number."""
    m, k, _ = features.shape
    label = np.arange(m)
    for a in range(k):
        x = features[:, a]
        for subset in range(2**m):
            s = [i for i in range(m) if subset >> i & 1]
            rank = np.linalg.matrix_rank(x[s]) if s else 0
            outside = [i for i in range(m) if np.linalg.matrix_rank(x[[*s, i]]) > rank]
            for i in outside:
                for j in outside:
                    if np.linalg.matrix_rank(x[[*s, i, j]]) == rank + 1 and label[i] != label[j]:
                        label[label == label[j]] = label[i]
    return np.unique(label, return_inverse=True)[1]


def same_partition(a, b):
    return np.array_equal(a[:, None] == a, b[:, None] == b)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(environments(max_clients=5, max_arms=2, max_dim=4, entries=st.integers(-1, 1).map(float)))
def test_classes_are_those_of_the_definition(env):
    assert same_partition(collinear_classes(env.features), by_definition(env.features))


@pytest.mark.parametrize("orthogonal", [True, False])
def test_clusters_are_classes(orthogonal):
    env = bandits.environments.clusters(12, 3, 6, 3, seed=0, orthogonal=orthogonal)
    assert collinear_classes(env.features).tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_shared_parameters_join_arms():
    x = np.zeros((2, 2, 2))
    x[0, :, 0] = 1.0
    x[1, :, 1] = 1.0
    assert collinear_classes(x, shared=True).tolist() == [0, 1]
    x[0, 1] = [0.0, 1.0]
    assert collinear_classes(x, shared=True).tolist() == [0, 0]
    assert collinear_classes(x).tolist() == [0, 0]


@pytest.mark.parametrize("shared", [False, True])
def test_units_of_coordinates_do_not_matter(shared):
    """Nor do the lengths of features, also together. Powers of two change no linear dependence."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, k, d = rng.integers(2, 6), rng.integers(1, 3), rng.integers(2, 5)
        x = rng.integers(-1, 2, (m, k, d)).astype(float)
        x[~x.any(axis=2), 0] = 1.0
        units, lengths = 2.0 ** rng.integers(-20, 21, d), 2.0 ** rng.integers(-45, 46, (m, k, 1))
        classes = collinear_classes(x, shared=shared)
        for scaled in (x * units, x * units * lengths):
            np.testing.assert_array_equal(collinear_classes(scaled, shared=shared), classes)
    joining = np.array([[[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 1.0]]])
    assert collinear_classes(joining * [1.0, 2.0**-34], shared=shared).tolist() == [0, 0, 0]
    rows = [[-1, 0, 1], [1, -1, 0], [0, -1, -1], [-1, 1, 0], [0, -1, -1], [-1, -1, 1], [0, -1, 0], [0, 0, 1]]
    apart = np.array(rows, dtype=float).reshape(4, 2, 3)
    classes = collinear_classes(apart, shared=shared)
    units = 2.0 ** np.array([-11, 15, -5])
    np.testing.assert_array_equal(collinear_classes(apart * units, shared=shared), classes)


def test_there_are_at_most_d_classes():
    env = bandits.environments.random(20, 3, 4, seed=0)
    assert collinear_classes(env.features).max() == 0
    lonely = bandits.environments.random(3, 2, 5, seed=0)
    assert collinear_classes(lonely.features).tolist() == [0, 1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [bandits.FedPE, bandits.EnhancedFedPE, bandits.CollaborativeFedPE])
@pytest.mark.parametrize("protocol", ["vectors", "scalars"])
@pytest.mark.parametrize("orthogonal", [True, False])
def test_corollary_other_classes_do_not_matter_to_the_last_bit(kind, protocol, orthogonal):
    """Corollary "fed-pe". Change the rewards of all clients but the first class: it must not notice."""
    env = bandits.environments.clusters(9, 3, 6, 3, seed=1, orthogonal=orthogonal)
    env = bandits.LinearEnvironment(env.features, env.parameters, scale=0.2)

    class Disturbed(Rewards):
        def draw(self, i, a, explore=True):
            return super().draw(i, a, explore) + (5.0 * a if i >= 3 else 0.0)

    policy = kind(protocol=protocol)
    plain, clients, _ = converse(policy, env, 3000, Rewards(env))
    other, disturbed, _ = converse(policy, env, 3000, Disturbed(env))
    assert not np.array_equal(clients[0].active[3:], disturbed[0].active[3:])
    assert not clients[0].active[:3].all()
    mine = np.arange(3)
    for (_, a), (_, b) in zip(plain, other, strict=True):
        for name, value in vars(a.part(mine)).items():
            np.testing.assert_array_equal(value, getattr(b.part(mine), name))


def test_lemma_collinear_classwise_estimates_equal_joint_ones():
    """x' (X X' + Y Y')^+ (..) needs only x's own class, whether or not the classes are orthogonal."""
    env = bandits.environments.clusters(9, 2, 6, 3, seed=2)
    messages, clients, server = converse(bandits.FedPE(), env, 50, Rewards(env))
    model = next(m for kind, m in messages if kind == "global")
    first = next(m for kind, m in messages if kind == "first")
    for a in range(env.arms):
        e = server.direction[:, a]
        v = np.linalg.pinv(e.T @ e, rcond=1e-10, hermitian=True)
        joint = env.features[:, a] @ v @ first.vectors[:, a].sum(axis=0)
        apart = np.einsum("id,id->i", env.features[:, a], model.theta[model.member, a])
        # Condition numbers here are below 1e3 on both sides.
        np.testing.assert_allclose(apart, joint, rtol=1e-9, atol=1e-9)
    assert clients[0].active.any(axis=1).all()


@pytest.mark.parametrize("shared", [False, True])
def test_lengths_of_features_do_not_matter(shared):
    """Who can learn from whom is a question of directions: features may be in any unit, client by client."""
    env = bandits.environments.clusters(12, 3, 6, 3, seed=0)
    classes = bandits.collinear_classes(env.features, shared=shared)
    for seed in range(5):
        units = 10.0 ** np.random.default_rng(seed).uniform(-14, 14, size=(12, 1, 1))
        np.testing.assert_array_equal(bandits.collinear_classes(units * env.features, shared=shared), classes)
