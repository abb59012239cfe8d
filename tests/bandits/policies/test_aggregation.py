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
        found, kept = pseudo_inverses(matrix, np.array(rank))
        np.testing.assert_allclose(found, np.linalg.pinv(matrix, rcond=1e-9), rtol=1e-9, atol=1e-9)
        assert kept == rank


def test_inverses_do_not_depend_on_units():
    """Scales of coordinates change no eigenvalue that counts; singular matrices stay Moore-Penrose."""
    scale = np.diag([1e9, 1.0, 1e-9])
    x = np.random.default_rng(4).standard_normal((3, 3))
    matrix = x.T @ x
    found, kept = pseudo_inverses(scale @ matrix @ scale, np.array(3))
    np.testing.assert_allclose(scale @ found @ scale, np.linalg.inv(matrix), rtol=1e-9)
    assert kept == 3
    scale = np.diag([1e4, 1.0, 1.0])
    u = scale @ (x[:2].T @ x[:2]) @ scale
    found, kept = pseudo_inverses(u, np.array(2))
    assert kept == 2
    np.testing.assert_allclose(found, found.T, rtol=1e-9)
    np.testing.assert_allclose(u @ found @ u, u, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found @ u, (found @ u).T, atol=1e-6)
    for units in ([1e6, 1.0, 1e-6], [1e9, 1.0, 1e-9], [1e30, 1e-30, 1.0]):
        scaled = x[:2] * units
        found, kept = pseudo_inverses(scaled.T @ scaled, np.array(2))
        assert kept == 2
        np.testing.assert_allclose(scaled @ found @ scaled.T, np.eye(2), atol=1e-3)


def test_directions_that_are_nearly_one_are_taken_as_one():
    """Below a relative 1e-14 an eigenvalue is rounding, above it a direction."""
    for angle, rank in ((1e-6, 2), (1e-8, 1)):
        x = np.array([[1.0, 1.0], [1.0, 1.0 + angle]])
        for size in (1e-6, 1.0, 1e6):
            found, kept = pseudo_inverses(size * x.T @ x, np.array(2))
            assert kept == rank
            np.testing.assert_allclose(size * x[0] @ found @ x[0], 1.0 if rank == 2 else 0.5, rtol=0.02)


def test_dot_is_the_inner_product():
    rng = np.random.default_rng(3)
    u, v = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 4, 5))
    np.testing.assert_allclose(dot(u, v), (u * v).sum(axis=2), rtol=1e-12, atol=1e-13)
