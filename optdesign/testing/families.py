"""Problems whose numbers come from a seed: dense ones for speed, and families on which naive code breaks.

Hypothesis draws the structure of a problem, and a seed for the numbers. The structure shrinks, and the
numbers do not. Use these after :func:`optdesign.testing.problems` has found nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

from optdesign.problem.problem import DesignProblem
from optdesign.testing.options import chosen

SEEDS = st.integers(0, 2**32 - 1)


@st.composite
def random_problems(
    draw: st.DrawFn, *, max_candidates: int = 40, max_dim: int = 5, max_blocks: int = 5, budgets: float = 3.0
) -> DesignProblem:
    """Return a strategy of problems of moderate size with irregular data; the numbers come from a seed.

    Rows are Gaussian, in any groups and parameter blocks. Some problems have ties, copies, a zero row, exact
    dependence, or norms over 6 orders of magnitude.

    Parameters
    ----------
    max_candidates : int, default 40
        Largest number of candidates.
    max_dim : int, default 5
        Largest length of a candidate.
    max_blocks : int, default 5
        Largest number of parameter blocks.
    budgets : float, default 3.0
        Orders of magnitude of the budgets above or below 1.

    Returns
    -------
    hypothesis strategy of DesignProblem
        The strategy.

    See Also
    --------
    optdesign.testing.problems : Draw small problems with exact numbers.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> smallest = settings(phases=[Phase.generate, Phase.shrink])
    >>> find(random_problems(), lambda p: True, settings=smallest).n_candidates
    1
    """
    n, d = draw(st.integers(1, max_candidates)), draw(st.integers(1, max_dim))
    rng = np.random.default_rng(draw(SEEDS))
    x = rng.normal(size=(n, d))
    rank = draw(st.integers(1, d))
    if rank < d:  # small integers, so that the rank is exact
        x = rng.integers(-3, 4, size=(n, rank)) @ rng.integers(-3, 4, size=(rank, d)).astype(float)
    elif draw(st.booleans()):  # ties
        x = np.round(2 * x)
    groups = np.unique(rng.integers(0, draw(st.integers(1, n)), size=n), return_inverse=True)[1].reshape(-1)
    blocks = rng.integers(0, draw(st.integers(1, max_blocks)), size=n)
    if draw(st.booleans()):  # duplicates, some in the same group
        copied = rng.integers(0, n, size=n // 2)
        x[: n // 2], blocks[: n // 2] = x[copied], blocks[copied]
    if draw(st.booleans()):  # norms over several orders; powers of two keep ranks exact
        x *= 2.0 ** rng.integers(-10, 11, size=(n, 1))
    if draw(st.booleans()):
        x[rng.integers(0, n)] = 0.0
    if not x.any():
        x[0, 0] = 1.0
    span = draw(st.sampled_from([0.0, budgets / 3, budgets]))
    sizes = 10.0 ** rng.uniform(-span, span, size=int(groups.max()) + 1)
    return draw(st.builds(DesignProblem, *(st.just(a.tolist()) for a in (x, groups, blocks, sizes))))


def ugly_problems(*families: str) -> st.SearchStrategy[DesignProblem]:
    """Return a strategy of problems of the given families.

    Some of them are beyond double precision: a rank can be a close decision (see ``problem.rank_note``), and
    a solver may stop before its tolerance.

    Parameters
    ----------
    *families : str
        Names in ``FAMILIES``. Default: all.

    Returns
    -------
    hypothesis strategy of DesignProblem
        The strategy.

    See Also
    --------
    optdesign.testing.ugly_problem : Return one problem of a family.

    Examples
    --------
    >>> from hypothesis import Phase, find, settings
    >>> one = settings(phases=[Phase.generate], max_examples=1)
    >>> find(ugly_problems("hilbert"), lambda p: True, settings=one).n_groups
    1
    """
    names = chosen("families", families or None, tuple(FAMILIES))
    return st.builds(ugly_problem, st.sampled_from(names), SEEDS)


def ugly_problem(family: str, seed: int) -> DesignProblem:
    """Return one problem of a family.

    Parameters
    ----------
    family : str
        Name in ``FAMILIES``.
    seed : int
        Seed of the numbers.

    Returns
    -------
    DesignProblem
        The problem.

    See Also
    --------
    optdesign.testing.ugly_problems : Draw problems of families.

    Examples
    --------
    >>> ugly_problem("hilbert", 0).candidates[0, :3].tolist()
    [1.0, 0.5, 0.3333333333333333]
    """
    (name,) = chosen("family", family, tuple(FAMILIES))
    return FAMILIES[name](np.random.default_rng(seed))


def labelled(
    x: np.ndarray, rng: np.random.Generator, budgets: tuple[float, float] = (0.0, 0.0)
) -> DesignProblem:
    """Candidates in a structure drawn at random: classical, strata, several blocks."""
    n = len(x)
    groups, blocks = min(n, int(rng.integers(1, 4))), int(rng.integers(1, 3))
    labels = np.sort(rng.permutation(np.arange(n) % groups)), rng.integers(0, blocks, size=n)
    if rng.random() < 0.4:
        return DesignProblem(x)
    return DesignProblem(x, *labels, 10.0 ** rng.uniform(*budgets, size=groups))


def gaussian(rng: np.random.Generator) -> np.ndarray:
    """Return a few Gaussian rows."""
    d = int(rng.integers(2, 5))
    return rng.normal(size=(int(rng.integers(d + 1, 30)), d))


def clustered_pool(rng: np.random.Generator) -> DesignProblem:
    """Nearly all rows alike, a few elsewhere that a sample misses."""
    d, n = int(rng.integers(2, 5)), int(rng.integers(80, 200))
    x = 1 + 10.0 ** rng.uniform(-9, -3) * rng.normal(size=(n, d))
    few = rng.choice(n, size=d + 1, replace=False)
    x[few] = rng.uniform(size=(d + 1, d))
    x[:, 0] = 1.0
    return DesignProblem(x, groups=np.arange(n) % int(rng.integers(1, 3)))


def plane_with_small_rows(rng: np.random.Generator) -> DesignProblem:
    """Integer rows in a plane, exactly, and rows outside that are smaller by many orders of magnitude."""
    d = int(rng.integers(2, 5))
    basis = rng.integers(-9, 10, size=(d - 1, d)).astype(float)
    plane = rng.integers(-9, 10, size=(int(rng.integers(3, 12)), d - 1)) @ basis
    small = 10.0 ** rng.uniform(-30, -8) * rng.normal(size=(int(rng.integers(1, 4)), d))
    return labelled(np.vstack([plane, small]), rng)


def tiny_budget_carrier(rng: np.random.Generator) -> DesignProblem:
    """Return a direction that only a group of a tiny budget informs."""
    d = int(rng.integers(2, 5))
    basis = rng.normal(size=(d - 1, d)) if rng.random() < 0.5 else rng.integers(-9, 10, size=(d - 1, d))
    plane = rng.integers(-9, 10, size=(int(rng.integers(4, 12)), d - 1)) @ basis
    carriers = rng.normal(size=(int(rng.integers(1, 4)), d))
    groups = np.repeat([0, 1], [len(plane), len(carriers)])
    budgets = [1.0, 10.0 ** rng.uniform(-10, -3)]
    return DesignProblem(np.vstack([plane, carriers]), groups, budgets=budgets)


def near_parallel(rng: np.random.Generator) -> DesignProblem:
    """Rows that agree to four digits or to thirteen, of very different sizes."""
    d = int(rng.integers(2, 5))
    x = rng.normal(size=(1, d)) + 10.0 ** rng.uniform(-13, -4) * rng.normal(
        size=(int(rng.integers(d, 14)), d)
    )
    return labelled(x * 10.0 ** rng.uniform(-6, 6, size=(len(x), 1)), rng)


def vandermonde(rng: np.random.Generator) -> DesignProblem:
    """Powers of points, also far from zero: columns that hardly differ."""
    low = rng.choice([-1.0, 0.0, 1.0, 10.0, 1990.0])
    points = np.sort(rng.uniform(low, low + rng.choice([1.0, 2.0, 30.0]), size=int(rng.integers(13, 20))))
    return labelled(np.vander(points, int(rng.integers(2, 13))), rng)


def hilbert(rng: np.random.Generator) -> DesignProblem:
    """Rows of the Hilbert matrix."""
    d = int(rng.integers(2, 13))
    i, j = np.meshgrid(np.arange(d + int(rng.integers(0, 5))), np.arange(d), indexing="ij")
    return labelled(1.0 / (i + j + 1.0), rng)


def column_scales(rng: np.random.Generator) -> DesignProblem:
    """Columns in units from 1e-50 to 1e50."""
    x = gaussian(rng)
    return labelled(x * 10.0 ** rng.uniform(-50, 50, size=x.shape[1]), rng)


def row_scales(rng: np.random.Generator) -> DesignProblem:
    """Rows and columns from 1e-20 to 1e20."""
    x = gaussian(rng)
    rows = 10.0 ** rng.uniform(-20, 20, size=(len(x), 1))
    columns = 10.0 ** rng.uniform(-20, 20, size=x.shape[1])
    return labelled(x * rows * columns, rng)


def budgets(rng: np.random.Generator) -> DesignProblem:
    """Budgets from 1e-10 to 1e10."""
    return labelled(gaussian(rng), rng, budgets=(-10.0, 10.0))


def single_precision(rng: np.random.Generator) -> DesignProblem:
    """Numbers given in single precision."""
    x = gaussian(rng) if rng.random() < 0.5 else near_parallel(rng).candidates
    return DesignProblem(x.astype(np.float32))


def rounded_dependence(rng: np.random.Generator) -> DesignProblem:
    """Columns that are combinations of others, up to rounding, or exactly."""
    x = gaussian(rng)
    x = np.round(8 * x) if rng.random() < 0.5 else x
    return labelled(np.column_stack([x, x @ rng.integers(-3, 4, size=(x.shape[1], 2))]), rng)


def decay(rng: np.random.Generator) -> DesignProblem:
    """Exponentials of different rates, as of compartments: entries of a column differ by up to 1e50."""
    times = np.round(rng.uniform(0, 60, size=int(rng.integers(3, 14))), 1)
    rates = np.round(10.0 ** rng.uniform(-2, 0.3, size=int(rng.integers(1, 4))), 2)
    x = np.exp(-np.outer(times, rates))
    derivatives = times[:, None] * x[:, : int(rng.integers(0, 3))]
    return labelled(np.column_stack([x, derivatives]), rng)


FAMILIES: dict[str, Callable[[np.random.Generator], DesignProblem]] = {
    f.__name__: f
    for f in (
        clustered_pool, plane_with_small_rows, tiny_budget_carrier, near_parallel, vandermonde, hilbert,
        column_scales, row_scales, budgets, single_precision, rounded_dependence, decay,
    )
}  # fmt: skip
"""Ugly problems by name, each a function of a generator of random numbers."""
