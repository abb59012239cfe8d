"""Step-wise baselines: microseconds a decision, and LinUCB against mabwiser decision for decision.

    python benchmarks/baselines.py

K = 10 arms, d = 3; a decision is choosing an arm, drawing the reward, updating and counting regret. mabwiser
and contextualbandits are shown beside ours where they are installed, on the same contexts and rewards, one
decision and one update at a time. The comparison of decisions ends with an error if any differs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
from harness import show

import bandits

ARMS, DIM = 10, 3
ALPHA = 1.25
DECISIONS = 300_000
PEER_DECISIONS = 1000
REPEATS = 5


def ours(policy: bandits.Policy, clients: int) -> float:
    """Median microseconds a decision, everything included, after a run that compiles."""
    env = bandits.environments.authors(clients, ARMS, DIM, seed=0)
    shared = bandits.LinearEnvironment(env.features, env.parameters[0])
    horizon = DECISIONS // clients
    bandits.simulate(policy, shared, 10, trials=1)
    seconds = []
    for seed in range(REPEATS):
        began = time.perf_counter()
        bandits.simulate(policy, shared, horizon, trials=1, seed=seed)
        seconds.append(time.perf_counter() - began)
    return 1e6 * statistics.median(seconds) / (horizon * clients)


def inputs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts (n, d) and a reward of every arm for each of them, (n, K)."""
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((n, DIM))
    rewards = contexts @ rng.standard_normal((DIM, ARMS)) + 0.5 * rng.standard_normal((n, ARMS))
    return contexts, rewards


def our_decisions(contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    """LinUCB with every context as a client of its own; each arm is first shown a context of its own."""
    n = len(contexts)
    env = bandits.LinearEnvironment(np.repeat(contexts[:, None, :], ARMS, axis=1), np.ones((ARMS, DIM)))
    policy = bandits.LinUCB(alpha=ALPHA)
    trial = bandits.Trial(env, 1, [1], np.random.default_rng(0))
    state = policy.start(trial)
    chosen = []
    for i in range(n):
        arm = i if i < ARMS else int(policy.choose(state, i, 1, trial.rng))
        policy.observe(state, i, arm, rewards[i, arm])
        chosen.append(arm)
    return chosen


def mabwiser_decisions(contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    from mabwiser.mab import MAB, LearningPolicy

    mab = MAB(list(range(ARMS)), LearningPolicy.LinUCB(alpha=ALPHA, l2_lambda=1.0))
    first = list(range(ARMS))
    mab.fit(first, [rewards[i, i] for i in first], contexts[:ARMS])
    chosen = first
    for x, y in zip(contexts[ARMS:], rewards[ARMS:], strict=True):
        arm = mab.predict([x])
        mab.partial_fit([arm], [y[arm]], [x])
        chosen.append(int(arm))
    return chosen


def contextualbandits_decisions(contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    from contextualbandits.online import LinUCB

    model = LinUCB(
        nchoices=ARMS, alpha=ALPHA, lambda_=1.0, fit_intercept=False, beta_prior=None, random_state=1
    )
    first = list(range(ARMS))
    model.fit(contexts[:ARMS], np.array(first), np.array([rewards[i, i] for i in first]))
    chosen = first
    for x, y in zip(contexts[ARMS:], rewards[ARMS:], strict=True):
        arm = int(model.predict(x[None, :])[0])
        model.partial_fit(x[None, :], np.array([arm]), np.array([y[arm]]))
        chosen.append(arm)
    return chosen


def numpy_decisions(contexts: np.ndarray, rewards: np.ndarray) -> list[int]:
    """Eight lines of NumPy, as people write them."""
    inverse, moment, chosen = np.repeat(np.eye(DIM)[None], ARMS, axis=0), np.zeros((ARMS, DIM)), []
    for i, (x, y) in enumerate(zip(contexts, rewards, strict=True)):
        theta = np.einsum("ajk,ak->aj", inverse, moment)
        width = np.sqrt(np.einsum("j,ajk,k->a", x, inverse, x))
        a = i if i < ARMS else int(np.argmax(theta @ x + ALPHA * width))
        u = inverse[a] @ x
        inverse[a] -= np.outer(u, u) / (1 + x @ u)
        moment[a] += y[a] * x
        chosen.append(a)
    return chosen


def peer(decide: Callable[[np.ndarray, np.ndarray], list[int]]) -> tuple[float, list[int]] | None:
    """Microseconds a decision of a peer, and its decisions; None if it is not installed."""
    contexts, rewards = inputs(PEER_DECISIONS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            decide(contexts[: 2 * ARMS], rewards[: 2 * ARMS])
            began = time.perf_counter()
            chosen = decide(contexts, rewards)
            return 1e6 * (time.perf_counter() - began) / PEER_DECISIONS, chosen
    except ImportError:
        return None


def main() -> None:
    rows: list[list[object]] = []
    for policy in (
        bandits.LinUCB(), bandits.LinUCB("shared"), bandits.LinTS(), bandits.LinTS("shared"),
        bandits.LinTS(v="sigma"),
        bandits.DisLinUCB(), bandits.DisLinUCB("shared"), bandits.FedUCB("shared", epsilon=1.0),
        bandits.LocalUCB(),
    ):  # fmt: skip
        times = [ours(policy, clients) for clients in (1, 100)]
        rows.append([policy.name, *(f"{t:.2f}" for t in times)])
    expected = our_decisions(*inputs(PEER_DECISIONS))
    peers = {
        "LinUCB, NumPy": numpy_decisions,
        "LinUCB, mabwiser": mabwiser_decisions,
        "LinUCB, contextualbandits": contextualbandits_decisions,
    }
    verdicts, differ = [], []
    for name, decide in peers.items():
        found = peer(decide)
        if found is None:
            rows.append([name, "not installed", ""])
            continue
        rows.append([name, f"{found[0]:.0f}", ""])
        same = sum(a == b for a, b in zip(found[1], expected, strict=True))
        verdicts.append(f"{name}: {same} of {PEER_DECISIONS} decisions as ours")
        if same < PEER_DECISIONS:
            differ.append(name)
    show(f"microseconds a decision, K = {ARMS}, d = {DIM}", ["policy", "M = 1", "M = 100"], rows)
    print("\n".join(verdicts))
    if differ:
        raise SystemExit(f"decisions differ from {', '.join(differ)}")


if __name__ == "__main__":
    main()
