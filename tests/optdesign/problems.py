"""Instances with known optima, and a plain NumPy certificate.

Everything here is written from the mathematics alone, without the library's own linear algebra, so that
a test which compares the two compares two derivations.

Tolerances come from three places. *Gaps*: a certified design is at most its gap below the optimum.
*Rounding of the plain certificate*: forming an information matrix from N candidates and inverting it
perturbs its variances by at most about (N + 10 r) eps cond(U), where U is scaled to unit diagonal; that
bound is returned as ``Plain.error``. *Rounding of the library*: its own computation obeys the same bound,
so comparisons of the two allow twice ``Plain.error``.

Strategies and assertions that need no plain certificate are those of :mod:`optdesign.testing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

import optdesign as od
from optdesign import testing
from optdesign.algebra.reduced import Reduced
from optdesign.testing import assert_feasible as assert_feasible
from optdesign.testing import matrices as matrices
from optdesign.testing import problems as problems
from optdesign.testing import weighted as weighted

EPS = np.finfo(float).eps
METHODS = sorted({"auto", *od.METHODS})


class Plain(NamedTuple):
    """What weights prove, by plain NumPy."""

    log_det: float
    g_value: float
    rank: int
    gap: float
    variances: np.ndarray
    information: list[np.ndarray]
    """Per block, in an orthonormal basis of the span of its candidates."""
    error: float
    """Bound on the rounding of the gap; see the module's docstring."""


def basis(x: np.ndarray) -> np.ndarray:
    """Orthonormal basis of the row space, as columns; rows are normalised first."""
    norm = np.linalg.norm(x, axis=1)
    unit = x[norm > 0] / norm[norm > 0, None]
    if len(unit) == 0:
        return np.zeros((x.shape[1], 0))
    return np.linalg.svd(unit, full_matrices=False)[2][: np.linalg.matrix_rank(unit)].T


def plain(problem: od.DesignProblem, weights: np.ndarray) -> Plain:
    """The certificate of weights that keep the rank, from the definitions."""
    x = np.asarray(problem.candidates, dtype=float)
    w = np.asarray(weights, dtype=float)
    g = np.zeros(len(x))
    log_det, rank, worst, information = 0.0, 0, 1.0, []
    for b in range(problem.n_parameter_blocks):
        rows = np.flatnonzero(problem.parameter_blocks == b)
        q = basis(x[rows])
        y = x[rows] @ q
        u = (y.T * w[rows]) @ y
        information.append(u)
        if q.shape[1] == 0:
            continue
        rank += q.shape[1]
        scale = 1 / np.sqrt(np.diag(u))
        scaled = u * np.outer(scale, scale)
        log_det += np.linalg.slogdet(scaled)[1] - 2 * np.sum(np.log(scale))
        g[rows] = np.sum((y * scale) * np.linalg.solve(scaled, (y * scale).T).T, axis=1)
        worst = max(worst, np.linalg.cond(scaled))
    largest = np.array([g[problem.groups == i].max() for i in range(problem.n_groups)])
    g_value = float(problem.budgets @ largest)
    error = g_value * (len(x) + 10 * problem.dim) * EPS * worst
    return Plain(log_det, g_value, rank, g_value - rank, g, information, error)


def exact_gap(problem: od.DesignProblem, weights: np.ndarray) -> float:
    """G - D in rational arithmetic on the very floats given: no rounding at all before the last step.

    A linear map of a block changes no variance, so a block may be restricted to columns that carry its
    whole rank. The rank is the problem's: rounded data that are meant to be collinear never quite are.
    """
    total, rank = Fraction(0), 0
    g: dict[int, Fraction] = {}
    for b in range(problem.n_parameter_blocks):
        rows = [int(n) for n in np.flatnonzero(problem.parameter_blocks == b)]
        x = [[Fraction(float(v)) for v in problem.candidates[n]] for n in rows]
        columns = _independent_columns(x, int(problem.ranks[b]))
        rank += len(columns)
        y = [[row[j] for j in columns] for row in x]
        w = [Fraction(float(weights[n])) for n in rows]
        r = range(len(columns))
        u = [
            [sum((wn * yn[i] * yn[j] for wn, yn in zip(w, y, strict=True)), Fraction(0)) for j in r]
            for i in r
        ]
        inverse = _inverse(u)
        for n, yn in zip(rows, y, strict=True):
            g[n] = sum((yn[i] * inverse[i][j] * yn[j] for i in r for j in r), Fraction(0))
    for i in range(problem.n_groups):
        members = np.flatnonzero(problem.groups == i)
        total += Fraction(float(problem.budgets[i])) * max(g[int(n)] for n in members)
    return float(total - rank)


def _independent_columns(x: list[list[Fraction]], rank: int) -> list[int]:
    """Columns that carry the given rank, by elimination with full pivoting on rows of unit peak."""
    rows = [[v / max(map(abs, r)) for v in r] for r in x if any(r)]
    columns: list[int] = []
    for _ in range(rank):
        size, i, j = max((abs(r[j]), i, j) for i, r in enumerate(rows) for j in range(len(r)))
        assert size > 0
        pivot = rows.pop(i)
        rows = [[a - r[j] / pivot[j] * b for a, b in zip(r, pivot, strict=True)] for r in rows]
        columns.append(j)
    return columns


def _inverse(u: list[list[Fraction]]) -> list[list[Fraction]]:
    """Gauss-Jordan; the matrix is positive definite, so no pivoting is needed."""
    r = len(u)
    a = [[*u[i], *(Fraction(int(i == j)) for j in range(r))] for i in range(r)]
    for i in range(r):
        a[i] = [v / a[i][i] for v in a[i]]
        for k in range(r):
            if k != i and a[k][i]:
                a[k] = [v - a[k][i] * t for v, t in zip(a[k], a[i], strict=True)]
    return [row[r:] for row in a]


def eigenvalue_interval(gap: float) -> tuple[float, float]:
    """The two roots of t - 1 - log t = gap: where eigenvalues relative to the optimum may lie."""
    if gap <= 0:
        return 1.0, 1.0

    def excess(s: float) -> float:
        return np.expm1(s) - s - gap

    return float(np.exp(brentq(excess, -1 - gap, 0))), float(np.exp(brentq(excess, 0, np.log(2 * (1 + gap)))))


def relative_eigenvalues(a: Plain, b: Plain) -> np.ndarray:
    """All eigenvalues of the information of one design relative to another's (same problem)."""
    parts = [
        np.linalg.eigvals(np.linalg.solve(v, u)).real
        for u, v in zip(a.information, b.information, strict=True)
    ]
    return np.concatenate(parts)


def ranks_of(problem: od.DesignProblem, counts: np.ndarray) -> list[int]:
    """Return the ranks of the candidates that have runs, by parameter block, from the definition."""
    blocks = range(problem.n_parameter_blocks)
    kept = (problem.candidates[(problem.parameter_blocks == b) & (counts > 0)] for b in blocks)
    return [int(np.linalg.matrix_rank(x)) if len(x) else 0 for x in kept]


def rank_of(problem: od.DesignProblem, counts: np.ndarray) -> int:
    """Return the rank of the candidates that have runs."""
    return sum(ranks_of(problem, counts))


def quadratic(levels: np.ndarray | Sequence[float], factors: int) -> np.ndarray:
    """Return the rows of the full quadratic model on a grid of levels."""
    grid = np.array(list(product(levels, repeat=factors)))
    pairs = combinations_with_replacement(range(factors), 2)
    return np.column_stack([np.ones(len(grid)), grid, *(grid[:, i] * grid[:, j] for i, j in pairs)])


def weights_of(reduced: Reduced, u: np.ndarray, problem: od.DesignProblem) -> np.ndarray:
    """Weights of the candidates from the shares of the rows of a reduced problem, one row at a time."""
    w = np.zeros(problem.n_candidates)
    for row, share in enumerate(u):
        n = reduced.order[row]
        w[n] = share * problem.budgets[problem.groups[n]]
    return w


def assert_bounds(c: od.Certificate, p: Plain) -> None:
    """The gap is no less than the true one, and exceeds it by no more than what it says of rounding."""
    assert -2 * p.error <= c.gap - max(0.0, p.gap) <= 2 * p.error + c.rounding
    assert abs(c.g_value - c.rank - c.gap) <= 2 * EPS * c.g_value


def assert_certified(result: od.DesignResult, tol: float) -> Plain:
    """Certified by exact arithmetic and, where conditions are moderate, by plain NumPy as well."""
    testing.assert_certified(result, tol)
    assert result.status is od.Status.CONVERGED, str(result)
    p = plain(result.problem, result.weights)
    assert p.rank == result.rank
    assert p.gap <= tol * p.rank + 2 * p.error
    assert_bounds(result.certificate, p)
    assert abs(p.log_det - result.log_det) <= 2 * p.error + 10 * EPS * abs(p.log_det)
    return p


# ---------------------------------------------------------------------------------------- known optima


class Known(NamedTuple):
    """A problem whose optimum can be written down."""

    name: str
    problem: od.DesignProblem
    weights: np.ndarray
    """One optimal design."""


def orthonormal(d: int, budget: float = 1.0) -> Known:
    """Each vector carries a dimension of its own; by symmetry they share the budget."""
    q = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
    return Known(f"orthonormal-{d}", od.DesignProblem(q, budgets=budget), np.full(d, budget / d))


def identical(n: int, blocks: int) -> Known:
    """Copies of one vector in every block: D = blocks, and blocks share the budget equally."""
    x = np.tile([3.0, -1.0, 2.0], (n * blocks, 1))
    p = od.DesignProblem(x, parameter_blocks=np.arange(n * blocks) % blocks)
    return Known(f"identical-{n}x{blocks}", p, np.full(n * blocks, 1 / (n * blocks)))


def polygon(n: int, blocks: int = 1) -> Known:
    """Regular n-gons (3: the Mercedes-Benz frame), a tight frame in every block: uniform is optimal."""
    angle = 2 * np.pi * np.arange(n) / n
    frame = np.column_stack([np.cos(angle), np.sin(angle)])
    p = od.DesignProblem(np.tile(frame, (blocks, 1)), parameter_blocks=np.repeat(np.arange(blocks), n))
    return Known(f"polygon-{n}x{blocks}", p, np.full(n * blocks, 1 / (n * blocks)))


def tight_frame_groups(n: int, clients: int) -> Known:
    """Every client holds the same tight frame in one shared block, with a budget of its own."""
    angle = np.pi * np.arange(n) / n
    frame = np.column_stack([np.cos(angle), np.sin(angle)])
    budgets = 1.0 + np.arange(clients)
    p = od.DesignProblem(
        np.tile(frame, (clients, 1)), groups=np.repeat(np.arange(clients), n), budgets=budgets
    )
    return Known(f"tight-frame-groups-{n}x{clients}", p, np.repeat(budgets / n, n))


def polynomial(degree: int) -> Known:
    """Regression on [-1, 1]: equal weights on the roots of (1 - x^2) P_n'(x), here among a grid."""
    legendre = np.polynomial.legendre.Legendre.basis(degree).deriv()
    points = np.concatenate([[-1.0], np.sort(legendre.roots().real), [1.0]])
    x = np.concatenate([points, np.linspace(-1, 1, 41)[1:-1]])
    w = np.zeros(len(x))
    w[: degree + 1] = 1 / (degree + 1)
    return Known(f"polynomial-{degree}", od.DesignProblem(np.vander(x, degree + 1)), w)


def one_candidate_each() -> Known:
    """Nothing to choose: every group has a single candidate and gives it the whole budget."""
    x = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0], [5.0, 5.0]])
    budgets = np.array([0.5, 2.0, 3.0, 1e-3])
    p = od.DesignProblem(x, groups=[0, 1, 2, 3], parameter_blocks=[0, 0, 0, 1], budgets=budgets)
    return Known("one-candidate-each", p, budgets)


def two_clients_two_arms() -> Known:
    """d = 1, disjoint: F = log(p + f2 q) + log((1-p) + f2 (1-q)) depends on the total per arm only.

    Each arm should get half of all the budget, 1 + f2 = 3: p = q = 1/2 is one way.
    """
    p = od.DesignProblem.disjoint(np.array([[[2.0], [3.0]], [[2.0], [3.0]]]), budgets=[1.0, 2.0])
    return Known("two-clients-two-arms", p, np.array([0.5, 0.5, 1.0, 1.0]))


def saturated_group() -> Known:
    """d = 1, two arms; client 1 has arm 0 only, with budget 3, so client 0 (budget 1) fills arm 1 alone.

    F = log(w_00 + 3) + log(w_01): the derivative at w_00 = 0 is 1/3 < 1 = 1 / w_01, so w_01 = 1.
    """
    p = od.DesignProblem(np.ones((3, 1)), groups=[0, 0, 1], parameter_blocks=[0, 1, 0], budgets=[1.0, 3.0])
    return Known("saturated-group", p, np.array([0.0, 1.0, 3.0]))


def water_level() -> Known:
    """As before with budgets 2 and 1: the level is (2 + 1) / 2, so w_00 = 1/2 and w_01 = 3/2."""
    p = od.DesignProblem(np.ones((3, 1)), groups=[0, 0, 1], parameter_blocks=[0, 1, 0], budgets=[2.0, 1.0])
    return Known("water-level", p, np.array([0.5, 1.5, 1.0]))


def stratified_line() -> Known:
    """Two strata, one block, basis vectors: stratum 0 has e1 and e2, stratum 1 only e1, budgets 3 and 1.

    F = log(a + 1) + log(3 - a) is largest at a = 1.
    """
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    p = od.DesignProblem(x, groups=[0, 0, 1], budgets=[3.0, 1.0])
    return Known("stratified-line", p, np.array([1.0, 2.0, 1.0]))


def zero_group() -> Known:
    """A group of zero vectors informs nothing; any weights do there, and the rest is as without it."""
    x = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    p = od.DesignProblem(x, groups=[0, 0, 1, 1], budgets=[1.0, 7.0])
    return Known("zero-group", p, np.array([0.5, 0.5, 3.5, 3.5]))


KNOWN = [
    *(orthonormal(d) for d in (1, 2, 5)),
    orthonormal(3, 1e-6),
    identical(1, 1),
    identical(4, 3),
    *(polygon(n) for n in (3, 4, 5, 8)),
    polygon(3, 3),
    tight_frame_groups(3, 4),
    *(polynomial(n) for n in (1, 2, 3, 5, 7)),
    one_candidate_each(),
    two_clients_two_arms(),
    saturated_group(),
    water_level(),
    stratified_line(),
    zero_group(),
]


# ------------------------------------------------------------------------------------------- instances


def random_problem(seed: int, kind: str, *, deficient: bool = False) -> od.DesignProblem:
    """A small Gaussian instance of one of the kinds of problem, with unequal budgets."""
    rng = np.random.default_rng(seed)
    m, k, d = int(rng.integers(2, 7)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
    x = rng.normal(size=(m, k, d))
    if deficient:
        x = x[..., : max(1, d - 1)] @ rng.normal(size=(max(1, d - 1), d + 1))
    budgets = rng.uniform(0.3, 3.0, size=m)
    active = rng.random((m, k)) < 0.8
    active[np.arange(m), rng.integers(0, k, size=m)] = True
    if kind == "disjoint":
        return od.DesignProblem.disjoint(x, active, budgets)
    if kind == "shared":
        return od.DesignProblem.shared(x, active, budgets)
    if kind == "classical":
        return od.DesignProblem(x.reshape(m * k, -1))
    assert kind == "clusters"
    groups = np.repeat(np.arange(m), k)
    return od.DesignProblem(x.reshape(m * k, -1), groups, rng.integers(0, 2, size=m * k), budgets)


KINDS = ["disjoint", "shared", "classical", "clusters"]


def same_family(clients: int = 100, arms: int = 10, dim: int = 3, seed: int = 0) -> od.DesignProblem:
    """One vector per client for all its arms, slightly perturbed: slow for coordinate ascent."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(clients, 1, dim)) + 1e-3 * rng.normal(size=(clients, arms, dim))
    return od.DesignProblem.disjoint(x)


def ugly(seed: int, kind: str) -> od.DesignProblem:
    """Row norms and budgets from 1e-6 to 1e6, near-collinear candidates, duplicates and zero vectors."""
    rng = np.random.default_rng(seed)
    m, k, d = int(rng.integers(2, 6)), int(rng.integers(1, 4)), int(rng.integers(1, 4))
    x = rng.normal(size=(m, k, d))
    x[m // 2] = x[0] + 1e-5 * rng.normal(size=(k, d))
    x[m - 1, 0] = x[0, 0]
    x *= 10.0 ** rng.uniform(-6, 6, size=(m, k, 1))
    if seed % 3 == 0:
        x[0, -1] = 0.0
    budgets = 10.0 ** rng.uniform(-6, 6, size=m)
    return getattr(od.DesignProblem, kind)(x, budgets=budgets)
