"""Factorials, simplex lattices and simplex centroids."""

import numpy as np
import pytest

import optdesign as od


@pytest.mark.parametrize(("q", "m"), [(1, 3), (2, 4), (3, 2), (4, 3)])
def test_simplex_lattice(q: int, m: int) -> None:
    s = od.simplex_lattice(q, m)
    points = np.column_stack(list(s.values()))
    np.testing.assert_allclose(points.sum(axis=1), 1, atol=1e-15)
    whole = np.rint(points * m)
    np.testing.assert_allclose(points * m, whole, atol=1e-12)
    every = [p for p in np.ndindex(*(m + 1,) * q) if sum(p) == m]
    assert sorted(map(tuple, whole.astype(int))) == sorted(every)


@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_simplex_centroid(q: int) -> None:
    s = od.simplex_centroid([f"c{k}" for k in range(q)])
    points = np.column_stack(list(s.values()))
    assert len({tuple(p > 0) for p in points}) == len(points) == 2**q - 1
    for p in points:
        np.testing.assert_array_equal(p[p > 0], 1 / np.count_nonzero(p))


def test_factorial() -> None:
    s = od.factorial([3, ["u", "v"], range(2)])
    assert list(s) == ["x1", "x2", "x3"]
    assert s.n_rows == 12
    assert s["x1"].tolist() == [-1.0] * 4 + [0.0] * 4 + [1.0] * 4
    assert repr(s) == "Settings(12 rows: x1, x2, x3)"


@pytest.mark.parametrize(
    "call",
    [
        lambda: od.factorial(3),
        lambda: od.factorial("ab"),
        lambda: od.simplex_lattice("abc", 2),
        lambda: od.simplex_lattice(["a", "a"], 2),
        lambda: od.simplex_lattice(0, 2),
        lambda: od.simplex_lattice(3, 0),
        lambda: od.simplex_lattice(3, 1.5),
        lambda: od.simplex_centroid(40),
        lambda: od.simplex_lattice(30, 30),
    ],
)
def test_bad_settings(call) -> None:
    with pytest.raises((TypeError, ValueError), match="must"):
        call()
