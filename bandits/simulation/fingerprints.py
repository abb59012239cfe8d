"""Identity of a run: hashes of everything that determines its trials.

A run carries one hash each of the code, the policy, the environment and the plan. Only runs that agree in all
of them can be joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bandits.environments.linear import LinearEnvironment
from bandits.simulation.identity import content_hash
from bandits.simulation.sources import CODE
from bandits.trials.trial import Policy

PARTS = ("code", "policy", "environment", "plan")
"""Parts of an identity: the packages and libraries, the policy, the environment; horizon, times and seed."""

UNKNOWN = "unknown"
"""First word of the identity of a run that can be joined with no other."""


def fingerprint(policy: Policy, env: LinearEnvironment, horizon: int, times: np.ndarray, seed: int) -> str:
    """Return the hashes of everything that determines a trial but its number, by ``PARTS``."""
    plan = content_hash(int(horizon), np.asarray(times, dtype=np.int64), int(seed))
    hashes = (CODE, content_hash(policy), content_hash(env), plan)
    return " ".join(f"{part}={value}" for part, value in zip(PARTS, hashes, strict=True))


def differences(saved: str, wanted: str) -> list[str]:
    """Return the parts in which two identities differ; "code" if one of them does not have these parts.

    The identity of a run whose content cannot be compared begins with ``UNKNOWN``.

    >>> differences("code=1 policy=2 environment=3 plan=4", "code=1 policy=2 environment=5 plan=4")
    ['environment']
    >>> differences("0123", "code=1 policy=2 environment=3 plan=4")
    ['code']
    """
    if saved != wanted and UNKNOWN in (saved.partition(" ")[0], wanted.partition(" ")[0]):
        return ["content that cannot be compared"]
    one, other = (dict(part.partition("=")[::2] for part in text.split(" ")) for text in (saved, wanted))
    if not set(one) == set(other) == set(PARTS):
        return [] if saved == wanted else ["code"]
    return [part for part in PARTS if one[part] != other[part]]


def is_stale(parts: Sequence[str]) -> bool:
    """Return True if runs that differ in these parts may be the same experiment played by other code.

    Hashes of policy and environment contain code of this package, so they say nothing if the code differs.
    """
    return "code" in parts and "plan" not in parts
