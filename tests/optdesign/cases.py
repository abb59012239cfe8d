"""Random instances for the tests of kernels, with their matrices by plain NumPy.

Unless a comment says otherwise, rounding is bounded by the number of additions times eps times the size of
the terms; sizes here are below 10 and lengths below 40, conditions below 1e3, so RTOL = 1e-10 covers every
one of them with the same margin.
"""

import numpy as np
import pytest

RTOL = 1e-10


class Case:
    """Coordinates of a random instance, split into groups and blocks, with shares of full rank."""

    def __init__(self, seed: int, blocks: int = 3, groups: int = 4, width: int = 3, n: int = 24) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.ranks = np.array([width - b % width for b in range(blocks)])
        self.blocks = rng.integers(0, blocks, size=n)
        self.blocks[: 2 * blocks * width] = np.arange(2 * blocks * width) % blocks
        self.z = rng.normal(size=(n, width))
        for i in range(n):
            self.z[i, self.ranks[self.blocks[i]] :] = 0.0
        self.starts = np.linspace(0, n, groups + 1).astype(np.int64)
        self.u = rng.exponential(size=n) + 0.05
        for lo, hi in zip(self.starts, self.starts[1:], strict=False):
            self.u[lo:hi] /= self.u[lo:hi].sum()

    def matrices(self) -> np.ndarray:
        return np.array([(self.z[r].T * self.u[r]) @ self.z[r] for r in self.rows()])

    def rows(self) -> list[np.ndarray]:
        return [np.flatnonzero(self.blocks == b) for b in range(len(self.ranks))]

    def inverses(self) -> np.ndarray:
        out = np.zeros((len(self.ranks), self.z.shape[1], self.z.shape[1]))
        for b, (m, r) in enumerate(zip(self.matrices(), self.ranks, strict=True)):
            out[b, :r, :r] = np.linalg.inv(m[:r, :r])
        return out

    def objective(self, u: np.ndarray) -> float:
        total = 0.0
        for r, rows in zip(self.ranks, self.rows(), strict=True):
            z = self.z[rows, :r]
            total += np.linalg.slogdet((z.T * u[rows]) @ z)[1]
        return total

    def variances(self) -> np.ndarray:
        return np.einsum("ni,nij,nj->n", self.z, self.inverses()[self.blocks], self.z)

    def buffers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Scratch space as a kernel may find it: memory that was never written can hold anything."""
        n = len(self.z)
        return np.full(n, np.nan), np.full(n, np.nan), np.full((n, self.z.shape[1]), np.nan)


class Whitened(Case):
    """A case whitened at its shares, with every matrix of a Newton system written out."""

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
        """du, dlambda and the condition of the matrix, equilibrated: du is in units of sqrt(w)."""
        m, root = len(self.sums), np.sqrt(self.w)
        h = root[:, None] * self.hessian * root + np.eye(len(root))
        a = self.sums * root
        scale = np.linalg.norm(a, axis=1, keepdims=True)
        kkt = np.block([[h, (a / scale).T], [a / scale, np.zeros((m, m))]])
        x = np.linalg.solve(kkt, np.concatenate([root * r, np.zeros(m)]))
        return x[: len(root)] * root, x[len(root) :] / scale[:, 0], float(np.linalg.cond(kkt))


seeds = pytest.mark.parametrize("seed", range(5))
