"""Environments: what the generators promise, and that sums of pulls have the right law."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bandits
from bandits import environments as envs
from bandits.environments.noise import CHUNK, Bernoulli, Bounded, Gaussian, TwoPoint

stable = settings(deadline=None, derandomize=True, max_examples=60)
sizes = {"clients": st.integers(1, 12), "arms": st.integers(1, 8), "dim": st.integers(1, 6)}


@stable
@given(**sizes, seed=st.integers(0, 2**32 - 1))
def test_synthetic_is_the_papers_text(clients, arms, dim, seed):
    env = envs.synthetic(clients, arms, dim, seed)
    norms = np.linalg.norm(env.features, axis=2)
    assert norms.min() >= 0.5 - 1e-12
    assert norms.max() <= 1 + 1e-12
    losing = env.gaps[~env.optimal]
    assert np.all((losing >= 0.2 - 1e-12) & (losing <= 0.4 + 1e-12))
    assert np.all(env.optimal.sum(axis=1) == 1)
    assert (env.ell, env.L) == (0.5, 1.0)


@stable
@given(**sizes, seed=st.integers(0, 2**32 - 1))
def test_the_authors_instance(clients, arms, dim, seed):
    env = envs.authors(clients, arms, dim, seed)
    best = env.features[env.optimal]
    rest = env.features[~env.optimal]
    assert len(best) == clients
    assert np.all((best[:, 0] >= 0.7) & (best[:, 0] <= 0.8))
    assert np.all((rest[:, 0] >= 0.5) & (rest[:, 0] <= 0.6))
    if dim > 1:
        assert np.all((best[:, 1:] >= 0) & (best[:, 1:] <= 0.6 / (dim - 1)))
        assert np.all((rest[:, 1:] >= 0) & (rest[:, 1:] <= 0.8 / (dim - 1)))
    np.testing.assert_array_equal(env.means, env.features[:, :, 0])


@stable
@given(**sizes, seed=st.integers(0, 2**32 - 1), shared=st.booleans())
def test_random_environments_keep_their_bounds(clients, arms, dim, seed, shared):
    for noise in ("gaussian", "bernoulli"):
        env = envs.random(clients, arms, dim, seed, shared=shared, noise=noise)
        norms = np.linalg.norm(env.features, axis=2)
        assert env.ell <= norms.min()
        assert norms.max() <= env.L <= 1 + 1e-12
        assert env.ell >= 0.5 - 1e-12
        assert env.s == pytest.approx(1.0)
        assert env.shared == shared
        assert np.all(env.gaps >= 0)
        assert env.optimal.any(axis=1).all()
        again = envs.random(clients, arms, dim, seed, shared=shared, noise=noise)
        np.testing.assert_array_equal(env.features, again.features)


@stable
@given(dim=st.integers(1, 5), per=st.integers(1, 3), arms=st.integers(2, 5), horizon=st.integers(10, 1000))
def test_the_lower_bound_instance(dim, per, arms, horizon):
    m = dim * per
    env = envs.lower_bound(m, arms, dim, horizon)
    delta = np.sqrt(dim * (arms - 1) / (4 * m * horizon))
    np.testing.assert_allclose(env.means[:, 0], delta)
    assert np.all(env.means[:, 1:] == 0)
    best = np.arange(dim) % (arms - 1) + 1
    other = envs.lower_bound(m, arms, dim, horizon, best)
    np.testing.assert_array_equal(np.argmax(other.means, axis=1), np.repeat(best, per))
    np.testing.assert_allclose(other.means.max(axis=1), 2 * delta)


@pytest.mark.parametrize(
    "noise", [Gaussian(0.7), Bernoulli(), TwoPoint(0.5), Bounded(0.9)], ids=lambda n: type(n).__name__
)
def test_sums_have_the_mean_and_variance_of_so_many_pulls(noise):
    """Two z-tests per count at level 1e-6 each: a false alarm has odds below 3e-5."""
    rng = np.random.default_rng(0)
    z = 4.9  # two-sided normal quantile of 1e-6
    n = 20_000
    mean = 0.3
    variance = {Gaussian: 0.49, Bernoulli: 0.21, TwoPoint: 0.25, Bounded: 0.27}[type(noise)]
    for count in (1, 5, 64):
        sums = noise.sums(rng, np.full((n, 1), mean), np.full((n, 1), count))
        total = count * variance
        assert abs(sums.mean() - count * mean) <= z * np.sqrt(total / n)
        squares = (sums - count * mean) ** 2
        assert abs(squares.mean() - total) <= z * squares.std() / np.sqrt(n)
        assert noise.sigma**2 >= variance - 1e-12
    assert np.all(noise.sums(rng, np.full((3, 2), mean), np.zeros((3, 2), dtype=int)) == 0)


@pytest.mark.parametrize(
    ("noise", "mgf"),
    [
        (Gaussian(0.7), lambda s: np.exp((0.7 * s) ** 2 / 2)),
        (Bernoulli(), lambda s: np.cosh(s / 2)),
        (TwoPoint(0.5), lambda s: np.cosh(0.5 * s)),
        (Bounded(0.9), lambda s: np.sinh(0.9 * s) / (0.9 * s)),
    ],
    ids=lambda n: type(n).__name__,
)
def test_sigma_is_the_smallest_that_is_right(noise, mgf):
    """E exp(s (y - mu)) <= exp(s^2 sigma^2 / 2) for all s, and for no sigma that is less (mean 1/2)."""
    s = np.geomspace(1e-2, 20, 50)
    limit = np.exp((s * noise.sigma) ** 2 / 2)
    assert np.all(mgf(s) <= limit * (1 + 1e-12))
    assert np.any(mgf(s) > np.exp((s * 0.999 * noise.sigma) ** 2 / 2))


def test_bounded_sums_are_sums_of_single_draws_across_chunks():
    counts = np.array([[3, 0, 5], [1, CHUNK + 700, 2]])
    sums = Bounded(0.5).sums(np.random.default_rng(1), np.zeros((2, 3)), counts)
    draws = np.random.default_rng(1).uniform(-0.5, 0.5, counts.sum())
    ends = np.cumsum(counts.ravel())
    direct = [draws[e - n : e].sum() for e, n in zip(ends, counts.ravel(), strict=True)]
    # Two orders of summing a million numbers below one half.
    np.testing.assert_allclose(sums.ravel(), direct, rtol=1e-9, atol=1e-9)


def test_a_noise_of_ones_own():
    class Silent:
        sigma = 0.1

        def sums(self, _, means, counts):
            return means * counts

    env = bandits.LinearEnvironment(np.ones((2, 2, 1)), [[0.1], [0.9]], Silent())
    assert env.sigma == 0.1
    run = bandits.simulate(bandits.FedPE(), env, 200, trials=1)
    local = bandits.simulate(bandits.LocalUCB(), env, 200, trials=1)
    assert run.regret[0, -1] < 0.8 * 200
    assert local.regret[0, -1] < 0.8 * 200


def test_bad_environments_are_refused():
    x, theta = np.ones((2, 3, 2)), np.ones((3, 2))
    for wrong, word in [
        ((np.ones((2, 3)), theta), "shape"),
        ((x, np.ones((2, 2))), "parameters"),
        ((x * np.nan, theta), "finite"),
        ((x * 0, theta), "zero"),
        ((x, theta, "pink"), "noise"),
        ((x, theta, 3), "noise"),
        ((x, theta, "gaussian", -1.0), "scale"),
        ((x, theta, "bernoulli"), "means"),
    ]:
        with pytest.raises(ValueError, match=word):
            bandits.LinearEnvironment(*wrong)
    for name, value in [("ell", 2.0), ("ell", 0.0), ("L", 0.1), ("s", 0.1)]:
        with pytest.raises(ValueError, match=name):
            bandits.LinearEnvironment(x, theta, **{name: value})
    with pytest.raises(ValueError, match="multiple"):
        envs.lower_bound(5, 3, 2, 10)
    with pytest.raises(ValueError, match="n_clusters"):
        envs.clusters(5, 3, 2, 3)
    with pytest.raises(ValueError, match="clients"):
        envs.random(0, 1, 1)


def test_environments_cannot_be_changed_by_accident():
    env = envs.random(2, 2, 2)
    with pytest.raises(ValueError, match="read-only"):
        env.features[0, 0, 0] = 5.0


@pytest.mark.parametrize(
    "best", [[0, 1], [1, 3], [1], [1, 1, 1], [-1, 1], [[1, 2]], [True, True], [1.0, 2.0]]
)
def test_the_arms_of_the_lower_bound_instance_are_checked(best):
    with pytest.raises(ValueError, match="best must have one arm from 1 to 2 for each of the 2 groups; got"):
        envs.lower_bound(4, 3, 2, 10, best)
    assert envs.lower_bound(4, 3, 2, 10, np.array([1, 2])).means.shape == (4, 3)


def test_identical_clients_share_features_and_parameters():
    env = envs.identical(clients=5, arms=4, dim=3, seed=2)
    assert env.shared
    assert np.all(env.features == env.features[0])
    gaps = env.gaps[~env.optimal]
    assert gaps.min() >= 0.2 - 1e-12
    assert gaps.max() <= 0.4 + 1e-12


def test_the_papers_text_with_shared_parameters():
    env = envs.synthetic(clients=6, arms=4, dim=3, shared=True)
    assert env.shared
    np.testing.assert_allclose(env.features[:, :, 0], env.means)
    norms = np.linalg.norm(env.features, axis=2)
    assert norms.min() >= 0.5 - 1e-12
    assert norms.max() <= 1 + 1e-12


@pytest.mark.parametrize("size", [2.0**-10, 1.0, 2.0**20])
def test_arms_that_differ_by_rounding_are_tied(size):
    """0.1 + 0.2 is 0.3, and both arms are best; what is a millionth less is not."""
    x = size * np.array([[[0.1, 0.2], [0.3, 0.0], [0.3 * (1 - 1e-6), 0.0]]])
    env = bandits.LinearEnvironment(x, np.ones(2))
    assert env.means[0, 0] != env.means[0, 1]
    assert env.optimal.tolist() == [[True, True, False]]


@pytest.mark.parametrize("orthogonal", [False, True])
def test_clusters_are_at_right_angles_if_asked_for(orthogonal):
    env = envs.clusters(6, 2, 4, 2, seed=0, orthogonal=orthogonal)
    cosine = np.einsum("iad,jad->ija", env.features[:3], env.features[3:])
    assert (np.abs(cosine).max() <= 1e-14) == orthogonal
