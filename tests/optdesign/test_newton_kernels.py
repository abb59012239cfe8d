"""The kernels of the interior point method, against dense NumPy of its equation (1).

    (H + W^-1) du + A' dlambda = r,    A du = 0

These tests run a second time with the kernels as plain Python. Tolerances are those of :mod:`cases`, or
multiples of eps times the condition of the dense matrix where that is named.
"""

import numpy as np
import pytest
from cases import RTOL, Case, seeds
from problems import EPS

from optdesign.solvers import newton

pytestmark = pytest.mark.kernels


class Newton(Case):
    """A case whitened at its shares, with every matrix of (1) written out."""

    def __init__(self, seed: int, orders: float = 2.0, **sizes: int) -> None:
        super().__init__(seed, **sizes)
        n = len(self.z)
        self.groups = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        self.sums = (self.groups == np.arange(len(self.starts) - 1)[:, None]).astype(float)
        self.w = 10.0 ** self.rng.uniform(-orders / 2, orders / 2, size=n)
        self.a = np.zeros_like(self.z)
        self.phi = np.zeros((n, int((self.ranks * (self.ranks + 1) // 2).sum())))
        self.offsets = np.concatenate([[0], np.cumsum(self.ranks * (self.ranks + 1) // 2)])
        for b, (m, r, rows) in enumerate(zip(self.matrices(), self.ranks, self.rows(), strict=True)):
            a = np.linalg.solve(np.linalg.cholesky(m[:r, :r]), self.z[rows, :r].T).T
            self.a[rows, :r] = a
            i, j = np.tril_indices(r)
            svec = np.where(i == j, 1.0, np.sqrt(2)) * a[:, i] * a[:, j]
            self.phi[rows, self.offsets[b] : self.offsets[b + 1]] = svec

    @property
    def hessian(self) -> np.ndarray:
        return np.where(self.blocks[:, None] == self.blocks, (self.a @ self.a.T) ** 2, 0.0)

    @property
    def centred(self) -> np.ndarray:
        """W - W 1 1' W / sum w in every group."""
        total = self.sums @ self.w
        return np.diag(self.w) - (self.sums * self.w).T @ np.diag(1 / total) @ (self.sums * self.w)

    def dense(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """du, dlambda and the condition of the matrix of (1), equilibrated: du is in units of sqrt(w)."""
        m, root = len(self.sums), np.sqrt(self.w)
        h = root[:, None] * self.hessian * root + np.eye(len(root))
        a = self.sums * root
        scale = np.linalg.norm(a, axis=1, keepdims=True)
        kkt = np.block([[h, (a / scale).T], [a / scale, np.zeros((m, m))]])
        x = np.linalg.solve(kkt, np.concatenate([root * r, np.zeros(m)]))
        return x[: len(root)] * root, x[len(root) :] / scale[:, 0], float(np.linalg.cond(kkt))

    def by_group(self, r: np.ndarray, ridge: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        system, factor, schur = self.group_system(ridge)
        assert newton._cholesky(schur, ridge) == 0
        return newton._solve_by_group(self.starts, system.by_block, system.block_starts, factor, schur, r)

    def group_system(self, ridge: float = 0.0) -> tuple[newton._ByGroup, np.ndarray, np.ndarray]:
        system = newton._ByGroup(self.free())
        factor = np.full((len(self.ranks), system.size, system.size), np.nan)
        schur = np.full((system.groups, system.groups), np.nan)
        newton._group_system(
            self.a,
            self.w,
            system.group,
            system.by_block,
            system.block_starts,
            self.ranks,
            ridge,
            factor,
            schur,
        )
        return system, factor, schur

    def information_system(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        q = self.offsets[-1]
        matrix = np.full((q, q), np.nan)
        total, pivot = newton._information_system(
            self.a, self.w, self.starts, self.blocks, self.ranks, self.offsets, matrix
        )
        return total, pivot, matrix

    def by_information(self, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total, pivot, matrix = self.information_system()
        assert newton._cholesky(matrix, 0.0) == 0
        return newton._solve_by_information(
            self.a, self.w, total, pivot, self.starts, self.blocks, self.ranks, self.offsets, matrix, r
        )

    def free(self, fixed: np.ndarray | None = None) -> newton._Free:
        width = self.z.shape[1]
        if fixed is None:
            fixed = np.zeros((len(self.ranks), width, width))
        return newton._Free(np.arange(len(self.z)), self.z, self.blocks, self.starts, self.ranks, fixed)


SIZES = [
    {"blocks": 1, "groups": 1, "width": 1, "n": 4},
    {"blocks": 1, "groups": 1},
    {"blocks": 1, "groups": 6},
    {"blocks": 3, "groups": 4},
    {"blocks": 4, "groups": 8, "width": 2},
    {"blocks": 2, "groups": 12},
]
sizes = pytest.mark.parametrize("size", SIZES, ids=lambda s: "-".join(f"{k}{v}" for k, v in s.items()))


# -------------------------------------------------------------------------------------------- small parts


def test_has_choice() -> None:
    z = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 1e-300], [0.0, 2.0], [3.0, 0.0]])
    got = newton._has_choice(z, np.array([0, 1, 3, 5, 7]))
    assert got.tolist() == [False, False, True, True]


@seeds
@pytest.mark.parametrize("with_fixed", [False, True])
def test_evaluate(seed: int, with_fixed: bool) -> None:
    c = Newton(seed)
    a, g = np.full_like(c.z, np.nan), np.full(len(c.z), np.nan)
    fixed = np.zeros((3, 3, 3))
    if with_fixed:
        rows = c.rng.normal(size=(3, 2, 3))
        for b, r in enumerate(c.ranks):
            fixed[b, :r, :r] = rows[b, :, :r].T @ rows[b, :, :r]
    gap = newton._evaluate(c.z, c.blocks, c.starts, c.ranks, np.tril(fixed), c.u, a, g)
    expected_gap = 0.0
    for b, (m, r, rows) in enumerate(zip(c.matrices(), c.ranks, c.rows(), strict=True)):
        lower = np.linalg.cholesky((m + fixed[b])[:r, :r])
        np.testing.assert_allclose(a[rows, :r], np.linalg.solve(lower, c.z[rows, :r].T).T, atol=RTOL)
        assert not a[rows, r:].any()
    np.testing.assert_allclose(g, np.sum(a**2, axis=1), rtol=RTOL)
    for i in range(len(c.starts) - 1):
        part = slice(c.starts[i], c.starts[i + 1])
        expected_gap += g[part].max() - c.u[part] @ g[part]
    assert gap == pytest.approx(expected_gap, rel=RTOL)
    if not with_fixed:
        assert sum(c.u * g) == pytest.approx(c.ranks.sum(), rel=RTOL)


def test_evaluate_without_rank() -> None:
    c = Newton(0, blocks=1, groups=1)
    a, g = np.zeros_like(c.z), np.zeros(len(c.z))
    u = np.zeros(len(c.z))
    u[0] = 1.0
    c.ranks[:] = 3
    assert newton._evaluate(c.z, c.blocks, c.starts, c.ranks, np.zeros((1, 3, 3)), u, a, g) == np.inf
    assert c.free().gap(u) == np.inf


@pytest.mark.parametrize(
    ("x", "dx", "expected"),
    [
        ([1.0, 2.0], [5.0, 0.0], 1.0),
        ([1.0, 2.0], [-0.5, -1.9], 1.0),
        ([1.0, 2.0], [-4.0, -4.0], 0.25),
        ([1e-20, 1.0], [-1e-10, 1.0], 1e-10),
    ],
)
def test_reach(x: list[float], dx: list[float], expected: float) -> None:
    assert newton._reach(np.array(x), np.array(dx)) == pytest.approx(expected, rel=4 * EPS)


@seeds
def test_target(seed: int) -> None:
    """With steps as long as positivity allows, sigma = (mu after / mu before)^3."""
    rng = np.random.default_rng(seed)
    u, s, du, ds = rng.exponential(size=(4, 9)) * np.array([[1.0], [1.0], [-1.0], [1.0]])
    ds[::2] *= -3
    du[1] *= -1
    length = []
    for x, dx in ((u, du), (s, ds)):
        down = dx < 0
        length.append(min(1.0, (-x[down] / dx[down]).min()))
    mu, after = u @ s / 9, (u + length[0] * du) @ (s + length[1] * ds) / 9
    expected = (mu * (after / mu) ** 3 - du * ds) / u
    np.testing.assert_allclose(newton._target(u, s, du, ds), expected, rtol=RTOL, atol=RTOL)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("allowed", [np.inf, 0.5, 0.1, 0.0])
def test_move(seed: int, allowed: float) -> None:
    """Halve until the gap is at most ten times the last one, given here as a multiple of the true one."""
    c = Newton(seed)
    s, bound = c.rng.exponential(size=len(c.z)), c.rng.exponential(size=4)
    du, ds, dbound = c.rng.normal(size=len(c.z)), c.rng.normal(size=len(c.z)), c.rng.normal(size=4)
    du -= ((c.sums @ du) / (c.sums @ c.u))[c.groups] * c.u  # A du = 0
    a, g = np.empty_like(c.z), np.empty(len(c.z))
    free, u = c.free(), c.u.copy()
    gap = allowed * free.gap(c.u)
    primal, dual = (0.9 * newton._reach(x, dx) for x, dx in ((u, du), (s, ds)))
    tried = 0
    while True:
        new = u + primal * du
        new /= (c.sums @ new)[c.groups]
        tried += 1
        expected = free.gap(new)
        if expected <= 10 * gap or tried == 8:
            break
        primal, dual = primal / 2, dual / 2
    if allowed == 0:
        assert tried == 8
    # After the eighth try the slacks take half of its step: the halving that no try follows.
    dual = dual if expected <= 10 * gap else dual / 2
    expected_s, expected_bound = s + dual * ds, bound + dual * dbound
    got = newton._move(
        c.z, c.blocks, c.starts, c.ranks, free.fixed, 0.9, gap, du, ds, dbound, u, s, bound, a, g
    )
    np.testing.assert_allclose(u, new, rtol=RTOL)
    np.testing.assert_allclose(s, expected_s, rtol=RTOL, atol=RTOL)
    np.testing.assert_allclose(bound, expected_bound, rtol=RTOL)
    assert got == pytest.approx(expected, rel=RTOL)
    assert np.all(u > 0)
    assert np.all(s > 0)
    np.testing.assert_allclose(c.sums @ u, 1.0, rtol=len(u) * EPS)
    # What is left behind belongs to the new shares.
    np.testing.assert_allclose(g, np.sum(a**2, axis=1), rtol=RTOL)
    assert c.sums @ (u * g) @ np.ones(4) == pytest.approx(c.ranks.sum(), rel=RTOL)


@seeds
def test_residual_and_cholesky_solve(seed: int) -> None:
    c = Newton(seed)
    bound, g = c.rng.normal(size=4), c.rng.normal(size=len(c.z))
    np.testing.assert_array_equal(newton._residual(c.starts, bound, g), g - bound[c.groups])
    root = c.rng.normal(size=(5, 5)) + 3 * np.eye(5)
    matrix, b = root @ root.T, c.rng.normal(size=5)
    x = b.copy()
    noise = np.triu(np.full((5, 5), np.nan), 1)  # only the lower triangle is read
    newton._cholesky_solve(np.linalg.cholesky(matrix) + noise, x)
    np.testing.assert_allclose(x, np.linalg.solve(matrix, b), rtol=RTOL * np.linalg.cond(matrix))


def test_cholesky_tells_whether_it_succeeded() -> None:
    good = np.array([[4.0, np.nan], [2.0, 5.0]])
    assert newton._cholesky(good, 0.0) == 0
    np.testing.assert_allclose(np.tril(good), [[2, 0], [1, 2]], rtol=4 * EPS)
    assert newton._cholesky(np.array([[1.0, 0.0], [1.0, 1.0]]), 0.0) > 0
    assert newton._cholesky(np.array([[1.0, 0.0], [1.0, 1.0]]), 1e-8) == 0


@seeds
def test_svec(seed: int) -> None:
    c = Newton(seed)
    for n, b in enumerate(c.blocks):
        out = np.full(8, np.nan)
        q = newton._svec(c.a[n], c.ranks[b], out)
        assert q == c.offsets[b + 1] - c.offsets[b]
        np.testing.assert_allclose(out[:q], c.phi[n, c.offsets[b] : c.offsets[b + 1]], rtol=RTOL)
        assert np.isnan(out[q:]).all()
    np.testing.assert_allclose(c.phi @ c.phi.T, c.hessian, rtol=RTOL, atol=RTOL)


@seeds
def test_add_square_and_add_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, v, y = rng.normal(size=(4, 4)), rng.normal(size=4), rng.normal(size=3)
    got = m.copy()
    newton._add_square(got, -0.7, v)
    np.testing.assert_allclose(np.tril(got), np.tril(m - 0.7 * np.outer(v, v)), rtol=RTOL, atol=RTOL)
    np.testing.assert_array_equal(np.triu(got, 1), np.triu(m, 1))
    got = m[:, :3].copy()
    newton._add_product(got, 0.4, v, y)
    np.testing.assert_allclose(got, m[:, :3] + 0.4 * np.outer(v, y), rtol=RTOL, atol=RTOL)


# -------------------------------------------------------------------------------------------- two systems


@seeds
@sizes
def test_group_system(seed: int, size: dict) -> None:
    c = Newton(seed, **size)
    system, factor, schur = c.group_system()
    matrix = c.hessian + np.diag(1 / c.w)
    inverse = np.linalg.inv(matrix)
    rounding = RTOL * np.linalg.cond(matrix)
    np.testing.assert_allclose(
        schur, c.sums @ inverse @ c.sums.T, rtol=0, atol=rounding * np.abs(schur).max()
    )
    for b in range(len(c.ranks)):
        rows = system.by_block[system.block_starts[b] : system.block_starts[b + 1]]
        assert np.all(c.blocks[rows] == b)
        lower = np.tril(factor[b, : len(rows), : len(rows)])
        part = inverse[np.ix_(rows, rows)]
        np.testing.assert_allclose(lower.T @ lower, part, rtol=0, atol=rounding * np.abs(part).max())
    r = c.rng.normal(size=len(c.z))
    t = newton._block_solve(factor, system.by_block, system.block_starts, r)
    np.testing.assert_allclose(t, inverse @ r, rtol=0, atol=rounding * np.abs(t).max())


@seeds
@sizes
@pytest.mark.parametrize("orders", [0.0, 4.0])
def test_information_system(seed: int, size: dict, orders: float) -> None:
    """I + Phi' W~ Phi, whichever block the pivot lies in; ties have the first pivot."""
    c = Newton(seed, orders=orders, **size)
    total, pivot, matrix = c.information_system()
    np.testing.assert_allclose(total, c.sums @ c.w, rtol=RTOL)
    expected_pivot = [np.flatnonzero(c.groups == i)[np.argmax(c.w[c.groups == i])] for i in range(len(total))]
    np.testing.assert_array_equal(pivot, expected_pivot)
    expected = np.eye(len(matrix)) + c.phi.T @ c.centred @ c.phi
    np.testing.assert_allclose(np.tril(matrix), np.tril(expected), rtol=0, atol=RTOL * np.abs(expected).max())


def test_information_system_has_met_both_block_orders() -> None:
    """The cases above are worth something: candidates in the pivot's block, before it and after it."""
    seen = set()
    for seed in range(5):
        for size in SIZES:
            c = Newton(seed, **size)
            _, pivot, _ = c.information_system()
            seen |= set(np.sign(c.blocks - c.blocks[pivot][c.groups]).tolist())
    assert seen == {-1, 0, 1}


@seeds
@sizes
def test_centred(seed: int, size: dict) -> None:
    c = Newton(seed, **size)
    total, pivot, _ = c.information_system()
    r, y = c.rng.normal(size=len(c.z)), np.zeros(c.offsets[-1])
    du, bound = np.full(len(r), np.nan), np.full(len(total), np.nan)
    rest = total, pivot, c.starts, c.blocks, c.ranks, c.offsets, r
    newton._centred(c.a, c.w, *rest, y, False, du, bound)
    scale = RTOL * max(1.0, np.abs(c.phi).max()) * c.w.sum()
    np.testing.assert_allclose(y, c.phi.T @ c.centred @ r, rtol=0, atol=scale)
    y = c.rng.normal(size=len(y))
    newton._centred(c.a, c.w, *rest, y, True, du, bound)
    v = r - c.phi @ y
    np.testing.assert_allclose(du, c.centred @ v, rtol=0, atol=scale * np.abs(v).max())
    np.testing.assert_allclose(
        bound, c.sums @ (c.w * v) / (c.sums @ c.w), rtol=0, atol=RTOL * np.abs(v).max()
    )


@pytest.mark.parametrize("seed", range(10))
@sizes
@pytest.mark.parametrize("orders", [0.0, 2.0, 6.0])
def test_both_systems_solve_equation_1(seed: int, size: dict, orders: float) -> None:
    c = Newton(seed, orders=orders, **size)
    r = c.rng.normal(size=len(c.z))
    du, dbound, condition = c.dense(r)
    for got_du, got_bound in (c.by_group(r), c.by_information(r)):
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
    c = Newton(seed, orders=20.0, **size)
    _, pivot, _ = c.information_system()
    others = np.setdiff1d(np.arange(len(c.w)), pivot)
    if support == "one":  # as at the end of a run: one candidate a group has a share
        c.w[others] = np.minimum(c.w[others], 1.0)
        c.w[pivot] = 1e10
    r = c.rng.normal(size=len(c.z))
    _, _, matrix = c.information_system()
    np.linalg.cholesky(np.tril(matrix) + np.tril(matrix, -1).T)
    du, dbound = c.by_information(r)
    np.testing.assert_allclose(c.sums @ du, 0, atol=len(du) * EPS * np.abs(du).max())
    residual = c.hessian @ du + du / c.w + dbound[c.groups] - r
    norm = np.linalg.norm(c.phi, axis=1)
    amplified = 1 + norm * np.sum((c.w * (norm + norm[pivot][c.groups]))[others])
    terms = np.abs(r).max() + (np.abs(c.phi) @ np.abs(c.phi.T @ du)).max()
    rounding = (len(c.w) + len(matrix)) * EPS * np.diff(c.starts).max() * terms * amplified
    assert np.all(np.abs(residual) <= rounding)
