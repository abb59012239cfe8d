"""Regret and scalars per client of every policy on the authors' instance, beside a control without learning.

    python benchmarks/regret.py

M = 100, K = 10, d = 3. Trial n draws the instance with seed n and plays it once, so standard deviations
contain the spread between instances. Scalars are counted as bandits.protocol and the docstrings of the
policies state. Nothing here depends on the speed of the machine.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from harness import show

import bandits
from bandits.policies.longest import longest

CLIENTS, ARMS, DIM = 100, 10, 3
TRIALS = {2**13: 20, 2**17: 5}
"""Instances for each horizon."""

POLICIES: dict[str, bandits.Policy] = {
    "Fed-PE": bandits.FedPE(),
    "Enhanced Fed-PE": bandits.EnhancedFedPE(),
    "Collaborative": bandits.CollaborativeFedPE(),
    "Collaborative, enhanced intervals": bandits.CollaborativeFedPE(intervals="enhanced"),
    "Fed-PE, scalars": bandits.FedPE(protocol="scalars"),
    "Enhanced Fed-PE, scalars": bandits.EnhancedFedPE(protocol="scalars"),
    "Collaborative, scalars": bandits.CollaborativeFedPE(protocol="scalars"),
    "Collaborative, enhanced intervals, scalars": bandits.CollaborativeFedPE(
        intervals="enhanced", protocol="scalars"
    ),
    "Local UCB": bandits.LocalUCB(),
    "Longest feature": bandits.LongestFeature(),
    "LinUCB": bandits.LinUCB(),
    "Thompson sampling, v = beta": bandits.LinTS(),
    "Thompson sampling, v = sigma": bandits.LinTS(v="sigma"),
    "Thompson sampling, worst case": bandits.LinTS(v="worst-case"),
    "DisLinUCB": bandits.DisLinUCB(),
    "FedUCB, epsilon = 1": bandits.FedUCB(epsilon=1.0),
    "FedUCB, epsilon = 1, period 512": bandits.FedUCB(epsilon=1.0, period=512),
}


def row(name: str, policy: bandits.Policy, horizon: int, trials: int) -> list[object]:
    """Return the mean regret with its standard deviation, and the mean scalars up and down, per client."""
    regret, up, down = np.zeros((3, trials))
    for n in range(trials):
        env = bandits.environments.authors(CLIENTS, ARMS, DIM, seed=n)
        run = bandits.simulate(policy, env, horizon, trials=1, seed=n)
        regret[n], up[n], down[n] = run.mean[-1], run.uploaded[0] / CLIENTS, run.downloaded[0] / CLIENTS
    return [
        name,
        f"{regret.mean():.1f}",
        f"{regret.std(ddof=1):.1f}",
        f"{up.mean():.0f}",
        f"{down.mean():.0f}",
    ]


def best_is_longest(trials: int) -> np.ndarray:
    """Return the fraction of clients whose best arm has their longest feature, for every instance."""
    return np.array(
        [
            env.optimal[np.arange(CLIENTS), longest(env.features)].mean()
            for env in (bandits.environments.authors(CLIENTS, ARMS, DIM, seed=n) for n in range(trials))
        ]
    )


def main() -> None:
    for horizon, trials in TRIALS.items():
        show(
            f"M={CLIENTS} K={ARMS} d={DIM} T=2^{horizon.bit_length() - 1}, {trials} instances, per client",
            ["policy", "regret", "std", "scalars up", "scalars down"],
            [row(name, policy, horizon, trials) for name, policy in POLICIES.items()],
        )
    right = best_is_longest(max(TRIALS.values()))
    print(
        f"clients whose best arm has their longest feature: {right.min():.0%} to {right.max():.0%}, "
        f"mean {right.mean():.0%}"
    )


if __name__ == "__main__":
    main()
