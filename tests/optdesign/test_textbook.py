"""Textbook designs to six digits, from factors and a formula.

Each has its source, and numbers that are written down or solved for by another route: the candidates are a
grid that contains the optimal settings, and the design must put the known weights on them and none elsewhere.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import root, root_scalar

import optdesign as od

DIGITS = 5e-7
"""Half a unit of the sixth digit."""


class Textbook(NamedTuple):
    """A design to be found: the weight at the settings of some factors."""

    name: str
    problem: od.DesignProblem
    weight: Callable[..., float]
    """By the values of the factors, in their order; zero where the design has nothing."""


def grid(*points: float, low: float = -1.0, high: float = 1.0, steps: int = 20) -> list[float]:
    """Equal steps with some points among them."""
    return sorted({*points, *(low + (high - low) * k / steps for k in range(steps + 1))})


def polynomial(degree: int, *points: float) -> Textbook:
    """D-optimal for a polynomial: the ends and the extrema of the Legendre polynomial, in equal parts.

    Guest (1958), The spacing of observations in polynomial regression, Ann. Math. Statist. 29, 294-299.
    """
    model = "~ " + " + ".join(f"I(x**{k})" for k in range(1, degree + 1))
    c = od.candidates({"x": grid(*points)}, model=model)
    return Textbook(
        f"polynomial of degree {degree}",
        od.DesignProblem(c),
        lambda x: 1 / (degree + 1) if min(abs(x - p) for p in points) < 1e-12 else 0.0,
    )


def square() -> Textbook:
    """The full quadratic in two factors on the square: corners, midpoints of the edges, and the centre.

    Farrell, Kiefer, Walbran (1967), Optimum multivariate designs, Proc. Fifth Berkeley Symp. 1, 113-138. With
    u = E x1^2 = E x1^4 and v = E x1^2 x2^2 the determinant is u^2 v (u - v) (u + v - 2 u^2); Atkinson, Donev,
    Tobias (2007), Optimum Experimental Designs, with SAS, give 0.1458, 0.0802 and 0.0962.
    """

    def slopes(p: np.ndarray) -> list[float]:
        u, v = p
        rest = u + v - 2 * u**2
        return [2 / u + 1 / (u - v) + (1 - 4 * u) / rest, 1 / v - 1 / (u - v) + 1 / rest]

    u, v = root(slopes, [0.74, 0.58], tol=1e-14).x
    corner, edge = v / 4, (u - v) / 2
    centre = 1 - 4 * corner - 4 * edge
    assert np.round([corner, edge, centre], 4).tolist() == [0.1458, 0.0802, 0.0962]
    c = od.candidates({"x1": 5, "x2": 5}, model="~ (x1 + x2)**2 + I(x1**2) + I(x2**2)")

    def weight(x1: float, x2: float) -> float:
        if {abs(x1), abs(x2)} - {0.0, 1.0}:
            return 0.0
        return (centre, edge, corner)[int(abs(x1) + abs(x2))]

    return Textbook("quadratic in two factors", od.DesignProblem(c), weight)


def scheffe_linear() -> Textbook:
    """Linear mixtures: the pure components. Scheffe (1958), J. Roy. Statist. Soc. B 20, 344-360."""
    c = od.candidates(od.simplex_lattice(["a", "b", "c", "d"], 4), model="~ 0 + a + b + c + d")
    return Textbook("Scheffe linear", od.DesignProblem(c), lambda *x: 0.25 if max(x) == 1 else 0.0)


def scheffe_quadratic() -> Textbook:
    """Quadratic mixtures: the lattice of degree two, in equal parts.

    Kiefer (1961), Optimum designs in regression problems II, Ann. Math. Statist. 32, 298-325.
    """
    c = od.candidates(od.simplex_lattice(["a", "b", "c"], 12), model="~ 0 + a + b + c + a:b + a:c + b:c")
    return Textbook(
        "Scheffe quadratic", od.DesignProblem(c), lambda *x: 1 / 6 if set(x) <= {0.0, 0.5, 1.0} else 0.0
    )


def main_effects_and_interaction() -> Textbook:
    """A two-level factorial: equal parts of the corners.

    Hotelling (1944), Some improvements in weighing and other experimental techniques, Ann. Math. Statist. 15,
    297-306.
    """
    c = od.candidates({"temp": [20, 30, 40], "press": [1, 2, 3]}, model="~ temp * press", coded=True)
    return Textbook(
        "two-level factorial",
        od.DesignProblem(c, budgets=12),
        lambda t, p: 3.0 if t in (20, 40) and p in (1, 3) else 0.0,
    )


def logistic() -> Textbook:
    """Equal parts at the predictors +-c, tanh(c / 2) = 1 / c: responses of 0.176 and 0.824.

    Abdelbasit, Plackett (1983), Experimental design for binary data, J. Amer. Statist. Assoc. 78, 90-98;
    Ford, Torsney, Wu (1992), J. Roy. Statist. Soc. B 54, 569-583, give 1.5434.
    """
    c = root_scalar(lambda c: np.tanh(c / 2) - 1 / c, bracket=(1, 2), xtol=1e-15).root
    assert round(c, 4) == 1.5434
    ends = (4 - c) / 2, (4 + c) / 2
    doses = od.candidates({"dose": grid(*ends, low=0, high=5)}, model="~ dose")
    at = od.local(doses, [-4.0, 2.0], family="logistic")
    return Textbook("logistic", od.DesignProblem(at), lambda x: 0.5 if x in ends else 0.0)


def poisson() -> Textbook:
    """Equal parts at the largest predictor and at two below it.

    Minkin (1993), Experimental design for clonogenic assays in chemotherapy, J. Amer. Statist. Assoc. 88,
    410-420.
    """
    at = od.local(od.candidates({"dose": grid(low=0, high=4)}, model="~ dose"), [1.0, -1.0], family="poisson")
    return Textbook("poisson", od.DesignProblem(at), lambda x: 0.5 if x in (0, 2) else 0.0)


def blocks_of_given_sizes() -> Textbook:
    """A quadratic with an effect of the machine, each machine with its share of the runs: thirds in each.

    Cook, Thibodeau (1980), Marginally restricted D-optimal designs, J. Amer. Statist. Assoc. 75, 366-371:
    with additive effects of the restricted factor, the product of its margin and the design without it.
    """
    c = od.candidates({"x": grid(), "machine": ["A", "B"]}, model="~ machine + x + I(x**2)")
    problem = od.DesignProblem(c, groups="machine", budgets={"A": 12, "B": 8})
    return Textbook(
        "blocks of given sizes",
        problem,
        lambda x, m: {"A": 4.0, "B": 8 / 3}[m] if x in (-1, 0, 1) else 0.0,
    )


def separate_parameters() -> Textbook:
    """Two products with a line each, and one budget: the ends, each product by its number of parameters.

    Kiefer (1959), Optimum experimental designs, J. Roy. Statist. Soc. B 21, 272-319: the determinants
    multiply, so that budgets go by the numbers of parameters, which are equal here.
    """
    c = od.candidates({"x": grid(low=0, high=4), "product": ["u", "v"]}, model="~ x")
    return Textbook(
        "separate parameters",
        od.DesignProblem(c, parameter_blocks="product"),
        lambda x, _: 0.25 if x in (0, 4) else 0.0,
    )


TEXTBOOK = [
    polynomial(1, -1, 1),
    polynomial(2, -1, 0, 1),
    polynomial(3, -1, -np.sqrt(1 / 5), np.sqrt(1 / 5), 1),
    polynomial(4, -1, -np.sqrt(3 / 7), 0, np.sqrt(3 / 7), 1),
    square(),
    scheffe_linear(),
    scheffe_quadratic(),
    main_effects_and_interaction(),
    logistic(),
    poisson(),
    blocks_of_given_sizes(),
    separate_parameters(),
]


@pytest.mark.parametrize("known", TEXTBOOK, ids=[t.name for t in TEXTBOOK])
def test_textbook_design(known: Textbook) -> None:
    p = known.problem
    rows = zip(*(column.tolist() for column in p.settings.values()), strict=True)
    best = np.array([known.weight(*row) for row in rows])
    np.testing.assert_allclose(np.bincount(p.groups, weights=best), p.budgets, rtol=1e-12)
    assert od.certify(p, best).relative_gap < 1e-12
    r = od.solve(p, tol=1e-12)
    assert r.relative_gap <= 1e-12
    np.testing.assert_allclose(r.weights, best, rtol=0, atol=DIGITS)
