"""The option ``parameters``: every arm has a parameter vector of its own, or all have the same."""

from __future__ import annotations

from bandits.environments.linear import LinearEnvironment

DISJOINT, SHARED = "disjoint", "shared"
PARAMETERS = (DISJOINT, SHARED)


def check_parameters(parameters: str) -> None:
    """Raise ValueError for other words."""
    if parameters not in PARAMETERS:
        raise ValueError(f"parameters must be one of {', '.join(PARAMETERS)}; got {parameters!r}.")


def blocks(parameters: str, env: LinearEnvironment) -> int:
    """Return the number of parameter vectors that a policy estimates: K, or 1 if they are shared."""
    if parameters == DISJOINT:
        return env.arms
    if not env.common:
        raise ValueError(
            "parameters='shared' needs an environment whose arms have equal parameters; this one has "
            "different rows. Pass parameters of shape (dim,) to it, or use parameters='disjoint'."
        )
    return 1


def suffix(parameters: str) -> str:
    """Return the part of a policy's name that shows the option."""
    return " (shared)" if parameters == SHARED else ""
