"""Rules of a user for rounding, keeping arms and designs that break a rule are refused."""

from __future__ import annotations

import numpy as np
import pytest

import bandits

ENV = bandits.environments.authors(3, 4, 2, seed=0)


def ceil(weights, f):
    return np.ceil(weights * f).astype(np.int64)


@pytest.mark.parametrize(
    ("rounding", "message"),
    [
        (lambda w, f: w * f, "pulls must be integers; rounding in phase 1 gave values of type float64"),
        (lambda w, f: np.full(w.shape, np.nan) * f, "such as nan"),
        (lambda w, f: ceil(w, f)[:, :-1], r"pulls must have shape \(3, 4\); rounding in phase 1 gave shape"),
        (lambda w, f: ceil(w, f).sum(axis=0), r"gave shape \(4,\)"),
        (lambda w, f: [*ceil(w, f).tolist(), [0]], "inhomogeneous"),
        (lambda w, f: ceil(w, f) > 0, "gave values of type bool"),
        (lambda w, f: ceil(w, f) - 3, "pulls must not be negative; rounding in phase 1 gave client 0"),
        (lambda w, f: ceil(w, f) + f, "each client at most f [+] K = 6 pulls"),
        (lambda w, f: 0 * ceil(w, f), "rounding must keep the rank"),
        (lambda _w, _f: None, "pulls must be integers"),
    ],
)
def test_a_broken_rounding_is_refused(rounding, message):
    with pytest.raises(ValueError, match=message):
        bandits.simulate(bandits.FedPE(rounding=rounding), ENV, 100, trials=1)


def first_arm(problem, _gap, _start):
    """Each client explores its first active arm only, so that the other arms have no pulls."""
    first = np.unique(problem.groups, return_index=True)[1]
    return bandits.Design(np.isin(np.arange(problem.n_candidates), first).astype(float), 0)


def test_designs_with_singular_information_are_refused():
    with pytest.raises(ValueError, match="design must keep the rank of the features; in phase 1"):
        bandits.simulate(bandits.FedPE(design=first_arm), ENV, 2000, trials=1)


def test_pulls_of_inactive_arms_are_refused():
    with pytest.raises(ValueError, match="rounding must give inactive arms no pulls"):
        bandits.simulate(
            bandits.FedPE(rounding=lambda w, f: np.maximum(1, ceil(w, f)), sigma=1e-3), ENV, 2000, trials=1
        )


@pytest.mark.parametrize(
    ("keep", "shown"),
    [
        (lambda r, _u, _a: np.ones(r.shape, dtype=int), r"int64 of shape \(3, 4\)"),
        (lambda r, _u, _a: np.ones(r.shape), r"float64 of shape \(3, 4\)"),
        (lambda r, _u, _a: r[0] > -np.inf, r"bool of shape \(4,\)"),
        (lambda r, _u, _a: r[:, :1] > -np.inf, r"bool of shape \(3, 1\)"),
        (lambda _r, _u, _a: True, "True"),
        (lambda _r, _u, _a: None, "None"),
    ],
)
def test_a_broken_keep_rule_is_refused(keep, shown):
    """Integers would be used as indices, and smaller shapes would be repeated."""
    message = rf"keep must return an array of bool of shape \(3, 4\).*in phase 1 it returned {shown}"
    with pytest.raises(ValueError, match=message):
        bandits.simulate(bandits.FedPE(keep=keep), ENV, 100, trials=1)


@pytest.mark.parametrize(
    ("design", "message"),
    [
        (lambda p, *_: bandits.Design(p.uniform()[:-1], 0), "weights"),
        (lambda p, *_: bandits.Design(np.full(p.n_candidates, np.nan), 0), "weights"),
        (lambda p, *_: bandits.Design(-p.uniform(), 0), "weights"),
        (lambda p, *_: bandits.Design(p.uniform(), 2.7), "iterations of the design must be a whole number"),
        (lambda p, *_: bandits.Design(p.uniform(), -1), "iterations of the design must be a whole number"),
    ],
)
def test_a_broken_design_rule_is_refused(design, message):
    with pytest.raises(ValueError, match=message):
        bandits.simulate(bandits.FedPE(design=design), ENV, 100, trials=1)
