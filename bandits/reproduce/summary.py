"""Numbers and captions that figures, tables and claims read from runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from bandits import theory
from bandits.environments.linear import LinearEnvironment
from bandits.policies.enhanced import EnhancedFedPE
from bandits.policies.fedpe import FedPE
from bandits.policies.phased import Phased
from bandits.reproduce.catalogue import DISJOINT_KINDS, POLICIES, minimax
from bandits.reproduce.description import Case, Experiment, Scaling, Table
from bandits.reproduce.formatting import span
from bandits.reproduce.running import Results
from bandits.simulation.run import Run


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation over trials, the first axis; the latter is nan for one trial."""
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), spread


def phase_values(run: Run, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Return phase indices (H,), and a column of the phases, (trials, H)."""
    trials = len(run.trials)
    values = run.phases[column].reshape(trials, len(run.phases) // trials).astype(np.float64)
    return np.arange(1, values.shape[1] + 1), values


def scalars(run: Run, case: Case) -> np.ndarray:
    """Return the scalars sent per client, up and down, (trials,)."""
    return (run.uploaded + run.downloaded) / case.instance.clients


def bounded(case: Case) -> bool:
    """Return True if a theorem bounds the regret of a case."""
    return isinstance(POLICIES[case.policy], FedPE | EnhancedFedPE)


def bound_of(case: Case, env: LinearEnvironment, horizon: int, time: int) -> float:
    """Return the theorem's bound on the regret per client of a case on one instance, up to a time."""
    policy = POLICIES[case.policy]
    assert isinstance(policy, Phased)
    return theory.regret_bound(policy, env, horizon, time) / env.clients


def bound(case: Case, results: Results, times: Iterable[int]) -> list[float]:
    """Return the theorem's bound at some times of the run, mean over the instances of the trials."""
    horizon = results[case].horizon
    instances = [results.environment(case, n) for n in range(results.trials(case))]
    return [float(np.mean([bound_of(case, env, horizon, t) for env in instances])) for t in times]


def points(cases: Iterable[Case], results: Results) -> list[Case]:
    """Return the cases that were played as different ones: horizons that were cut alike count once."""
    played: dict[str, Case] = {}
    for case in cases:
        played.setdefault(results.effort.applied(case).slug, case)
    return list(played.values())


def theory_value(scaling: Scaling, case: Case, results: Results) -> float:
    """Return the regret per client in theory, for a case as it was played."""
    value = scaling.theory(results.effort.applied(case))
    if not scaling.anchored:
        return value
    first = scaling.cases[0]
    return float(results[first].mean[-1]) * value / scaling.theory(results.effort.applied(first))


def heading(experiment: Experiment, results: Results) -> str:
    """Return the title of an experiment with the horizons that were played."""
    title = f"{experiment.title}, T = {span(results.effort.applied(c).horizon for c in experiment.cases)}"
    if any(map(results.is_cut, experiment.cases)):
        title += f" (cut from {span(case.horizon for case in experiment.cases)})"
    return title


def note(experiment: Experiment, results: Results, spread: str = "bands") -> str:
    """Return a caption: the number of trials, their instances, and the meaning of bands or bars."""
    trials = results.trials(experiment.cases[0])
    if trials == 1:
        return "One trial, so that there is no standard deviation."
    own = "each on its own instance"
    if not all(case.instance.drawn for case in experiment.cases):
        own = "each with its own second instance"
    return f"Mean of {trials} trials, {own}; {spread}: plus and minus one standard deviation."


def table_lines(table: Table, results: Results) -> list[dict[str, Any]]:
    """Return a dict per row, with the same keys: the case, its regret and messages, the orders in theory."""
    lines = []
    for row in table.rows:
        case, run = row.case, results[row.case]
        i = case.instance
        mean, std = moments(run.regret[:, -1])
        above = bound(case, results, [run.horizon])[0] if bounded(case) else ""
        lines.append(
            {
                "model": row.model,
                "algorithm": row.label,
                "instance": i.kind,
                "clients": i.clients,
                "arms": i.arms,
                "dim": i.dim,
                "horizon": run.horizon,
                "trials": len(run.trials),
                "regret_mean": float(mean),
                "regret_std": float(std),
                "regret_bound": above,
                "lower_bound": minimax(results.effort.applied(case)) if i.kind in DISJOINT_KINDS else "",
                "uploaded": float(run.uploaded.mean() / i.clients),
                "downloaded": float(run.downloaded.mean() / i.clients),
                "regret_order": row.regret,
                "communication_order": row.communication,
            }
        )
    return lines
