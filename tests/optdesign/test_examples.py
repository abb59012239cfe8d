"""Instances that examples and the demonstration draw."""

import numpy as np
import pytest

from optdesign.examples import authors_features


def test_authors_features_lie_where_the_authors_drew_them():
    x = authors_features(clients=200, arms=5, dim=3, seed=2)
    best = x[..., 0] >= 0.7
    assert np.all(best.sum(axis=1) == 1)
    assert np.all((x[best][:, 0] <= 0.8) & (x[best][:, 1:] <= 0.3).all(axis=1))
    others = x[~best]
    assert np.all((others[:, 0] >= 0.5) & (others[:, 0] <= 0.6) & (others[:, 1:] <= 0.4).all(axis=1))
    assert np.all(x >= 0)
    np.testing.assert_array_equal(x, authors_features(200, 5, 3, np.random.default_rng(2)))
    assert authors_features(3, 2, 1).shape == (3, 2, 1)
    with pytest.raises(ValueError, match="arms must be at least 1; got 0"):
        authors_features(arms=0)
