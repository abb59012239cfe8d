"""Noise of the rewards: the sum of n pulls of an arm with mean mu, in one draw if its law is known.

A phase pulls an arm many times and only the sum of the rewards matters. For Gaussian and two-point
rewards the sum has a known distribution, so one draw replaces n of them. Other noises make n draws.
A noise of your own is any object with ``sigma`` and ``sums``.

Loops that decide pull by pull are compiled, and draw single rewards of the noises of this file themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Protocol, runtime_checkable

import numpy as np

from optdesign.runtime.jit import kernel

CHUNK = 1 << 20
"""Single draws made at a time where sums have no closed form."""


@runtime_checkable
class Noise(Protocol):
    """Protocol of a family of reward distributions indexed by the mean.

    See Also
    --------
    bandits.noise.Gaussian : Normal rewards.
    bandits.LinearEnvironment : Use a noise.

    Examples
    --------
    >>> isinstance(Gaussian(), Noise)
    True
    """

    @property
    def sigma(self) -> float:
        """Sub-Gaussian parameter: E exp(s (y - mu)) <= exp(s^2 sigma^2 / 2)."""

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return independent sums of rewards.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of the random numbers.
        means : ndarray
            Mean of every distribution.
        counts : ndarray of int
            Number of rewards in every sum.

        Returns
        -------
        ndarray
            Sums, zero where the count is zero.
        """


@dataclass(frozen=True)
class Scaled(Noise):
    """Noise with a scale, which is sigma: a standard deviation, or half the range of two values."""

    scale: float = 1.0

    @property
    def sigma(self) -> float:
        """The scale."""
        return self.scale


class Gaussian(Scaled):
    """Normal rewards: y = mu + N(0, scale^2). The sum of n is N(n mu, n scale^2).

    Parameters
    ----------
    scale : float, default 1.0
        Standard deviation.

    See Also
    --------
    bandits.noise.Bounded : Uniform rewards.

    Examples
    --------
    >>> Gaussian(0.5).sigma
    0.5
    """

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return sums, with one draw per entry, also where the count is zero."""
        return counts * means + np.sqrt(counts) * (self.scale * rng.standard_normal(counts.shape))


@dataclass(frozen=True)
class Bernoulli(Noise):
    """Binary rewards: y = 1 with probability mu, else 0. The sum of n is binomial.

    Means must lie in [0, 1].

    See Also
    --------
    bandits.noise.Gaussian : Normal rewards.

    Examples
    --------
    >>> Bernoulli().sigma
    0.5
    """

    @property
    def sigma(self) -> float:
        """Half the range (Hoeffding's lemma)."""
        return 0.5

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return sums, with one binomial draw per entry."""
        return rng.binomial(counts, means).astype(float)


class TwoPoint(Scaled):
    """Rewards mu + scale or mu - scale, each with probability 1/2: the bounded noise of largest variance.

    Parameters
    ----------
    scale : float, default 1.0
        Distance from the mean.

    See Also
    --------
    bandits.noise.Bounded : Uniform rewards.

    Examples
    --------
    >>> TwoPoint(2.0).sigma
    2.0
    """

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return sums, with one binomial draw per entry."""
        return counts * means + self.scale * (2.0 * rng.binomial(counts, 0.5) - counts)


class Bounded(Scaled):
    """Rewards uniform on [mu - scale, mu + scale]. Every pull is drawn, because the sums have no simple law.

    Parameters
    ----------
    scale : float, default 1.0
        Half the length of the interval.

    See Also
    --------
    bandits.noise.TwoPoint : Rewards with two values.

    Examples
    --------
    >>> round(float(Bounded(3.0).sigma), 6)
    1.732051
    """

    @property
    def sigma(self) -> float:
        """Standard deviation scale / sqrt(3); the uniform law is strictly sub-Gaussian."""
        return self.scale / np.sqrt(3.0)

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return sums of ``counts.sum()`` draws, made in chunks."""
        flat = counts.ravel()
        noise = np.zeros(flat.size)
        ends = np.cumsum(flat)
        for start in range(0, int(flat.sum()), CHUNK):
            stop = min(start + CHUNK, int(ends[-1]))
            draws = rng.uniform(-self.scale, self.scale, stop - start)
            owner = np.searchsorted(ends, np.arange(start, stop), side="right")
            noise += np.bincount(owner, weights=draws, minlength=flat.size)
        return counts * means + noise.reshape(counts.shape)


KINDS: dict[str, type[Scaled]] = {"gaussian": Gaussian, "bounded": Bounded, "two-point": TwoPoint}
"""Noises with a scale, by name; "bernoulli" has none."""


GAUSSIAN, BERNOULLI, TWO_POINT, BOUNDED = range(4)

LAWS: dict[type, int] = {Gaussian: GAUSSIAN, Bernoulli: BERNOULLI, TwoPoint: TWO_POINT, Bounded: BOUNDED}
"""Noises that kernels draw from. Subclasses are not among them: their sums may be their own."""


def law(noise: Noise) -> tuple[int, float] | None:
    """Return number and scale of a noise that kernels can draw from, else None."""
    code = LAWS.get(type(noise))
    return None if code is None else (code, float(getattr(noise, "scale", 1.0)))


@kernel
def draw(rng, kind, scale, mean):
    """Draw one reward. Advances rng."""
    if kind == GAUSSIAN:
        return mean + scale * rng.standard_normal()
    if kind == BERNOULLI:
        return 1.0 if rng.random() < mean else 0.0
    if kind == TWO_POINT:
        return mean + (scale if rng.random() < 0.5 else -scale)
    return mean + scale * (2.0 * rng.random() - 1.0)


def noise_named(name: str | Noise, scale: float) -> Noise:
    """Return the noise of that name and scale; a Noise object is returned unchanged."""
    if scale != 1.0 and (name == "bernoulli" or (not isinstance(name, str) and isinstance(name, Noise))):
        raise ValueError(
            f"scale must be left out with the noise {name!r}, which has none or its own; got {scale}. "
            f"Noises with a scale are {', '.join(KINDS)}."
        )
    if isinstance(name, str):
        if name == "bernoulli":
            return Bernoulli()
        if name in KINDS:
            if not (np.isfinite(scale) and scale >= 0.0):
                raise ValueError(f"scale must be finite and not negative; got {scale}. The paper takes 1.")
            return KINDS[name](float(scale))
    elif isinstance(name, Noise):
        if not isinstance(name.sigma, Real) or not 0.0 <= name.sigma < np.inf:
            raise ValueError(
                f"sigma of the noise must be finite and not negative; got {name.sigma!r}. "
                "It is the sub-Gaussian parameter of one reward."
            )
        return name
    known = ", ".join([*KINDS, "bernoulli"])
    raise ValueError(f"noise must be one of {known}, or an object with sigma and sums(); got {name!r}.")
