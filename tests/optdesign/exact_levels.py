"""Additive models in rational arithmetic: the truth for tests of MainEffects."""

import math
from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat

import optdesign as od


def rational_effects(levels, degree):
    """Exact effects of the levels of a factor: powers, or contrasts of all levels but the last."""
    size = len(levels)
    if isinstance(levels[0], str):
        last = [Fraction(-1)] * (size - 1)
        return [[Fraction(int(i == j)) for j in range(size - 1)] for i in range(size - 1)] + [last]
    return [[Fraction(float(v)) ** k for k in range(1, min(degree, size - 1) + 1)] for v in levels]


def log_det(rows, weights):
    """log det of the information of rational rows and weights, rounded at the end."""
    d = len(rows[0])
    x = fmpq_mat(len(rows), d, [fmpq(v.numerator, v.denominator) for row in rows for v in row])
    w = [fmpq(v.numerator, v.denominator) for v in weights]
    wx = fmpq_mat(len(rows), d, [w[i] * x[i, j] for i in range(len(rows)) for j in range(d)])
    det = (x.transpose() * wx).det()
    assert det > 0
    return math.log(int(det.p)) - math.log(int(det.q))


def _orthonormal(rows):
    """Columns orthonormalised under equal weights in rational arithmetic, rounded at the end."""
    basis: list[list[Fraction]] = []
    for column in map(list, zip(*rows, strict=True)):
        for other in basis:
            part = sum(map(Fraction.__mul__, column, other)) / sum(v * v for v in other)
            column = [v - part * o for v, o in zip(column, other, strict=True)]
        peak = max(map(abs, column))
        basis.append([v / peak for v in column])
    floats = np.array(basis, dtype=np.float64).T
    return np.round(floats / np.sqrt(np.mean(floats**2, axis=0)), 12)


def optimum_of_levels(levels, degree):
    """A lower bound on the optimal log det of the moments of a factor: that of weights near the optimum."""
    rows = [[Fraction(1), *effects] for effects in rational_effects(levels, degree)]
    weights = od.solve(od.DesignProblem(_orthonormal(rows)), tol=1e-12).weights
    exact = [Fraction(w) for w in weights.tolist()]
    return log_det(rows, [w / sum(exact) for w in exact])


def true_efficiency(model, runs):
    """An upper bound on the D-efficiency of a run list against all designs, and its log det."""
    table = {name: rational_effects(levels, model.degree) for name, levels in model.factors.items()}
    rows = [[Fraction(1)] for _ in range(runs.problem.n_candidates)]
    for name, levels in model.factors.items():
        for row, value in zip(rows, runs.problem.settings[name].tolist(), strict=True):
            row.extend(table[name][levels.index(value)])
    value = log_det(rows, [Fraction(int(c)) for c in runs.counts])
    best = sum(optimum_of_levels(levels, model.degree) for levels in model.factors.values())
    d = len(rows[0])
    return math.exp((value - best) / d - math.log(model.runs)), value
