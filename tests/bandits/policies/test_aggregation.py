"""The compiled sums of Fed-PE against einsum."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.policies.aggregation import accumulate, dot, project, pseudo_inverses

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("blocks", [3, 1])
def test_sums_over_classes(blocks):
    rng = np.random.default_rng(0)
    e, theta = rng.standard_normal((5, 3, 2)), rng.standard_normal((5, 3, 2))
    pulls = rng.integers(0, 4, (5, 3))
    member = np.array([0, 1, 0, 1, 1])
    information, moment = np.zeros((2, blocks, 2, 2)), np.zeros((2, blocks, 2))
    accumulate(e, member, pulls, theta, information, moment)
    for c in (0, 1):
        w = pulls * (member == c)[:, None]
        full = np.einsum("ia,iaj,iak->ajk", w, e, e), np.einsum("ia,iaj->aj", w, theta)
        if blocks == 1:
            full = tuple(value.sum(axis=0, keepdims=True) for value in full)
        np.testing.assert_allclose(information[c], full[0], rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(moment[c], full[1], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("blocks", [3, 1])
def test_projections(blocks):
    rng = np.random.default_rng(1)
    e, active = rng.standard_normal((4, 3, 2)), rng.random((4, 3)) < 0.7
    root = rng.standard_normal((2, blocks, 2, 2))
    v, theta = root @ np.swapaxes(root, 2, 3), rng.standard_normal((2, blocks, 2))
    member = np.array([0, 1, 1, 0])
    estimate, deviation = np.zeros((4, 3)), np.zeros((4, 3))
    project(e, active, member, theta, v, estimate, deviation)
    wide = np.broadcast_to(v[member], (4, 3, 2, 2)), np.broadcast_to(theta[member], (4, 3, 2))
    square = np.einsum("iaj,iajk,iak->ia", e, wide[0], e)
    mean = np.einsum("iaj,iaj->ia", e, wide[1])
    np.testing.assert_allclose(estimate, mean * active, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(deviation**2, square * active, rtol=1e-12, atol=1e-13)


def test_inverses_of_known_rank():
    rng = np.random.default_rng(2)
    for rank in range(4):
        a = rng.standard_normal((3, rank))
        matrix = a @ a.T
        found = pseudo_inverses(matrix, np.array(rank))
        np.testing.assert_allclose(found, np.linalg.pinv(matrix, rcond=1e-9), rtol=1e-9, atol=1e-9)


def test_directions_that_are_nearly_one_are_taken_as_one():
    """Beyond a relative 1e-12 an eigenvalue is a direction, below it rounding, whatever the rank may be."""
    for small, kept in ((1e-11, True), (1e-13, False)):
        for size in (1e-6, 1.0, 1e6):
            found = pseudo_inverses(size * np.diag([1.0, small]), np.array(2))
            np.testing.assert_allclose(size * found, np.diag([1.0, 1 / small if kept else 0.0]), rtol=1e-9)


def test_dot_is_the_inner_product():
    rng = np.random.default_rng(3)
    u, v = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 4, 5))
    np.testing.assert_allclose(dot(u, v), (u * v).sum(axis=2), rtol=1e-12, atol=1e-13)
