"""Fed-PE and its variants beside a literal transcription, and local UCB: time and regret, one core, one run.

    python benchmarks/fedpe.py            everything, a few minutes
    python benchmarks/fedpe.py --short    the transcription at a short horizon only

The authors' published code took AUTHORS seconds for one trial (M = 100, K = 10, d = 3, T = 2^17) on a machine
on which the transcription of Algorithms 1-3 (tests/bandits/literal.py, the one the tests compare with) took
LITERAL seconds. The transcription is timed here again, and the authors' figures are scaled by the ratio, so
that the speed-up does not depend on the machine. Kernels are warmed up before they are timed.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import bandits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "bandits"))
import literal

AUTHORS = {"FedPE": 122.0, "EnhancedFedPE": 101.0, "CollaborativeFedPE": 84.0}
"""Seconds for one trial with the authors' code."""

LITERAL = {2**17: 40.0, 2**12: 9.0}
"""Seconds for one trial of the transcription of Fed-PE on the same machine, by horizon."""

HORIZON = 2**17


def time_literal(horizon: int) -> tuple[float, float]:
    """Seconds and regret of one trial of the transcription."""
    env = bandits.environments.authors(100, 10, 3, seed=0)
    setting = bandits.FedPE().setting(100, 10, 3, horizon, env.ell, env.sigma)
    rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0,)))
    began = time.perf_counter()
    _, pulled = literal.run(
        env.features,
        setting.lengths,
        horizon,
        ell=env.ell,
        sigma=env.sigma,
        draw=lambda i, a, _: env.means[i, a] + rng.normal(),
        design=literal.literal_bca(0.1),
        intervals=literal.fedpe_intervals(setting.alpha),
    )
    seconds = time.perf_counter() - began
    return seconds, float(np.mean([env.gaps[i][np.array(arms)].sum() for i, arms in enumerate(pulled)]))


def time_trial(policy, env, horizon: int, repeats: int) -> tuple[float, float]:
    """Median seconds of a trial, and its mean regret; every trial with a stream of its own."""
    bandits.simulate(policy, env, 4 * env.arms, trials=1)
    seconds, regret = [], []
    for n in range(repeats):
        rng = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(n,)))
        began = time.perf_counter()
        trial = policy.play(env, horizon, np.array([horizon]), rng)
        seconds.append(time.perf_counter() - began)
        regret.append(trial.regret[-1])
    return statistics.median(seconds), statistics.mean(regret)


def variants(scale: float, transcription: float | None) -> None:
    env = bandits.environments.authors(100, 10, 3, seed=0)
    print(f"\nM=100 K=10 d=3 T=2^17, one trial (median of 7); the authors' seconds are scaled by {scale:.2f}")
    print(f"{'policy':28}{'seconds':>10}{'authors':>10}{'ratio':>10}{'regret':>10}   bar: ratio >= 1000")
    for policy in (bandits.FedPE(), bandits.EnhancedFedPE(), bandits.CollaborativeFedPE()):
        seconds, regret = time_trial(policy, env, HORIZON, 7)
        peer = scale * AUTHORS[policy.name]
        print(f"{policy.name:28}{seconds:10.4f}{peer:10.1f}{peer / seconds:10.0f}{regret:10.1f}")
        if transcription is not None and policy.name == "FedPE":
            print(f"{'':28}the transcription itself takes {transcription / seconds:.0f} times as long")


def local() -> None:
    env = bandits.environments.authors(100, 10, 3, seed=0)
    print("\nlocal UCB, K=10, microseconds a decision   bar: at most 0.15")
    for index in ("authors", "ucb1"):
        seconds, regret = time_trial(bandits.LocalUCB(index), env, HORIZON, 3)
        print(f"{index:28}{seconds / (env.clients * HORIZON) * 1e6:10.4f}   regret {regret:.1f}")


def many_clients() -> None:
    print("\nM=10,000 K=20 d=5 T=2^17, one trial   bar: under 60 s and under 1 GB")
    env = bandits.environments.authors(10_000, 20, 5, seed=0)
    for policy in (bandits.FedPE(), bandits.EnhancedFedPE(), bandits.CollaborativeFedPE()):
        seconds, regret = time_trial(policy, env, HORIZON, 1)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(f"{policy.name:28}{seconds:10.2f} s   peak {peak:.2f} GB   regret {regret:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="time the transcription at T = 2^12 only")
    horizon = 2**12 if parser.parse_args().short else HORIZON
    many_clients()
    local()
    seconds, regret = time_literal(horizon)
    print(f"\nliteral transcription of Fed-PE, T={horizon}: {seconds:.1f} s, regret {regret:.1f}")
    variants(seconds / LITERAL[horizon], seconds if horizon == HORIZON else None)


if __name__ == "__main__":
    main()
