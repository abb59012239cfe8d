"""Property-based tests of bandit code: environments of every kind, and rules for any policy.

>>> import bandits
>>> from bandits.testing import check_policy
>>> check_policy(bandits.LocalUCB(), max_examples=5)

:func:`environments` draws small ones whose numbers are exact, :func:`random_environments` generic ones from
seeds. :func:`assert_played` takes a run, :func:`assert_plays` a policy and an environment, and
:func:`check_policy` looks for an environment on which a policy of yours breaks a rule.

``policy`` has the assertions; read it first. ``strategies`` draws the environments.

Needs hypothesis: the extra ``testing`` of the distribution optdesign-bandits.
"""

try:
    import hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError(
        "bandits.testing needs hypothesis, which is not installed. Install the extra testing of "
        "optdesign-bandits; from a clone: python -m pip install '.[testing]'"
    ) from error

from bandits.testing.policy import assert_played, assert_plays, check_policy
from bandits.testing.strategies import NOISES, environments, random_environments

__all__ = [
    "NOISES",
    "assert_played",
    "assert_plays",
    "check_policy",
    "environments",
    "random_environments",
]
