"""Hunt for false claims of :func:`optdesign.sparsify`.

Claims: the budgets are kept; every information matrix is that of the given design, to 1e-9 in the coordinates
in which that one is the identity; at most n_groups + Q candidates have weight, or the result says otherwise;
the certificate is true; with costs, no design with the same information and budgets is cheaper.

Witnesses refute the last claim: explicit weights with the same information that cost less. HiGHS proposes
them, for costs in several scales, and least squares removes its tolerance. Of small problems with integer
candidates, all vertices of the polytope of designs are enumerated in rational arithmetic as well.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat, fmpq, fmpq_mat
from scipy.optimize import linprog

import optdesign as od
from hunt.claims import Found
from hunt.efficiency import wrong_certificate
from hunt.instances import FAMILIES as INSTANCES
from hunt.instances import Family, structured
from hunt.round import weighted
from hunt.truth import Block, Instance, Truth, cholesky, number

WARM_UP = "small_integers"

SAME = 1e-9
"""Largest change of an entry of the information, where the given one is the identity."""

BUDGET_RTOL = 1e-11
"""Largest relative difference between the weights of a group and its budget."""

WITNESS = 1e-13
"""Largest change of the information that a cheaper witness may make."""

CHEAPER = 1e-8
"""Relative difference of costs that refutes the claim that a design is the cheapest."""

STATED = "of the least"
"""A result that states its distance to the least cost does not claim to be the cheapest."""

VERTICES = 500
"""Sets of columns that are enumerated, at most."""


def circle(rng: np.random.Generator) -> Instance:
    """Points on a circle: many designs have the same information."""
    n = int(rng.integers(5, 40))
    angle = 2 * np.pi * np.arange(n) / n
    x = np.column_stack([np.cos(angle), np.sin(angle)])
    return structured(x if rng.random() < 0.6 else np.column_stack([np.ones(n), x]), rng)


def many(rng: np.random.Generator) -> Instance:
    """Some hundred candidates."""
    n, d = int(rng.integers(100, 400)), int(rng.integers(2, 5))
    x = rng.normal(size=(n, d)) if rng.random() < 0.5 else rng.integers(-2, 3, size=(n, d)).astype(float)
    return structured(x, rng)


FAMILIES: dict[str, Family] = {**INSTANCES, "circle": circle, "many": many}


class Options(NamedTuple):
    """Tolerance of the weights, None for weights drawn at random, and the costs."""

    tol: float | None
    cost: np.ndarray | None


def case(family: str, seed: int) -> Found:
    """Draw a problem, weights and costs, and examine the design on few candidates."""
    rng = np.random.default_rng([seed, 3, list(FAMILIES).index(family)])
    problem = FAMILIES[family](rng)
    if rng.random() < 0.3:
        problem = problem._replace(budgets=10.0 ** rng.uniform(-4, 4, size=len(problem.budgets)))
    tol = None if rng.random() < 0.4 else float(rng.choice([1e-3, 1e-6, 1e-9]))
    cost = None if rng.random() < 0.4 else drawn_costs(len(problem.x), rng)
    return examine(problem, Options(tol, cost), rng)


def drawn_costs(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return costs of similar or of very different sizes, some of them with ties, zeros or negative ones."""
    kind = int(rng.integers(0, 6))
    if kind == 0:
        return rng.uniform(1, 2, size=n)
    if kind == 1:
        return rng.integers(0, 5, size=n).astype(float)
    if kind == 2:
        return 10.0 ** rng.uniform(-6, 6, size=n)
    if kind == 3:
        return rng.normal(size=n) * 10.0 ** rng.choice([-30, 0, 30])
    cost = rng.integers(1, 4, size=n).astype(float)
    cost[rng.integers(0, n, size=1 + n // 6)] = 1e9 if kind == 4 else 1e4
    return cost


def examine(problem: Instance, options: Options, rng: np.random.Generator) -> Found:
    """Sparsify a design, and compare every claim with the truth."""
    prepared = weighted(problem, options.tol, rng)
    if isinstance(prepared, Found):
        return prepared
    truth, made, result = prepared
    if result.gap == np.inf:
        return Found("unproved", noted=True)
    thin = od.sparsify(result, cost=options.cost)
    status = thin.status.name if options.cost is None else "cheapest"
    noted = bool(made.rank_note)
    if wrong := _wrong_weights(truth, result, thin):
        return Found(status, wrong, noted)
    if thin.gap == np.inf:
        return Found("unproved", noted=True)
    measured = truth.measure(thin.weights)
    assert measured is not None
    if wrong := wrong_certificate(truth, thin.certificate, measured):
        return Found(status, wrong, noted)
    if thin.converged and options.tol is not None:
        gap = measured.g_value - truth.rank
        if not gap <= number(options.tol) * truth.rank:
            return Found(status, f"converged at a gap of {gap.str(6)}", noted)
    if options.cost is None:
        return Found(status, "", noted, slack=float(made.support_bound - len(thin.support)))
    found = examine_cost(truth, result.weights, thin.weights, options.cost)
    if STATED in thin.method and "the given design" not in found.wrong:
        return Found("distance stated", noted=True)
    return found._replace(noted=noted)


def _wrong_weights(truth: Truth, result: od.DesignResult, thin: od.DesignResult) -> str:
    """Return what is wrong with the budgets, the information or the number of candidates, if anything."""
    problem, w = truth.problem, thin.weights
    totals = np.bincount(problem.groups, w, len(problem.budgets))
    if w.min() < 0 or np.any(np.abs(totals - problem.budgets) > BUDGET_RTOL * problem.budgets):
        return f"weights of the groups {totals.tolist()}, budgets {problem.budgets.tolist()}"
    if not truth.has_full_rank(w):
        return "the weights lose rank"
    if (change := information_change(truth, result.weights, w)) > SAME:
        return f"the information changes by {change:.3g} of its size"
    most = truth.n_groups + sum(r * (r + 1) // 2 for r in truth.ranks)
    if len(thin.support) > most and "round-off" not in thin.method:
        return f"{len(thin.support)} candidates have weight; n_groups + Q is {most}, and no note"
    return ""


def information_change(truth: Truth, old: np.ndarray, new: np.ndarray) -> float:
    """Return the largest change of the information, relative to it, as a Frobenius norm over the rank.

    Where the old information is the identity, the Frobenius norm of a change E is sqrt(tr(E^2)), and it is at
    most the rank times the largest entry of E.
    """
    truth.measure(old)  # sets a precision that is enough
    change = 0.0
    for block in truth.blocks:
        information = _information(block, [number(v) for v in old])
        moved = _information(block, [number(a) - number(b) for a, b in zip(new, old, strict=True)])
        relative = information.solve(moved)
        square = float((relative * relative).trace().mid())
        change = max(change, np.sqrt(max(square, 0.0)) / block.rank)
    return change


def _information(block: Block, weights: list[arb]) -> arb_mat:
    scaled = [[weights[n] * block.x[i, j] for j in range(block.rank)] for i, n in enumerate(block.rows)]
    return block.x.transpose() * arb_mat(scaled)


def examine_cost(truth: Truth, given: np.ndarray, thin: np.ndarray, cost: np.ndarray) -> Found:
    """Compare the cost of a design with that of the given one, of witnesses and of vertices."""
    paid = float(cost @ thin)
    others = {"the given design": given}
    equations, target = white_equations(truth, given)
    for k, witness in enumerate(_witnesses(equations, target, cost)):
        others[f"witness {k}"] = witness
    allowed = 1e-12 * float(np.abs(cost).max())
    for name, w in others.items():
        least = float(cost @ w)
        if paid - least > CHEAPER * float(np.abs(cost) @ (w + thin)) / 2 + allowed * float(w.sum()):
            return Found("cheapest", f"costs {paid!r}, and {name} costs {least!r}")
    if (cheapest := cheapest_vertex(truth, given, cost)) is not None:
        size = CHEAPER * float(np.abs(cost) @ thin) + allowed * float(thin.sum())
        if paid - cheapest > size:
            return Found("cheapest", f"costs {paid!r}, and the cheapest vertex {cheapest!r}")
    least = min(float(cost @ w) for w in others.values())
    return Found("cheapest", slack=(paid - least) / (float(np.abs(cost) @ thin) or 1.0))


def white_equations(truth: Truth, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return A and b: designs w with A w = b have the information and the budgets of the weights.

    In the coordinates y of A, the information of every parameter block is the identity.
    """
    truth.measure(weights)  # sets a precision that is enough
    problem = truth.problem
    parts = [np.zeros((0, len(weights)))]
    for block in truth.blocks:
        lower = cholesky(_information(block, [number(v) for v in weights]))
        y = lower.solve(block.x.transpose())
        white = np.array([[float(v.mid()) for v in row] for row in y.tolist()])
        r = block.rank
        part = np.zeros((r * (r + 1) // 2, len(weights)))
        part[:, block.rows] = np.array([white[i] * white[j] for i in range(r) for j in range(i + 1)])
        parts.append(part)
    sums = np.array([(problem.groups == i) / f for i, f in enumerate(problem.budgets)])
    equations = np.vstack([*parts, sums])
    return equations, equations @ weights


def _witnesses(equations: np.ndarray, target: np.ndarray, cost: np.ndarray) -> list[np.ndarray]:
    """Return designs that satisfy the equations to round-off and may be cheap."""
    out = []
    scale = np.linalg.norm(equations, axis=0)
    scale[scale == 0] = 1.0
    scaled = equations / scale
    sizes = np.unique(np.abs(cost[cost != 0]))
    limits = [np.inf, *(v for v in (np.median(sizes), sizes[0]) if sizes[-1] > 100 * v)] if len(sizes) else []
    for limit in limits:
        allowed = np.flatnonzero(cost <= limit)
        largest = np.abs(cost[allowed] / scale[allowed]).max(initial=0.0)
        if not largest > 0:
            continue
        found = linprog(
            cost[allowed] / scale[allowed] / largest, A_eq=scaled[:, allowed], b_eq=target, method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        if found.x is None:
            continue
        support = allowed[found.x > 1e-9]
        part = np.zeros(len(cost))
        part[allowed] = found.x
        v = part[support]
        for _ in range(3):
            v = v + np.linalg.lstsq(scaled[:, support], target - scaled[:, support] @ v, rcond=None)[0]
        w = np.zeros(len(cost))
        w[support] = np.maximum(v, 0.0) / scale[support]
        if np.abs(equations @ w - target).max() <= WITNESS:
            out.append(w)
    return out


def cheapest_vertex(truth: Truth, weights: np.ndarray, cost: np.ndarray) -> float | None:
    """Return the least cost of designs with the same information, by enumeration; None if there are too many.

    Vertices are the non-negative solutions on sets of independent columns, in rational arithmetic.
    """
    problem = truth.problem
    x, n = problem.x, len(problem.x)
    q = sum(r * (r + 1) // 2 for r in truth.ranks) + truth.n_groups
    if n > 9 or q > 7 or np.any(x != np.round(x)):
        return None
    rows = [[int(problem.groups[k] == i) for k in range(n)] for i in range(truth.n_groups)]
    for b in range(truth.n_blocks):
        for i in range(x.shape[1]):
            for j in range(i + 1):
                rows.append([int(x[k, i] * x[k, j]) if problem.blocks[k] == b else 0 for k in range(n)])
    exact = [fmpq(*float(v).as_integer_ratio()) for v in weights]
    full = fmpq_mat([[*row, sum((a * w for a, w in zip(row, exact, strict=True)), fmpq(0))] for row in rows])
    reduced, size = full.rref()
    columns = [[reduced[i, k] for i in range(size)] for k in range(n)]
    target = fmpq_mat([[reduced[i, n]] for i in range(size)])
    prices = [fmpq(*float(v).as_integer_ratio()) for v in cost]
    best = None
    for count, chosen in enumerate(combinations(range(n), size)):
        if count >= VERTICES:
            return None
        try:
            v = fmpq_mat([[columns[k][i] for k in chosen] for i in range(size)]).solve(target)
        except ZeroDivisionError:
            continue
        if all(v[i, 0] >= 0 for i in range(size)):
            paid = sum((prices[k] * v[i, 0] for i, k in enumerate(chosen)), fmpq(0))
            best = paid if best is None or paid < best else best
    return None if best is None else int(best.p) / int(best.q)
