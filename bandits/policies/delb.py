"""DELB: distributed elimination for linear bandits, where all clients have the same arms.

Wang, Hu, Chen, Wang: Distributed Bandit Learning: Near-Optimal Regret with Efficient Communication, ICLR
2020. One parameter vector, and features that are the same for every client. In phase l = 1, 2, ... the
arms still active are explored by a G-optimal design pi until every estimate is within 2^-l of the truth,

    n(a) = ceil( 2 sigma^2 G(pi) 4^l log( 2 K l (l + 1) / delta ) pi(a) )      pulls by all clients together,

and arms whose estimate is more than 2 * 2^-l below the best are dropped. The pulls are laid out arm after
arm and cut into M equal pieces, so clients report at most M + (arms in the design) means a phase; each is
sent the d numbers of the estimate, and computes the next phase itself. One client sends the K d numbers of
the features with the first means, since the server needs them for the estimate. A best arm survives with
probability 1 - delta, and the regret is of order sqrt(d M T log(K log(T) / delta)) in all.

The paper has the constant 600 d^2 log(M T) in n(a), since its core sets are only approximately optimal;
here the design is certified, G = max_a ||x_a||^2_V <= d + gap, and the union over arms and phases is spelt
out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bandits.checks import LARGEST, check_positive, check_probability, check_sigma, is_number
from bandits.policies.aggregation import are_accurate, check_separate, pseudo_inverses
from bandits.policies.design import certified, rule_named
from bandits.policies.parameters import SHARED, blocks
from bandits.trials.trial import Trial
from optdesign import DesignProblem


@dataclass(frozen=True)
class DELB:
    """DELB: distributed elimination for clients with the same features and one parameter vector.

    Parameters
    ----------
    delta : float, default 0.1
        Probability with which a best arm may be eliminated.
    design_gap : float, default 0.1
        Gap G - d to which the design of each phase is solved.
    design_method : {"auto", "bca", "newton"}, default "auto"
        Method of :func:`optdesign.solve`.
    sigma : float, optional
        Sub-Gaussian parameter of the rewards. Default: that of the environment.

    See Also
    --------
    bandits.environments.identical : Return an instance on which it can be played.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.identical(clients=3, arms=2, dim=2)
    >>> bandits.simulate(bandits.DELB(), env, 50, trials=1).policy
    'DELB'
    """

    delta: float = 0.1
    design_gap: float = 0.1
    design_method: str = "auto"
    sigma: float | None = None

    def __post_init__(self) -> None:
        rule_named(self.design_method)
        check_probability("delta", self.delta)
        if not (is_number(self.design_gap) and self.design_gap > 0.0):
            raise ValueError(f"design_gap must be positive; got {self.design_gap}.")
        check_positive("sigma", self.sigma)

    @property
    def name(self) -> str:
        """Class name."""
        return type(self).__name__

    def play(self, trial: Trial) -> None:
        """Play one trial, phase by phase.

        Parameters
        ----------
        trial : Trial
            Trial to play.
        """
        env, ledger, clock = trial.env, trial.ledger, trial.clock
        blocks(SHARED, env)
        if np.any(env.features != env.features[0]):
            raise ValueError(
                "DELB needs an environment whose clients all have the same features; these differ. "
                "Give every client those of one, or play another policy."
            )
        x, sigma = env.features[0], env.sigma if self.sigma is None else self.sigma
        check_sigma(sigma)
        active, theta, phase = np.arange(env.arms), np.zeros(env.dim), 0
        while not trial.done:
            phase += 1
            start, before = clock.time, (ledger.uploaded, ledger.downloaded)
            best = np.full(env.clients, active[np.argmax(x[active] @ theta)])
            if len(active) == 1:
                clock.advance(np.zeros(env.means.shape, dtype=np.int64), best, trial.horizon - clock.time)
                total, iterations, gap = np.zeros(env.arms, dtype=np.int64), 0, 0.0
            else:
                problem = DesignProblem(x[active])
                design = rule_named(self.design_method)(problem, self.design_gap, None)
                weights, certificate = certified(problem, design.weights)
                iterations, gap = design.iterations, certificate.gap
                total = np.zeros(env.arms, dtype=np.int64)
                total[active] = pulls_needed(weights, certificate.g_value, phase, env.arms, sigma, self.delta)
                shares = dealt(total, env.clients)
                clock.advance(shares, best, int(shares.sum(axis=1).max()))
                if not trial.done:
                    sums = trial.pull(shares).sum(axis=0)
                    theta, rank, accurate = estimate(x, total, sums, sigma)
                    if rank < problem.rank or not accurate:
                        check_separate(env, sigma)
                    ledger.uploaded += int((shares > 0).sum()) + (x.size if phase == 1 else 0)
                    ledger.downloaded += env.clients * env.dim
                    values = x[active] @ theta
                    active = active[values >= values.max() - 2.0 * 0.5**phase]
            kept = np.isin(np.arange(env.arms), active)
            lost = int((env.optimal & ~kept).any(axis=1).sum())
            trial.phases.append(
                (0, phase, start, clock.time - start, len(active), (total > 0).sum() / env.clients,
                 iterations, gap, ledger.uploaded - before[0], ledger.downloaded - before[1], lost)
            )  # fmt: skip


def pulls_needed(
    weights: np.ndarray, g: float, phase: int, arms: int, sigma: float, delta: float
) -> np.ndarray:
    """Return n(a), the pulls with which estimates of active arms have errors of at most 2^-l in all phases.

    An estimate with n pulls by the design has variance at most sigma^2 g / n; the probabilities
    delta / (K l (l + 1)) of all arms and phases add up to delta.
    """
    n = 2.0 * sigma**2 * g * 4.0**phase * math.log(2.0 * arms * phase * (phase + 1) / delta)
    if not n <= LARGEST:
        raise ValueError(
            f"sigma must be small enough for pulls up to 2^53; with sigma = {sigma} phase {phase} needs "
            f"{n:.3g}. Divide rewards and sigma by a constant."
        )
    return np.ceil(weights * n).astype(np.int64)


def dealt(total: np.ndarray, clients: int) -> np.ndarray:
    """Return the pulls of every client, (M, K): all pulls, arm after arm, cut into pieces of equal length.

    >>> dealt(np.array([3, 0, 5]), 2).tolist()
    [[3, 0, 1], [0, 0, 4]]
    """
    piece = -(-int(total.sum()) // clients)
    ends = np.cumsum(total)
    edges = np.minimum(np.arange(clients + 1) * piece, ends[-1])
    low = np.maximum(edges[:-1, None], (ends - total)[None, :])
    high = np.minimum(edges[1:, None], ends[None, :])
    return np.maximum(high - low, 0)


def estimate(
    x: np.ndarray, pulls: np.ndarray, sums: np.ndarray, sigma: float
) -> tuple[np.ndarray, int, bool]:
    """Return least squares on the pulls of all clients, its rank, and True if it is accurate up to noise.

    It is of least norm if the arms do not span R^d.
    """
    information = np.einsum("a,aj,ak->jk", pulls, x, x)
    inverse, rank = pseudo_inverses(information, np.array(x.shape[1]))
    moment = sums @ x
    theta = inverse @ moment
    return theta, int(rank), are_accurate(information, moment, theta, inverse, sigma)
