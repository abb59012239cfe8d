"""Every rule of a test: made-up data for which the statement holds, and made-up data for which it fails."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from made_up import found, noisy

from bandits.reproduce.catalogue import (
    BENCHMARKS,
    BOLD,
    CAUTIOUS,
    ENHANCED,
    EXPONENTIAL,
    FEDPE,
    FEDPE_SCALARS,
    FEDPE_SHARED,
    FEDPE_SHARED_SCALARS,
    FEDUCB_SHARED,
    GREEDY,
    LOCAL,
    UNIFORM,
)
from bandits.reproduce.claims import CLAIMS, CONSTRUCTION, decide


def by_policy(regrets, **others):
    """Give every policy its regret."""
    return lambda case: {"regret": regrets.get(case.policy, 100.0), **others}


def always(**numbers):
    """Give the same numbers to all cases."""
    return lambda _case: numbers


def by_size(name, size, exponent, scale=100.0):
    """Give a number that grows as a power of a size."""
    return lambda case: {name: scale * getattr(case.instance, size) ** exponent}


def level(values):
    """Give the sparsity level by M, K or d; 3.0 at the sizes in the middle."""

    def numbers(case):
        i = case.instance
        return {"sparsity": values.get((i.clients, i.arms, i.dim), 3.0)}

    return numbers


def quotient(name, above, size, exponent):
    """Give some policies a number that exceeds that of the others by a power of a size."""

    def numbers(case):
        factor = getattr(case.instance, size) ** exponent if case.policy in above else 1.0
        return {name: 1000.0 * factor}

    return numbers


def by_horizon(exponent):
    """Give FedUCB a regret that exceeds that of Fed-PE by a power of log T."""
    return lambda case: {
        "regret": 100.0 * (math.log(case.horizon) ** exponent if case.policy == FEDUCB_SHARED else 1.0)
    }


def traded(regrets, sent):
    return lambda case: {"regret": regrets[case.policy], "uploaded": 1000 * sent[case.policy]}


def associated(sign):
    """Let the upload grow or fall with the sparsity level."""

    def numbers(case):
        i = case.instance
        rank = i.clients / 25 + i.arms / 3 + i.dim
        return {"sparsity": rank, "uploaded": i.clients * 1000 * (100 + sign * rank)}

    return numbers


def by_phases(uniform, exponential, greedy=100):
    """Give every rule for the length of phases its regret."""
    return by_policy({UNIFORM: float(uniform), EXPONENTIAL: float(exponential), GREEDY: float(greedy)})


VECTORS = (FEDPE, FEDPE_SHARED)
DATA = {
    "Enhanced Fed-PE outperforms Fed-PE": (
        by_policy({ENHANCED: 90.0, FEDPE: 100.0}),
        by_policy({ENHANCED: 100.0, FEDPE: 90.0}),
    ),
    "Another delta than 0.1 may lower the regret further": (
        by_policy({ENHANCED: 100.0, BOLD: 90.0, CAUTIOUS: 120.0}),
        by_policy({ENHANCED: 100.0, BOLD: 110.0, CAUTIOUS: 120.0}),
    ),
    "Regret per client falls as M grows": (
        by_size("regret", "clients", -0.5),
        lambda case: {"regret": {50: 3.0, 100: 2.0, 200: 2.5}[case.instance.clients]},
    ),
    "Clients explore approximately 2 arms on average": (always(sparsity=2.0), always(sparsity=1.3)),
    "In the end there are only M positive weights": (
        always(sparsity=0.9),
        lambda case: {"sparsity": 1.1 if case.instance.arms == 20 else 0.9},
    ),
    "In the end regret is constant": (
        always(half=0.999),
        lambda case: {"half": 0.95 if case.instance.arms == 20 else 0.999},
    ),
    "A smaller sparsity level goes with less communication": (associated(1), associated(-1)),
    "Designs with a support as small as the classical d(d + 1)/2 are found": (
        always(sparsity=1.5),
        always(sparsity=1.7),
    ),
    "More clients do not make the design less efficient": (
        lambda case: {"iterations": 5.5 if case.instance.clients == 200 else 5.0},
        lambda case: {"iterations": 6.6 if case.instance.clients == 200 else 5.0},
    ),
    "Uniform phases have the lowest regret": (by_phases(90, 100, 100), by_phases(90, 100, 80)),
    "Exponential phases are only slightly worse than uniform ones": (
        by_phases(100, 120),
        by_phases(100, 130),
    ),
    "Greedy phases are much worse than the others": (by_phases(100, 105, 220), by_phases(100, 150, 220)),
    "Exponential phases trade regret for communication best": (
        traded({UNIFORM: 5, EXPONENTIAL: 6, GREEDY: 50}, {UNIFORM: 1000, EXPONENTIAL: 20, GREEDY: 4}),
        traded({UNIFORM: 5, EXPONENTIAL: 6, GREEDY: 20}, {UNIFORM: 1000, EXPONENTIAL: 20, GREEDY: 4}),
    ),
    "Communication falls from uniform to exponential to greedy phases": (
        traded(dict.fromkeys((UNIFORM, EXPONENTIAL, GREEDY), 5), {UNIFORM: 9, EXPONENTIAL: 5, GREEDY: 4}),
        traded(dict.fromkeys((UNIFORM, EXPONENTIAL, GREEDY), 5), {UNIFORM: 9, EXPONENTIAL: 5, GREEDY: 6}),
    ),
    "Scalars cut the upload by a factor d": (
        quotient("uploaded", VECTORS, "dim", 1.0),
        quotient("uploaded", VECTORS, "dim", 0.6),
    ),
    "Scalars cut the download by a factor d^2": (
        quotient("downloaded", VECTORS, "dim", 1.8),
        quotient("downloaded", VECTORS, "dim", 1.3),
    ),
    # A saving of K is better than the root of K, and agrees with a bound of that order.
    "Knowing that parameters are shared divides regret by the root of K or more": (
        quotient("regret", (FEDPE,), "arms", 1.0),
        quotient("regret", (FEDPE,), "arms", 0.25),
    ),
    "Knowing that parameters are shared leaves the upload as it is": (
        quotient("uploaded", (FEDPE,), "arms", 0.1),
        quotient("uploaded", (FEDPE,), "arms", 0.5),
    ),
    "The regret of FedUCB over that of Fed-PE with shared parameters grows as the root of log T or faster": (
        by_horizon(0.8),
        by_horizon(0.0),
    ),
    "Regret per client falls as 1/√M or faster up to 100,000 clients": (
        by_size("regret", "clients", -0.8),
        by_size("regret", "clients", -0.3),
    ),
}
for benchmark in BENCHMARKS:
    DATA |= {
        f"Enhanced Fed-PE is slightly worse than {benchmark}": (
            by_policy({ENHANCED: 115.0, benchmark: 100.0}),
            by_policy({ENHANCED: 130.0, benchmark: 100.0}),
        ),
        f"Keeping features private has no significant impact, compared with {benchmark}": (
            by_policy({ENHANCED: 115.0, benchmark: 100.0, LOCAL: 200.0}),
            by_policy({ENHANCED: 140.0, benchmark: 100.0, LOCAL: 200.0}),
        ),
    }
for label in (FEDPE, ENHANCED, *BENCHMARKS):
    DATA[f"{label} outperforms local UCB when T is large enough"] = (
        by_policy({label: 90.0, LOCAL: 100.0}),
        by_policy({label: 100.0, LOCAL: 90.0}),
    )
SIZES = {"M": ("clients", -1), "K": ("arms", 1), "d": ("dim", 1)}
READINGS = {
    "Regret per client": ("regret", 10_000.0),
    "Communication per client (upload)": ("uploaded", 1e6),
    "Number of iterations": ("iterations", 100.0),
}
for quantity, (name, scale) in READINGS.items():
    for letter, (size, sign) in SIZES.items():
        # The number of all clients grows with M, that of one client does not.
        more = 1 if (name, letter) == ("uploaded", "M") else 0
        inverse = "inversely " if sign < 0 else ""
        DATA[f"{quantity} is {inverse}proportional to {letter}"] = (
            by_size(name, size, sign + more, scale),
            by_size(name, size, 0.4 * sign + more, scale),
        )
DATA |= {
    "Sparsity level is inversely proportional to M": (
        level({(50, 10, 3): 6.0, (200, 10, 3): 1.5}),
        level({(50, 10, 3): 4.0, (200, 10, 3): 2.5}),
    ),
    "Sparsity level is proportional to K": (
        level({(100, 5, 3): 1.5, (100, 20, 3): 6.0}),
        level({(100, 5, 3): 2.5, (100, 20, 3): 4.0}),
    ),
    "Sparsity level is proportional to d": (
        level({(100, 10, 4): 4.0, (100, 10, 5): 5.0}),
        level({(100, 10, 4): 3.0, (100, 10, 5): 3.0}),
    ),
}
TESTED = [claim for claim in CLAIMS if claim.sort != CONSTRUCTION]


def verdict(claim, kind, numbers):
    one = replace(claim, kinds=(kind,))
    runs = {case: noisy(case, **numbers(case)) for case in one.cases()}
    return decide([one], found(runs))[0]


def test_every_rule_has_data():
    assert set(DATA) == {claim.claim for claim in TESTED}


@pytest.mark.parametrize(
    ("claim", "kind"),
    [(claim, kind) for claim in TESTED for kind in claim.kinds],
    ids=lambda value: getattr(value, "claim", value),
)
def test_rules_can_be_met_and_failed(claim, kind):
    good, bad = DATA[claim.claim]
    assert verdict(claim, kind, good).holds is True
    assert verdict(claim, kind, bad).holds is False


def test_slightly_worse_is_worse():
    """A benchmark that loses is not a benchmark to which the loss is slight."""
    claim = next(c for c in TESTED if c.claim == f"Enhanced Fed-PE is slightly worse than {BENCHMARKS[0]}")
    assert verdict(claim, claim.kinds[0], by_policy({ENHANCED: 90.0, BENCHMARKS[0]: 100.0})).holds is False


def test_privacy_is_judged_only_if_communication_gains():
    claim = next(c for c in TESTED if c.claim.startswith("Keeping") and c.claim.endswith(BENCHMARKS[0]))
    numbers = by_policy({ENHANCED: 10.0, BENCHMARKS[0]: 100.0, LOCAL: 50.0})
    assert verdict(claim, claim.kinds[0], numbers).holds is False


@pytest.mark.parametrize("label", [FEDPE_SCALARS, FEDPE_SHARED_SCALARS])
def test_the_protocols_alone_can_meet_the_orders(label):
    """With all arms active and pulled, the counts of the messages themselves meet both orders."""

    def numbers(case):
        m, k, d = case.instance.clients, case.instance.arms, case.instance.dim
        width, down = (1, 2) if case.policy == label else (d, d + d * d)
        return {"uploaded": m * k * (width + 1), "downloaded": m * k * (down + 1)}

    for claim in TESTED:
        if claim.claim.startswith("Scalars cut"):
            for kind in claim.kinds:
                if (kind == "shared parameters") == (label == FEDPE_SHARED_SCALARS):
                    assert verdict(claim, kind, numbers).holds is True
