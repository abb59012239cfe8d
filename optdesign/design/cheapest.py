"""The cheapest design with the information and budgets of a given one: a linear program.

    minimise c'w   subject to   sum_n w_n phi_n = t,   sum_{n in i} w_n = f_i  for every group i,   w >= 0,

with phi_n the entries of y_n y_n' in coordinates in which the information t is the identity. It is solved by
column generation: the dual simplex method of HiGHS solves it for some candidates, and the duals price all
others.

*Units.* Let s_n = 1 / f_i + norm(phi_n). All feasible w have sum_n s_n w_n = M + D, because norm(phi_n) =
norm(y_n)^2 and sum_n w_n norm(y_n)^2 = D. Costs are counted from the least cost of a group, which changes the
cost of all designs alike, and in units of c'w / (M + D). With the variables s_n w_n, the tolerances of HiGHS
are then relative to the cost of the design. If the cost falls, the program is solved again in the new unit. A
large cost of some candidate affects neither unit nor tolerance: costs above a ceiling are replaced by the
ceiling, which is exact if their candidates have no weight, and otherwise the ceiling is raised.

*Bound.* Let r_n = c_n - phi_n'y - z_i be the reduced costs for any duals y and z, and v the largest of all
-r_n / s_n, or 0. Then no feasible design costs less than t'y + f'z - v (M + D). Round-off in phi changes the
information of a feasible design by delta at most, and that of the given design as well. So 2 delta norm(y) is
subtracted, with an allowance for the sums. The distance of the cost from this bound is the returned gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack, identity, vstack

from optdesign.design.vertices import Columns, columns_of, corrected, heaviest_first, thin_out
from optdesign.numbers.roundoff import gamma
from optdesign.problem.coordinates import Rows
from optdesign.problem.problem import DesignProblem


class Tolerances(NamedTuple):
    """Tolerances of the linear program."""

    highs: float = 1e-10
    """Primal and dual tolerance of HiGHS, the smallest that it accepts."""
    gap: float = 1e-9
    """Largest gap that needs no remark."""


TOLERANCES = Tolerances()


LARGEST_COST = 1e90
"""Largest cost of a candidate in units of the largest cost of the given design. Budgets are at most 1e60, so
squares of costs of designs are in the range of floating point."""


class Attempt(NamedTuple):
    """How the linear program is presented to HiGHS."""

    floor: float
    """Equations are divided by their effect relative to the weights, if it is above this floor."""
    slack: float
    """HiGHS may miss the equations by this much; the correction of round-off restores them."""


ATTEMPTS = Attempt(1.0, 0.0), Attempt(1e-11, 0.0), Attempt(1.0, 1e-10)
"""The second and third attempt are made until the gap is small enough. The second is for ill-conditioned
equations, the third for equations that contradict each other by round-off."""


class Cheapest(NamedTuple):
    """A design as candidates and their weights, and a bound on how much more than the least it costs."""

    rows: np.ndarray
    weights: np.ndarray
    gap: float
    """Relative to sum_n |c_n| w_n."""


class Given(NamedTuple):
    """The design whose information and budgets are kept."""

    problem: DesignProblem
    white: Rows
    """Coordinates in which its information is the identity."""
    round_off: float
    """Bound on the change of the information by the round-off of the coordinates."""
    support: np.ndarray
    weights: np.ndarray


def cheapest(given: Given, cost: np.ndarray) -> Cheapest:
    """Return the cheapest design with the information and budgets of a given one.

    The given weights are returned if no design is found that costs as little, up to round-off.
    """
    problem, white, _, support, weights = given
    # If the given design costs nothing, only negative costs can lower its cost.
    top = np.abs(cost[support]).max() or max(0.0, -cost.min()) or np.abs(cost).max()
    with np.errstate(over="ignore"):  # other costs may be beyond the range of floating point in this unit
        in_unit = np.ldexp(cost, -np.frexp(top)[1])
    original, cost = cost, np.clip(in_unit, -LARGEST_COST, LARGEST_COST)
    floor = np.full(problem.n_groups, np.inf)
    np.minimum.at(floor, problem.groups, cost)
    excess = cost - floor[problem.groups]  # budgets are fixed, so this lowers the cost of all designs alike
    program = _Program(given, excess)
    thin = thin_out(problem, white, support, weights)
    rows, w = support[thin > 0], thin[thin > 0]
    best, value, bound = (support, weights), float(excess[support] @ weights), 0.0
    size = float(np.abs(cost[support]) @ weights)
    rounding = 1e-13  # differences of costs below this fraction of sum_n |c_n| w_n are round-off
    if excess[rows] @ w <= value + rounding * size:
        best, value = (rows, w), float(excess[rows] @ w)
    lower = 0.5  # the program is solved again if the cost falls below this fraction
    # The ratio of two ceilings of the costs, which is the first ceiling as well, and the last ceiling.
    factor, highest = 1e3, 1e12
    for attempt in ATTEMPTS:
        unit, ceiling = value / program.lengths, factor
        while unit > 0 and (found := program.solve(rows, w, unit, ceiling, attempt)) is not None:
            rows, w, below = found
            bound, used, now = max(bound, below), w > 0, float(excess[rows] @ w)
            if now <= value + rounding * size:
                best, value, size = (rows[used], w[used]), now, float(np.abs(cost[rows]) @ w)
            if ceiling < highest and np.any(program.costs(rows, unit)[used] > ceiling):
                ceiling *= factor
            elif rounding * size < now < lower * unit * program.lengths:
                unit = now / program.lengths
            else:
                break
        if value - bound <= TOLERANCES.gap * size:
            break
    if np.any(in_unit[best[0]] < -LARGEST_COST):  # the unit is now that of the largest cost in this design
        return cheapest(given._replace(support=best[0], weights=best[1]), original)
    distance = max(0.0, value - bound) if value > 0 else 0.0
    if distance > 0 and size == 0:
        distance = np.inf
    return Cheapest(*best, distance / max(size, np.finfo(float).tiny))


class _Program:
    """The linear program of the module's docstring, for costs that are not negative."""

    def __init__(self, given: Given, cost: np.ndarray) -> None:
        problem, white, round_off, support, weights = given
        self.problem, self.white, self.cost = problem, white, cost
        phi, groups = columns_of(problem, white, support)
        self.target = phi.T @ weights
        self.budgets = np.bincount(groups, weights, problem.n_groups)
        self.scale = np.empty(problem.n_candidates)
        """s_n of every candidate."""
        for rows in self._pieces():
            phi, groups = columns_of(problem, white, rows)
            self.scale[rows] = 1 / self.budgets[groups] + np.hypot.reduce(phi, axis=1)
        self.lengths = float(self.scale[support] @ weights)
        """sum_n s_n w_n = M + D."""
        terms = len(support) + len(self.target) + problem.n_groups
        self.allowance = 2.0 * (round_off + gamma(terms + 8) * self.lengths)
        """Error of the bound on the cost by round-off, relative to the norm of the duals."""

    def _pieces(self) -> Iterator[np.ndarray]:
        n = self.problem.n_candidates
        chunk = 1 << 14  # candidates that are priced at a time
        for start in range(0, n, chunk):
            yield np.arange(start, min(start + chunk, n))

    def costs(self, rows: np.ndarray | slice, unit: float) -> np.ndarray:
        """Return costs of the variables s_n w_n in some unit."""
        with np.errstate(over="ignore"):
            return self.cost[rows] / self.scale[rows] / unit

    def solve(
        self, rows: np.ndarray, weights: np.ndarray, unit: float, ceiling: float, attempt: Attempt
    ) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Return candidates, weights and a lower bound on the cost, starting with a feasible design.

        Costs above the ceiling are replaced by it, except in the bound, which holds for the costs themselves.
        Returned is None if HiGHS or the correction of round-off does not succeed.
        """
        costs = self.costs(slice(None), unit)
        batch = 2000  # most candidates that enter the linear program at a time
        while (
            found := self._restricted(rows, weights, np.minimum(costs[rows], ceiling), attempt)
        ) is not None:
            weights, dual = found
            price = self._prices(dual)
            worth = price - np.minimum(costs, ceiling)
            worth[rows] = -np.inf
            best = np.argsort(-worth)[:batch]
            entering = best[worth[best] > TOLERANCES.highs]
            if not len(entering):
                violation = max(0.0, float(np.max(price - costs)))
                value = float(dual @ np.concatenate([self.target, np.ones(len(self.budgets))]))
                error = self.allowance * float(np.linalg.norm(dual))
                return rows, weights, unit * (value - violation * self.lengths - error)
            before, rows = rows, np.union1d(rows, entering)
            known, weights = weights, np.zeros(len(rows))
            weights[np.searchsorted(rows, before)] = known
        return None

    def _restricted(
        self, rows: np.ndarray, weights: np.ndarray, costs: np.ndarray, attempt: Attempt
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return weights of some candidates that are optimal among them, and the duals."""
        columns = columns_of(self.problem, self.white, rows)
        phi, groups = columns
        costs = costs * self.scale[rows]
        m, n = len(self.budgets), len(rows)
        # Rows are combined so that they are orthonormal for changes relative to the weights, without the
        # heaviest candidates, which take the opposite changes.
        heaviest, others, at = heaviest_first(groups, weights)
        origin = np.zeros((m, phi.shape[1]))
        origin[groups[heaviest]] = phi[heaviest]
        q = phi.shape[1]
        relative = np.zeros((q, max(q, len(others))))
        relative[:, : len(others)] = weights[others] * (phi[others] - phi[at]).T
        left, size, _ = np.linalg.svd(relative, full_matrices=False)
        combine = left / np.where(size > attempt.floor, size, 1.0)
        moved = combine.T @ (phi - origin[groups]).T
        length = np.hypot(np.hypot.reduce(moved, axis=0), 1 / self.budgets[groups])
        moved = moved / length
        ignored = 1e-9  # entries of the equations that HiGHS ignores
        # HiGHS ignores smaller entries. Without them, too, the given design is feasible.
        moved = np.where(np.abs(moved) > ignored, moved, 0.0)
        sums = csr_array((1 / self.budgets[groups] / length, (groups, np.arange(n))), (m, n))
        equations = vstack([csr_array(moved), sums])
        found = linprog(
            np.concatenate([costs / length, np.zeros(q + m)]),
            A_eq=hstack([equations, identity(q + m)]),
            b_eq=equations @ (length * weights),
            bounds=np.array([(0.0, np.inf)] * n + [(-attempt.slack, attempt.slack)] * (q + m)),
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": TOLERANCES.highs,
                "dual_feasibility_tolerance": TOLERANCES.highs,
            },
        )
        if found.x is None:
            return None
        share = found.x[:n]
        y = combine @ found.eqlin.marginals[:q]
        dual = np.concatenate([y, found.eqlin.marginals[q:] - self.budgets * (origin @ y)])
        # Weights are dropped if they contribute less than this fraction to the information and to their
        # budget.
        negligible = 1e-12
        for least in (negligible, 0.0):
            w = corrected(columns, np.where(share > least, share / length, 0.0), self.target, self.budgets)
            if w is not None:
                return w, self._refined(dual, columns, w, costs, self.scale[rows])
        return None

    def _refined(
        self, dual: np.ndarray, columns: Columns, w: np.ndarray, costs: np.ndarray, scale: np.ndarray
    ) -> np.ndarray:
        """Return duals corrected by least squares: reduced costs are zero for candidates with weight."""
        live = np.flatnonzero(w)
        phi, groups, costs = columns.phi[live], columns.groups[live], costs[live]
        heaviest, others, at = heaviest_first(groups, w[live])
        out, q = dual.copy(), phi.shape[1]
        relative = (phi[others] - phi[at]) / scale[live][others, None]
        rest = (costs[others] - costs[at]) / scale[live][others] - relative @ out[:q]
        out[:q] += np.linalg.lstsq(relative, rest, rcond=None)[0]
        out[q + groups[heaviest]] = self.budgets[groups[heaviest]] * (
            costs[heaviest] - phi[heaviest] @ out[:q]
        )
        return out

    def _prices(self, dual: np.ndarray) -> np.ndarray:
        """Return the value of the variable s_n w_n of every candidate by the duals of the equations."""
        out = np.empty(self.problem.n_candidates)
        q = len(self.target)
        for rows in self._pieces():
            phi, groups = columns_of(self.problem, self.white, rows)
            out[rows] = (phi @ dual[:q] + (dual[q:] / self.budgets)[groups]) / self.scale[rows]
        return out
