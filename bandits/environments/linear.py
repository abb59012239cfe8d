"""The environment of a federated linear bandit: M clients, K arms, rewards linear in private features.

    y = x_{i,a}' theta_a + noise         theta_a = theta for all arms if parameters are shared

An environment holds the parameters, which policies must not read. Policies see the features (each client its
own), sums of rewards, and the bounds ell <= ||x|| <= L.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bandits.checks import LARGEST_SIZE, SMALLEST_SIZE
from bandits.environments.noise import Bernoulli, Noise, law, noise_named

TIE = 1e-12
"""Arms whose mean is within this of the best count as tied, relative to the largest sum |x|' |theta|."""

ARRAYS = ("features", "parameters", "means", "gaps", "optimal")
"""Attributes of an environment that cannot be written to."""


@dataclass(frozen=True, eq=False)
class LinearEnvironment:
    """Features, parameters and noise of a linear bandit with several clients. Frozen.

    Parameters
    ----------
    features : array_like of shape (M, K, d)
        Features x_{i,a}, none of them zero. They are copied, cannot be written to, and stay the same in all
        rounds.
    parameters : array_like of shape (K, d) or (d,)
        One vector per arm, or one for all arms.
    noise : {"gaussian", "bounded", "two-point", "bernoulli"} or Noise, default "gaussian"
        Distribution of the rewards.
    scale : float, default 1.0
        Scale of a noise given by name; for Gaussian noise its standard deviation. "bernoulli" has none.
    ell : float, optional
        Lower bound on the norms of the features that policies may use. Default: the tightest. A given bound
        must hold.
    L : float, optional
        Upper bound on the norms of the features. Default: the tightest.
    s : float, optional
        Upper bound on the norms of the parameters. Default: the tightest.

    Attributes
    ----------
    features : ndarray of shape (M, K, d)
        Features.
    parameters : ndarray of shape (K, d) or (d,)
        Parameters.
    noise : Noise
        Distribution of the rewards.
    shared : bool
        True if all arms share one parameter vector.
    means : ndarray of shape (M, K)
        Expected reward of every client and arm.

    Raises
    ------
    ValueError
        If an argument breaks a rule.

    See Also
    --------
    bandits.environments.synthetic : Return the instance of the paper's text.
    bandits.simulate : Play a policy on an environment.

    Examples
    --------
    >>> env = LinearEnvironment([[[1.0], [0.5]]], [[0.2], [0.8]])
    >>> env.means.tolist(), env.gaps.tolist()
    ([[0.2, 0.4]], [[0.2, 0.0]])
    """

    features: np.ndarray
    parameters: np.ndarray
    noise: Noise
    shared: bool
    ell: float
    L: float
    s: float
    means: np.ndarray = field(repr=False)

    def __init__(
        self,
        features: ArrayLike,
        parameters: ArrayLike,
        noise: str | Noise = "gaussian",
        scale: float = 1.0,
        *,
        ell: float | None = None,
        L: float | None = None,
        s: float | None = None,
    ) -> None:
        x, theta = _numbers("features", features), _numbers("parameters", parameters)
        if x.ndim != 3 or 0 in x.shape:
            raise ValueError(
                f"features must have shape (clients, arms, dim), none of them 0; got {x.shape}. "
                "Stack one (arms, dim) array per client; features that change from round to round are not "
                "supported."
            )
        _, k, d = x.shape
        if theta.shape not in ((d,), (k, d)):
            raise ValueError(
                f"parameters must have shape ({k}, {d}), one row per arm, or ({d},) if shared; "
                f"got {theta.shape}."
            )
        if not (np.all(np.isfinite(x)) and np.all(np.isfinite(theta))):
            raise ValueError("features and parameters must be finite; some entries are not. Fill them in.")
        sizes = np.abs(x).max(axis=2)
        if sizes.min() == 0.0:
            i, a = np.unravel_index(int(np.argmin(sizes)), sizes.shape)
            raise ValueError(
                f"features must not be zero; features[{i}, {a}] is. "
                "Add a constant feature, or drop the client or the arm."
            )
        if sizes.min() < SMALLEST_SIZE or max(sizes.max(), np.abs(theta).max()) > LARGEST_SIZE:
            raise ValueError(
                f"features must lie in {SMALLEST_SIZE:g} .. {LARGEST_SIZE:g} in size, and parameters below "
                f"it; features span {sizes.min():g} .. {sizes.max():g}, and the largest parameter is "
                f"{np.abs(theta).max():g}. Change the units."
            )
        norms = np.linalg.norm(x, axis=2)
        low, high = float(norms.min()), float(norms.max())
        size = float(np.linalg.norm(np.atleast_2d(theta), axis=1).max())
        values = {
            "features": x,
            "parameters": theta,
            "noise": noise_named(noise, scale),
            "shared": theta.ndim == 1,
            "ell": _bound("ell", ell, low, ell is None or 0.0 < ell <= low),
            "L": _bound("L", L, high, L is None or high <= L < np.inf),
            "s": _bound("s", s, size, s is None or size <= s < np.inf),
            "means": np.einsum("ikd,kd->ik", x, np.broadcast_to(theta, (k, d))),
        }
        for name, value in values.items():
            object.__setattr__(self, name, frozen(value) if isinstance(value, np.ndarray) else value)
        if isinstance(self.noise, Bernoulli) and not np.all((self.means >= 0.0) & (self.means <= 1.0)):
            raise ValueError(
                f"means must lie in [0, 1] for Bernoulli rewards; they span [{self.means.min():g}, "
                f"{self.means.max():g}]. Rescale the features or the parameters."
            )

    @property
    def clients(self) -> int:
        """Number M of clients."""
        return self.features.shape[0]

    @property
    def arms(self) -> int:
        """Number K of arms."""
        return self.features.shape[1]

    @property
    def dim(self) -> int:
        """Length of a feature vector, d."""
        return self.features.shape[2]

    @property
    def sigma(self) -> float:
        """Sub-Gaussian parameter of the noise."""
        return self.noise.sigma

    @property
    def common(self) -> bool:
        """True if all arms have equal parameters, declared as shared or not."""
        return bool(self.shared or np.all(self.parameters == self.parameters[0]))

    @cached_property
    def gaps(self) -> np.ndarray:
        """Expected loss of each client by one pull of each arm, shape (M, K)."""
        return frozen(self.means.max(axis=1, keepdims=True) - self.means)

    @cached_property
    def optimal(self) -> np.ndarray:
        """True for the best arms of each client, ties included, shape (M, K)."""
        theta = np.broadcast_to(np.abs(self.parameters), self.features.shape[1:])
        sizes = np.einsum("ikd,kd->ik", np.abs(self.features), theta)
        return frozen(self.gaps <= TIE * sizes.max(axis=1, keepdims=True))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, whose arrays cannot be written to either."""
        for name, value in state.items():
            fixed = name in ARRAYS and isinstance(value, np.ndarray)
            object.__setattr__(self, name, frozen(value) if fixed else value)

    def pull(self, rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
        """Return sums of the rewards of pulls. A subclass may override it.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the random numbers.
        counts : ndarray of int of shape (M, K)
            Number of pulls of every client and arm.

        Returns
        -------
        ndarray of shape (M, K)
            Sums of the rewards.
        """
        return self.noise.sums(rng, self.means, counts)

    @property
    def law(self) -> tuple[int, float] | None:
        """Number and scale of a noise that kernels can draw; None if ``pull`` has to draw the rewards."""
        return law(self.noise) if type(self).pull is LinearEnvironment.pull else None

    def fresh(self) -> LinearEnvironment:
        """Return the environment for a trial.

        Returns
        -------
        LinearEnvironment
            This environment if it has no state, else a deep copy.
        """
        if type(self) is LinearEnvironment and self.law is not None:
            return self
        try:
            return copy.deepcopy(self)
        except TypeError as error:
            raise ValueError(
                f"environments with a pull or noise of their own must be copyable, for every trial anew; "
                f"{error}. Give {type(self).__name__} a method fresh, or its noise a __deepcopy__."
            ) from None


def frozen(array: np.ndarray) -> np.ndarray:
    """Return an array of the same values that cannot be made writable: itself if it is one, else a copy.

    >>> x = frozen(np.ones(2))
    >>> frozen(x) is x
    True
    """
    base: object = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    if isinstance(base, bytes):
        return array
    return np.frombuffer(array.tobytes(), dtype=array.dtype).reshape(array.shape)


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Return a copy as an array of doubles, or raise ValueError."""
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must be given; some entries are masked. Fill them in.")
    try:
        if np.iscomplexobj(values):
            raise TypeError("they are complex")
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be an array of real numbers; got {type(values).__name__}: {error}."
        ) from None


def _bound(name: str, given: float | None, actual: float, holds: bool) -> float:
    if not holds:
        raise ValueError(
            f"{name} must bound the environment; got {given}, the data have {actual:g}. "
            "Give a finite bound, or leave it out to use that."
        )
    return actual if given is None else float(given)
