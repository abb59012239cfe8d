"""Fed-PE and its variants beside a literal transcription, and local UCB: time and regret, one core, one run.

    python benchmarks/fedpe.py            everything, a few minutes
    python benchmarks/fedpe.py --short    the transcription at a short horizon only

The transcription of Algorithms 1-3 is tests/bandits/literal.py, the one the tests compare with: SciPy's
SLSQP for the design, NumPy for the rest, one reward at a time. It is timed here, in the same run. AUTHORS are
the seconds that the authors' published code took for one trial on another machine of two cores; they are
given as they are, for comparison. Kernels are warmed up before they are timed.
"""

from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from harness import bar, duration, show

import bandits

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "bandits"))
import literal

POLICIES = (
    bandits.FedPE(),
    bandits.EnhancedFedPE(),
    bandits.CollaborativeFedPE(),
    bandits.CollaborativeFedPE(intervals="enhanced"),
)
AUTHORS = dict(zip((POLICIES[0], POLICIES[1], POLICIES[3]), (122.0, 101.0, 84.0), strict=True))
"""Seconds for one trial with the authors' code, whose Collaborative has the regret of enhanced intervals."""

HORIZON = 2**17


def time_literal(policy: bandits.Phased, horizon: int) -> tuple[float, float]:
    """Return the seconds and the regret of one trial of the transcription of Fed-PE or a variant."""
    env = bandits.environments.authors(100, 10, 3, seed=0)
    collaborative = isinstance(policy, bandits.CollaborativeFedPE)
    enhanced = isinstance(policy, bandits.EnhancedFedPE) or getattr(policy, "intervals", "") == "enhanced"
    setting = policy.setting(100, 10, 3, horizon, env.ell, env.sigma)
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
        intervals=(
            literal.enhanced_intervals(100, 10, 3, setting.delta, setting.lengths, sigma=env.sigma)
            if enhanced
            else literal.fedpe_intervals(setting.alpha)
        ),
        collaborative=collaborative,
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
        trial = bandits.Trial(env, horizon, [horizon], rng)
        policy.play(trial)
        seconds.append(time.perf_counter() - began)
        regret.append(trial.record.regret[-1])
    return statistics.median(seconds), statistics.mean(regret)


def variants(transcription: dict[str, float]) -> None:
    env = bandits.environments.authors(100, 10, 3, seed=0)
    rows: list[list[object]] = []
    ratios = []
    for policy in POLICIES:
        seconds, regret = time_trial(policy, env, HORIZON, 7)
        beside = transcription.get(policy.name, 0.0) / seconds
        row = [policy.name, duration(seconds), f"{regret:.0f}", f"{beside:.0f}" if beside else "", "", ""]
        if policy in AUTHORS:
            ratios.append(AUTHORS[policy] / seconds)
            row[4:] = [f"{AUTHORS[policy]:.0f} s", f"{ratios[-1]:.0f}"]
        rows.append([*row])
        if beside:
            bar(f"{policy.name}: its transcription over ours", beside, 1000, at_least=True)
    show(
        "One trial, M=100 K=10 d=3 T=2^17 (median of 7)",
        ["policy", "ours", "regret", "transcription / ours", "authors", "authors / ours"],
        rows,
    )
    bar("authors' figures over ours, smallest", min(ratios), 1000, at_least=True)


def local() -> None:
    env = bandits.environments.authors(100, 10, 3, seed=0)
    for index in ("authors", "ucb1"):
        seconds, regret = time_trial(bandits.LocalUCB(index), env, HORIZON, 3)
        print(f"local UCB, index {index}: regret {regret:.0f}")
        bar("  microseconds a decision, K=10", seconds / (env.clients * HORIZON) * 1e6, 0.15, at_least=False)


def many_clients() -> None:
    env = bandits.environments.authors(10_000, 20, 5, seed=0)
    rows: list[list[object]] = []
    slowest = 0.0
    for policy in POLICIES:
        seconds, regret = time_trial(policy, env, HORIZON, 1)
        slowest = max(slowest, seconds)
        rows.append([policy.name, duration(seconds), f"{regret:.0f}"])
    show("One trial, M=10,000 K=20 d=5 T=2^17", ["policy", "ours", "regret"], rows)
    bar("seconds", slowest, 60, at_least=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    bar("peak memory of the process, GB", peak, 1, at_least=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="time the transcription at T = 2^12 only")
    horizon = 2**12 if parser.parse_args().short else HORIZON
    many_clients()
    local()
    transcription = {}
    for policy in POLICIES:
        seconds, regret = time_literal(policy, horizon)
        print(f"literal transcription of {policy.name}, T={horizon}: {seconds:.1f} s, regret {regret:.1f}")
        if horizon == HORIZON:
            transcription[policy.name] = seconds
    variants(transcription)


if __name__ == "__main__":
    main()
