"""The kernels of the Newton systems, against dense NumPy of their equation (1).

    (H + W^-1) du + A' dlambda = r,    A du = 0

These tests run a second time with the kernels as plain Python. Tolerances are those of :mod:`cases`, or
multiples of eps times the condition of the dense matrix where that is named.
"""

import numpy as np
import pytest
from cases import RTOL, Whitened, seeds
from problems import EPS
from work import checks_of_a_stop

from optdesign.solvers.systems import (
    ByGroup,
    ByInformation,
    ByIteration,
    System,
    by_information,
    by_iteration,
    dense,
)
from optdesign.solvers.systems.layout import Layout

pytestmark = pytest.mark.kernels


class Case(Whitened):
    """A case with the parts of its systems."""

    @property
    def layout(self) -> Layout:
        return Layout(self.blocks, self.starts, self.ranks)

    def information_system(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of w, pivots, and I + M before it is factorised."""
        system = ByInformation(self.layout)
        assert system.factorise(self.a, self.w)
        np.testing.assert_allclose(system.total, self.sums @ self.w, rtol=1e-14)
        matrix = np.eye(self.offsets[-1]) + system._squared(0, len(self.starts) - 1)
        return system.total, system.pivot, matrix

    def factorised(self) -> list[System]:
        """Every dense system that applies."""
        systems = [way(self.layout) for way in (ByGroup, ByInformation)]
        assert all(system.factorise(self.a, self.w) for system in systems)
        return systems


SIZES = [
    {"blocks": 1, "groups": 1, "width": 1, "n": 4},
    {"blocks": 1, "groups": 1},
    {"blocks": 1, "groups": 6},
    {"blocks": 3, "groups": 4},
    {"blocks": 4, "groups": 8, "width": 2},
    {"blocks": 2, "groups": 12},
]
sizes = pytest.mark.parametrize("size", SIZES, ids=lambda s: "-".join(f"{k}{v}" for k, v in s.items()))


@seeds
def test_svec(seed: int) -> None:
    c = Case(seed)
    for n, b in enumerate(c.blocks):
        out = np.full(8, np.nan)
        q = by_information._svec(c.a[n], c.ranks[b], out)
        assert q == c.offsets[b + 1] - c.offsets[b]
        np.testing.assert_allclose(out[:q], c.phi[n, c.offsets[b] : c.offsets[b + 1]], rtol=RTOL)
        assert np.isnan(out[q:]).all()
    np.testing.assert_allclose(c.phi @ c.phi.T, c.hessian, rtol=RTOL, atol=RTOL)


@seeds
def test_add_square_and_add_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, v, y = rng.normal(size=(4, 6)), rng.normal(size=4), rng.normal(size=3)
    got, expected = m.copy(), m.copy()
    by_information._add_square(got, 2, -0.7, v)
    expected[:, 2:] -= 0.7 * np.tril(np.outer(v, v))
    np.testing.assert_allclose(got, expected, rtol=RTOL, atol=RTOL)
    got, expected = m.copy(), m.copy()
    by_information._add_product(got, 1, 0.4, v, y)
    expected[:, 1:4] += 0.4 * np.outer(v, y)
    np.testing.assert_allclose(got, expected, rtol=RTOL, atol=RTOL)


@seeds
@sizes
def test_group_system(seed: int, size: dict) -> None:
    """The Schur complement, by inverses and by columns."""
    c = Case(seed, **size)
    system = ByGroup(c.layout)
    assert system.factorise(c.a, c.w)
    matrix = c.hessian + np.diag(1 / c.w)
    inverse = np.linalg.inv(matrix)
    rounding = RTOL * np.linalg.cond(matrix)
    lower = np.tril(system.schur)
    expected = c.sums @ inverse @ c.sums.T
    np.testing.assert_allclose(lower @ lower.T, expected, rtol=0, atol=rounding * np.abs(expected).max())
    r = c.rng.normal(size=len(c.z))
    t = system._solve_blocks(r)
    np.testing.assert_allclose(t, inverse @ r, rtol=0, atol=rounding * np.abs(t).max())


@seeds
@sizes
@pytest.mark.parametrize("orders", [0.0, 4.0])
def test_information_system(seed: int, size: dict, orders: float) -> None:
    """I + Phi' W~ Phi, whichever block the pivot lies in; ties have the first pivot."""
    c = Case(seed, orders=orders, **size)
    total, pivot, matrix = c.information_system()
    expected_pivot = [np.flatnonzero(c.groups == i)[np.argmax(c.w[c.groups == i])] for i in range(len(total))]
    np.testing.assert_array_equal(pivot, expected_pivot)
    expected = np.eye(len(matrix)) + c.phi.T @ c.centred @ c.phi
    np.testing.assert_allclose(np.tril(matrix), np.tril(expected), rtol=0, atol=RTOL * np.abs(expected).max())


def test_information_system_has_met_both_block_orders() -> None:
    """The cases above are worth something: candidates in the pivot's block, before it and after it."""
    seen = set()
    for seed in range(5):
        for size in SIZES:
            c = Case(seed, **size)
            _, pivot, _ = c.information_system()
            seen |= set(np.sign(c.blocks - c.blocks[pivot][c.groups]).tolist())
    assert seen == {-1, 0, 1}


@seeds
@sizes
@pytest.mark.parametrize("groups", [1, 3, 10**6])
@pytest.mark.parametrize("rows", [1, 2, 10**6])
def test_information_system_in_batches(
    seed: int, size: dict, groups: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few groups or rows at a time, or all at once: the factor is that of one matrix."""
    c = Case(seed, **size)
    system = ByInformation(c.layout)
    monkeypatch.setattr(dense, "PIECE_COLUMNS", groups)
    system.groups_to_square, system.rows_per_call = groups, rows
    assert system.factorise(c.a, c.w)
    lower = np.tril(system.matrix)
    expected = np.eye(len(lower)) + c.phi.T @ c.centred @ c.phi
    np.testing.assert_allclose(lower @ lower.T, expected, rtol=0, atol=RTOL * np.abs(expected).max())


@seeds
@sizes
def test_centred(seed: int, size: dict) -> None:
    c = Case(seed, **size)
    total, pivot, _ = c.information_system()
    r, y, bound = c.rng.normal(size=len(c.z)), np.zeros(c.offsets[-1]), np.empty(len(total))
    groups, places = (c.w, total, pivot, c.starts, 0, len(total)), (c.a, c.blocks, c.ranks, c.offsets)
    du = r.copy()
    by_information._centre(*groups, du, bound)
    by_information._add_products(*places, 0, len(r), du, y)
    scale = RTOL * max(1.0, np.abs(c.phi).max()) * c.w.sum()
    np.testing.assert_allclose(y, c.phi.T @ c.centred @ r, rtol=0, atol=scale)
    y, du = c.rng.normal(size=len(y)), r.copy()
    by_information._subtract_products(*places, 0, len(r), y, du)
    by_information._centre(*groups, du, bound)
    v = r - c.phi @ y
    np.testing.assert_allclose(du, c.centred @ v, rtol=0, atol=scale * np.abs(v).max())
    np.testing.assert_allclose(
        bound, c.sums @ (c.w * v) / (c.sums @ c.w), rtol=0, atol=RTOL * np.abs(v).max()
    )


@pytest.mark.parametrize("seed", range(10))
@sizes
@pytest.mark.parametrize("orders", [0.0, 2.0, 6.0])
def test_all_systems_solve_equation_1(seed: int, size: dict, orders: float) -> None:
    c = Case(seed, orders=orders, **size)
    r = c.rng.normal(size=len(c.z))
    du, dbound, condition = c.dense(r)
    for system in c.factorised():
        got_du, got_bound = system.solve(r)
        # Errors of a stable solution are eps times the condition, in units in which the matrix is
        # equilibrated: sqrt(w) for du. 100 bounds the sizes of N + groups <= 36 with their constants.
        rounding = 100 * EPS * condition
        unit = max(np.linalg.norm(du / np.sqrt(c.w)), np.linalg.norm(dbound))
        assert np.linalg.norm((got_du - du) / np.sqrt(c.w)) <= rounding * unit
        assert np.linalg.norm(got_bound - dbound) <= rounding * unit


@pytest.mark.parametrize("seed", range(10))
@sizes
@pytest.mark.parametrize("support", ["any", "one"])
def test_information_system_with_ratios_of_twenty_orders(seed: int, size: dict, support: str) -> None:
    """I + M stays positive definite, and what comes out solves (1) to rounding.

    The share of n moves by w_n times a difference of v = r - Phi y, whose rounding is eps times the terms
    of v; the pivot takes minus the sum of the others, so its w, the largest, multiplies no rounding. Hence
    the residual of row n is below (N + Q) eps max |terms| (1 + |phi_n| sum_{m != p} w_m (|phi_m| + |phi_p|)),
    and the subtraction in M leaves at least a 1 / K of what it is taken from, K the candidates of a group.
    """
    c = Case(seed, orders=20.0, **size)
    _, pivot, _ = c.information_system()
    others = np.setdiff1d(np.arange(len(c.w)), pivot)
    if support == "one":  # as at the end of a run: one candidate a group has a share
        c.w[others] = np.minimum(c.w[others], 1.0)
        c.w[pivot] = 1e10
    r = c.rng.normal(size=len(c.z))
    _, _, matrix = c.information_system()
    np.linalg.cholesky(np.tril(matrix) + np.tril(matrix, -1).T)
    system = ByInformation(c.layout)
    assert system.factorise(c.a, c.w)
    du, dbound = system.solve(r)
    np.testing.assert_allclose(c.sums @ du, 0, atol=len(du) * EPS * np.abs(du).max())
    residual = c.hessian @ du + du / c.w + dbound[c.groups] - r
    norm = np.linalg.norm(c.phi, axis=1)
    amplified = 1 + norm * np.sum((c.w * (norm + norm[pivot][c.groups]))[others])
    terms = np.abs(r).max() + (np.abs(c.phi) @ np.abs(c.phi.T @ du)).max()
    rounding = (len(c.w) + len(matrix)) * EPS * np.diff(c.starts).max() * terms * amplified
    assert np.all(np.abs(residual) <= rounding)


@seeds
@sizes
@pytest.mark.parametrize("accuracy", [1e-2, 1e-6])
def test_conjugate_gradients_solve_equation_1(
    seed: int, size: dict, accuracy: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the accuracy that is asked for, in the norm of the matrix, and the sums of groups are kept."""
    monkeypatch.setattr(by_iteration, "PARAMETERS", by_iteration.PARAMETERS._replace(residual=accuracy))
    c = Case(seed, **size)
    r = c.rng.normal(size=len(c.z))
    du, dbound, _ = c.dense(r)
    system = ByIteration(c.layout)
    assert system.factorise(c.a, c.w)
    got, got_bound = system.solve(r)
    np.testing.assert_allclose(c.sums @ got, 0, atol=1e3 * EPS * np.abs(got).max())
    # The residual in the norm of the inverse preconditioner is what is controlled; the eigenvalues of the
    # preconditioned matrix are between 1 / condition and the size of a block.
    matrix = c.hessian + np.diag(1 / c.w)
    root = np.sqrt(np.diag(matrix))
    scaled = matrix / np.outer(root, root)
    reach = np.linalg.cond(scaled)
    error, whole = np.linalg.norm((got - du) * root), np.linalg.norm(du * root)
    assert error <= accuracy * reach * whole
    assert np.linalg.norm(got_bound - dbound) <= accuracy * reach * (
        np.linalg.norm(dbound) + np.linalg.norm(r)
    )


def test_conjugate_gradients_refuse_what_is_not_finite() -> None:
    c = Case(0)
    assert not ByIteration(c.layout).factorise(c.a, np.full_like(c.w, np.nan))


@seeds
@sizes
def test_products_in_single_precision_know_no_units(seed: int, size: dict) -> None:
    """Errors are relative to the variances of both rows, also where these are beyond its range."""
    c = Case(seed, **size)
    a = c.a * 10.0 ** c.rng.uniform(-30, 30, len(c.a))[:, None]
    v = c.rng.normal(size=len(a)) * 10.0 ** c.rng.uniform(-50, 50, len(a))
    system = ByIteration(c.layout)
    assert system.factorise(a, c.w)
    same = c.blocks[:, None] == c.blocks
    g = np.einsum("ij,ij->i", a, a)
    expected = np.where(same, (a @ a.T) ** 2, 0.0) @ v + v / c.w
    terms = g * np.max(g * np.abs(v)) + np.abs(v) / c.w
    rounding = len(a) * a.shape[1] * float(np.finfo(np.float32).eps)
    assert np.all(np.abs(system._multiply(v) - expected) <= rounding * terms)


@seeds
def test_conjugate_gradients_start_from_the_last_solution(seed: int) -> None:
    """Until there are other rows; accuracy is that of the right-hand side at hand."""
    c = Case(seed)
    r = c.rng.normal(size=len(c.z))
    system = ByIteration(c.layout)

    def products(r: np.ndarray) -> int:
        return checks_of_a_stop(lambda: system.solve(r))  # one per product

    assert system.factorise(c.a, c.w)
    first = products(r)
    du = system.found[0].copy()
    assert first > 0
    assert products(r) == 0
    np.testing.assert_array_equal(system.found[0], du)
    assert products(-1e-3 * r) > 0
    np.testing.assert_allclose(c.sums @ system.found[0], 0, atol=1e3 * EPS * np.abs(du).max())
    assert system.factorise(c.a, c.w)
    assert products(r) == first
