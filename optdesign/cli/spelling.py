"""Arguments and statuses of the package in the words of the command line."""

from __future__ import annotations

from optdesign.design.result import DesignResult, Status
from optdesign.errors import InputError
from optdesign.runs.runs import Runs, RunStatus

OPTIONS = {
    "budgets": "--budget",
    "groups": "--group",
    "max_iter": "--max-iter",
    "method": "--method",
    "model": "--model",
    "parameter_blocks": "--parameter-block",
    "time_limit": "--time-limit",
    "tol": "--tol",
    "tries": "--tries",
    "where": "--where",
}
"""The options that set the arguments of ``DesignProblem``, ``candidates``, ``solve`` and ``exact``."""

STATUSES: dict[Status | RunStatus, str] = {
    Status.MAX_ITER: (
        "stopped at --max-iter; the weights are feasible. Raise --max-iter or --tol, or change --method"
    ),
    Status.TIME_LIMIT: "stopped at --time-limit; the weights are feasible. Raise --time-limit or --tol",
    Status.PRECISION: (
        "optimal up to round-off; the gap is the bound that double precision proves. Ask for a larger --tol"
    ),
    RunStatus.REPEATED: (
        "10 tries found the same log det and none a larger one; set --tries or --time-limit to search on"
    ),
    RunStatus.BUDGET: ("stopped after the default work, about 1 s; set --tries or --time-limit to search on"),
    RunStatus.TRIES: "all tries done; raise --tries or set --time-limit to search on",
    RunStatus.TRIES_IN_TIME: (
        "all tries done before --time-limit; raise --tries, or leave it out, to search on"
    ),
    RunStatus.TIME_LIMIT: "stopped at --time-limit; raise it to search on",
}
"""Messages of the statuses that name arguments; other statuses have the same message everywhere."""


def as_option(error: InputError, **others: str) -> InputError:
    """Return an error whose argument is spelled as the option that sets it. ``others`` come first."""
    argument = error.argument
    return error.replace(argument=others.get(argument, OPTIONS.get(argument, argument)))


def status(found: DesignResult | Runs) -> str:
    """Return the reason why a solver or a search stopped, with advice in terms of options."""
    message = STATUSES.get(found.status, found.status.value)
    return message + found.caveats if isinstance(found, Runs) else message
