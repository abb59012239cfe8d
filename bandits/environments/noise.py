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
    """A family of reward distributions indexed by the mean."""

    @property
    def sigma(self) -> float:
        """Sub-Gaussian parameter: E exp(s (y - mu)) <= exp(s^2 sigma^2 / 2)."""

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Independent sums of ``counts`` rewards with the given means; zero where the count is zero."""


@dataclass(frozen=True)
class Gaussian:
    """y = mu + N(0, scale^2); the sum of n is N(n mu, n scale^2)."""

    scale: float = 1.0

    @property
    def sigma(self) -> float:
        """The standard deviation."""
        return self.scale

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """One draw each. The stream advances by one draw per entry, also where the count is zero."""
        return counts * means + np.sqrt(counts) * (self.scale * rng.standard_normal(counts.shape))


@dataclass(frozen=True)
class Bernoulli:
    """y = 1 with probability mu, else 0; the sum of n is binomial. Means must lie in [0, 1]."""

    @property
    def sigma(self) -> float:
        """Half the range (Hoeffding's lemma)."""
        return 0.5

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """One binomial draw each."""
        return rng.binomial(counts, means).astype(float)


@dataclass(frozen=True)
class TwoPoint:
    """y = mu +- scale, each with probability one half: the bounded noise of largest variance."""

    scale: float = 1.0

    @property
    def sigma(self) -> float:
        """Half the range (Hoeffding's lemma)."""
        return self.scale

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """One binomial draw each."""
        return counts * means + self.scale * (2.0 * rng.binomial(counts, 0.5) - counts)


@dataclass(frozen=True)
class Bounded:
    """y uniform on [mu - scale, mu + scale]. Its sums have no simple law, so every pull is drawn."""

    scale: float = 1.0

    @property
    def sigma(self) -> float:
        """The standard deviation scale / sqrt(3): the uniform law is strictly sub-Gaussian."""
        return self.scale / np.sqrt(3.0)

    def sums(self, rng: np.random.Generator, means: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """``counts.sum()`` draws, a chunk at a time."""
        flat = counts.ravel()
        noise = np.zeros(flat.size)
        ends = np.cumsum(flat)
        for start in range(0, int(flat.sum()), CHUNK):
            stop = min(start + CHUNK, int(ends[-1]))
            draws = rng.uniform(-self.scale, self.scale, stop - start)
            owner = np.searchsorted(ends, np.arange(start, stop), side="right")
            noise += np.bincount(owner, weights=draws, minlength=flat.size)
        return counts * means + noise.reshape(counts.shape)


Scaled = type[Gaussian] | type[Bounded] | type[TwoPoint]

KINDS: dict[str, Scaled] = {"gaussian": Gaussian, "bounded": Bounded, "two-point": TwoPoint}
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
