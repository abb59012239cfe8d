"""Numbers that figures, tables and claims read from runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits import theory
from bandits.policies.enhanced import EnhancedFedPE
from bandits.policies.fedpe import FedPE
from bandits.policies.phased import Phased
from bandits.reproduce.catalogue import DISJOINT_KINDS, POLICIES, minimax
from bandits.reproduce.description import Case, Scaling, Table
from bandits.reproduce.running import Results
from bandits.run import Run


def moments(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation over trials, the first axis; the deviation of a single trial is 0."""
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
    return values.mean(axis=0), spread


def phase_values(run: Run, column: str) -> tuple[np.ndarray, np.ndarray]:
    """Phase indices (H,), and a column of the phases, (trials, H)."""
    values = run.phases[column].reshape(len(run.trials), -1).astype(np.float64)
    return np.arange(1, values.shape[1] + 1), values


def scalars(run: Run, case: Case) -> np.ndarray:
    """Scalars sent per client, up and down, (trials,)."""
    return (run.uploaded + run.downloaded) / case.instance.clients


def bounded(case: Case) -> bool:
    """Whether a theorem bounds the regret of a case."""
    return isinstance(POLICIES[case.policy], FedPE | EnhancedFedPE)


def bound(case: Case, results: Results, horizon: int) -> float:
    """The theorem's bound on the regret per client of a case, on the instance of the first trial."""
    policy, env = POLICIES[case.policy], results.environment(case)
    assert isinstance(policy, Phased)
    return theory.regret_bound(policy, env, horizon) / env.clients


def theory_value(scaling: Scaling, case: Case, results: Results) -> float:
    """Regret per client in theory, for a case as it was played."""
    value = scaling.theory(results.effort.applied(case))
    if not scaling.anchored:
        return value
    first = scaling.cases[0]
    return float(results[first].mean[-1]) * value / scaling.theory(results.effort.applied(first))


def table_lines(table: Table, results: Results) -> list[dict[str, Any]]:
    """A dict per row, with the same keys: what was played, what it cost, and the orders in theory."""
    lines = []
    for row in table.rows:
        case, run = row.case, results[row.case]
        i = case.instance
        mean, std = moments(run.regret[:, -1])
        above = bound(case, results, run.horizon) if bounded(case) else ""
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
