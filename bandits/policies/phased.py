"""Options of Fed-PE and its variants, and the loop over the phases of a trial.

A trial needs no network: one client object stands for all M clients, and messages pass through a ledger that
counts their scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bandits.checks import LARGEST, check_positive, check_probability, check_sigma, is_number, whole
from bandits.environments.linear import LinearEnvironment
from bandits.policies.aggregation import check_separate
from bandits.policies.design import DesignRule, phase_rule, sparse
from bandits.policies.parameters import SHARED, blocks, check_parameters, suffix
from bandits.protocol import VECTORS, check_protocol
from bandits.theory.confidence import alpha
from bandits.theory.schedules import Exponential, Lengths, Schedule, checked_lengths
from bandits.trials.trial import Trial
from optdesign import apportion

if TYPE_CHECKING:
    from bandits.policies.fedpe import Client, Server

EXPONENTIAL = Exponential()

ROUNDING_ERROR = 1e-12
"""Upper bound on the relative error of a design weight by round-off."""

Rounding = Callable[[np.ndarray, int], np.ndarray]
"""Function of the weights and the exploration budget f^p of phase p that returns exploration pulls.

Both arrays have the shape (M, K), for M clients and K arms. Phase p has f^p + K pulls of each client. The
function must return at most f^p + K pulls per client. The information of the pulls must have the rank of the
design."""


def ceiling(weights: np.ndarray, f: int) -> np.ndarray:
    """Return the pulls ceil(pi_{i,a} f^p) of the paper; every positive weight gets a pull.

    A product that differs from an integer by round-off only is that integer: the weight 0.5 + 1e-15 and
    f^p = 128 give 64 pulls, not 65.

    Parameters
    ----------
    weights : ndarray of shape (M, K)
        Weights of the design.
    f : int
        Exploration budget f^p of the phase.

    Returns
    -------
    ndarray of int of shape (M, K)
        Pulls.

    See Also
    --------
    bandits.efficient : Keep to the exploration budget.

    Examples
    --------
    >>> ceiling(np.array([[0.5, 0.3, 0.2]]), 8).tolist()
    [[4, 3, 2]]
    """
    products, nearest, is_whole = _products(weights, f)
    return np.where(is_whole, nearest, np.ceil(products)).astype(np.int64)


def efficient(weights: np.ndarray, f: int) -> np.ndarray:
    """Round the weights of every client by the efficient rounding of Pukelsheim and Rieder (1992).

    The weights of client i sum to its budget b_i, which is 1 by default. The client gets floor(b_i f^p)
    pulls. If this is less than one pull per arm with positive weight, the weights of the client are rounded
    up as in the paper, so that the rank is kept.

    Parameters
    ----------
    weights : ndarray of shape (M, K)
        Weights of the design.
    f : int
        Exploration budget f^p of the phase.

    Returns
    -------
    ndarray of int of shape (M, K)
        Pulls.

    See Also
    --------
    bandits.ceiling : Round up, as in the paper.
    optdesign.apportion : Round rows of weights.

    Examples
    --------
    >>> efficient(np.array([[0.5, 0.3, 0.2]]), 8).tolist()
    [[4, 2, 2]]
    """
    pulls = ceiling(weights, f)
    products, nearest, is_whole = _products(weights.sum(axis=1), f)
    # A sum of weights that exceeds 1 by round-off would give a few pulls more than 2^53 if f^p is 2^53.
    runs = np.where(is_whole, nearest, np.floor(products)).astype(np.int64).clip(max=2**53)
    enough = np.flatnonzero(runs >= (weights > 0).sum(axis=1))
    pulls[enough] = apportion(weights[enough], runs[enough])
    return pulls


def _products(weights: np.ndarray, f: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights * f, the nearest integers, and whether they differ by no more than round-off.

    The tolerance is relative. For products above 5e11 it exceeds 1/2, and the nearest integer is taken.
    """
    if not 1 <= f <= LARGEST:
        raise ValueError(f"f must lie in 1 .. 2^53 to be exact in double precision; got {f}.")
    products = weights * float(f)
    nearest = np.rint(products)
    return products, nearest, np.abs(products - nearest) <= ROUNDING_ERROR * products


KeepRule = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""Function of estimates r, half-widths u and active arms that returns True for arms to keep.

All arrays have the shape (m, K), for the m clients of a batch and K arms."""


def confident(r: np.ndarray, u: np.ndarray, active: np.ndarray) -> np.ndarray:
    """Keep arms whose upper bound is at least the lower bound of the arm with the largest estimate.

    This is the rule of the paper.

    Parameters
    ----------
    r : ndarray of shape (M, K)
        Estimated rewards.
    u : ndarray of shape (M, K)
        Half-widths of the confidence intervals.
    active : ndarray of bool of shape (M, K)
        Active arms.

    Returns
    -------
    ndarray of bool of shape (M, K)
        True for arms to keep. Entries of inactive arms are ignored.

    See Also
    --------
    bandits.Phased : Use a rule of this form as ``keep``.

    Examples
    --------
    >>> active = np.ones((1, 3), dtype=bool)
    >>> confident(np.array([[0.9, 0.8, 0.2]]), np.full((1, 3), 0.1), active).tolist()
    [[True, True, False]]
    """
    best = np.argmax(np.where(active, r, -np.inf), axis=1)
    return r + u >= np.take_along_axis(r - u, best[:, None], axis=1)


@dataclass(frozen=True, eq=False)
class Setting:
    """Constants of a trial that clients and server share."""

    clients: int
    arms: int
    dim: int
    horizon: int
    lengths: np.ndarray
    """Exploration budgets f^1 .. f^H of the phases."""
    delta: float
    alpha: float
    """Factor of the half-widths u_{i,a} = alpha sigma ||x_{i,a}||_{V_a} / ell of Fed-PE."""
    ell: float
    """Lower bound on the norms of the features."""

    sigma: float
    """Sub-Gaussian parameter of the rewards; 1 in the paper."""
    shared: bool
    protocol: str

    def f(self, phase: int) -> int:
        """Return the exploration budget f^p of a phase; f^0 is 1."""
        return 1 if phase == 0 else int(self.lengths[phase - 1])


@dataclass(frozen=True)
class Phased:
    """Options of Fed-PE and its variants; the defaults are the paper's, except ``design_method``.

    Parameters
    ----------
    parameters : {"disjoint", "shared"}, default "disjoint"
        "disjoint": every arm has its own parameter vector; "shared": all arms have the same.
    delta : float, default 0.1
        Probability with which confidence intervals may fail.
    schedule : Schedule or sequence of int
        Exploration budgets f^p; see :mod:`bandits.theory.schedules`. Phase p has f^p + K pulls of each
        client, for K arms. Default: 2^p.
    protocol : {"vectors", "scalars"}, default "vectors"
        "vectors": the messages of the paper's algorithms. "scalars": shorter messages; see
        :mod:`bandits.protocol`. Decisions are the same.
    design_gap : float, default 0.1
        Tolerance epsilon of the stopping rule G(pi) <= D + epsilon of Algorithm 3, for the design of each
        phase. D is the sum of the ranks of the active features over the parameter blocks. A parameter block
        is one arm if parameters are disjoint, and all arms if they are shared. If there are C classes of
        collinear clients (:mod:`bandits.policies.collinearity`), each class has a separate design with the
        tolerance epsilon / C.
    design_method : {"auto", "bca", "newton"}, default "auto"
        Method that computes the design of a phase.

        - "bca" is block coordinate ascent, Algorithm 3 of the paper, started from the uniform design. A sweep
          updates the weights of every client once. Most of the final weights are exactly zero. Every positive
          weight costs at least one pull. The paper has no algorithm for shared parameters. For them, a sweep
          exchanges weight between pairs of arms of each client.
        - "auto" begins with at most 200 sweeps of "bca". With N > 50,000 candidates the limit is 10^7 / N
          sweeps, but at least 10. A candidate is an active arm of a client. If the limit is reached before
          the tolerance, ``optdesign.solve(method="auto")`` continues from the weights of the last sweep. The
          ``iterations`` of such a design cannot be compared with those of Algorithm 3; see
          :mod:`bandits.policies.design`. If ``warm_start`` gives a start, there are no sweeps before
          ``optdesign.solve``.
        - "newton" is ``optdesign.solve(method="newton")``.
    warm_start : bool, default False
        True to start the design of a phase from the design of the phase before. The first design has no such
        start.
    design : callable, optional
        Function in place of the method: see :mod:`bandits.policies.design`.
    keep : callable, default confident
        Function of estimates, half-widths and active arms that returns True for the arms to keep.
    rounding : callable, default ceiling
        Function of weights and f^p that returns exploration pulls. ``ceiling`` is the rule of the paper.
        ``efficient`` returns floor(budgets[i] f^p) pulls for client i. It rounds up if this is smaller than
        the number of arms with positive weight.
    sparse : bool, default False
        True to replace the design by one with the same information and at most M + Q positive weights
        (:func:`optdesign.sparsify`). Q is the sum of r (r + 1) / 2 over the ranks r of the parameter blocks.
        Fewer positive weights give fewer exploration pulls after rounding up, and fewer scalars.
    budgets : tuple of float, optional
        Client i explores with a budget of budgets[i] f^p in each phase (the paper's lemma for clients that
        work asynchronously), with budgets[i] in (0, 1]. It spends the rest of the phase on its estimated best
        arm. Default: all 1.
    ell : float, optional
        Lower bound on the norms of the features. Default: that of the environment.
    sigma : float, optional
        Sub-Gaussian parameter of the rewards. Default: that of the environment.

    See Also
    --------
    bandits.FedPE : The algorithm of the paper.
    bandits.Policy : Protocol of all policies.

    Examples
    --------
    >>> import bandits
    >>> policy = bandits.FedPE(protocol="scalars", rounding=bandits.efficient)
    >>> policy.lengths(horizon=100, arms=10).tolist()
    [2, 4, 8, 16, 32]
    """

    parameters: str = "disjoint"
    delta: float = 0.1
    schedule: Schedule | Sequence[int] = EXPONENTIAL
    protocol: str = VECTORS
    design_gap: float = 0.1
    design_method: str = "auto"
    warm_start: bool = False
    design: DesignRule | None = None
    keep: KeepRule = confident
    rounding: Rounding = ceiling
    sparse: bool = False
    budgets: tuple[float, ...] | None = None
    ell: float | None = None
    sigma: float | None = None

    def __post_init__(self) -> None:
        check_parameters(self.parameters)
        check_protocol(self.protocol)
        if isinstance(self.schedule, Sequence | np.ndarray):
            object.__setattr__(self, "schedule", Lengths(self.schedule))
        phase_rule(self.design_method)
        check_probability("delta", self.delta)
        if not (is_number(self.design_gap) and self.design_gap > 0.0):
            raise ValueError(f"design_gap must be positive; got {self.design_gap}. The paper takes 0.1.")
        check_positive("ell", self.ell)
        check_positive("sigma", self.sigma)
        if self.budgets is not None:
            budgets = tuple(float(b) for b in self.budgets)
            if not all(0.0 < b <= 1.0 for b in budgets):
                raise ValueError(f"budgets must lie in (0, 1]; got {budgets}. They are fractions of f^p.")
            object.__setattr__(self, "budgets", budgets)

    @property
    def name(self) -> str:
        """Class name, followed by " (shared)" if the parameters are shared."""
        return type(self).__name__ + suffix(self.parameters)

    @property
    def shared(self) -> bool:
        """True if all arms are taken to have the same parameter vector."""
        return self.parameters == SHARED

    def lengths(self, horizon: int, arms: int) -> np.ndarray:
        """Return the exploration budgets f^1 .. f^H of the phases; phase H reaches the horizon.

        Phase p has f^p + K pulls of each client. The horizon may cut phase H.

        Parameters
        ----------
        horizon : int
            T, the number of pulls of each client.
        arms : int
            Number K of arms.

        Returns
        -------
        ndarray of int
            Exploration budgets.
        """
        assert not isinstance(self.schedule, Sequence)
        return checked_lengths(self.schedule, horizon, arms)

    def setting(self, clients: int, arms: int, dim: int, horizon: int, ell: float, sigma: float) -> Setting:
        """Return the constants of clients and server: sizes, exploration budgets, confidence level, bounds.

        Parameters
        ----------
        clients : int
            Number M of clients.
        arms : int
            Number K of arms.
        dim : int
            Length d of a feature vector.
        horizon : int
            T, the number of pulls of each client.
        ell : float
            Lower bound on the norms of the features.
        sigma : float
            Sub-Gaussian parameter of the rewards.

        Returns
        -------
        Setting
            The constants.
        """
        if horizon < 1:
            raise ValueError(f"horizon must be at least 1; got {horizon}.")
        if self.budgets is not None and len(self.budgets) != clients:
            raise ValueError(f"budgets must have one entry per client, {clients}; got {len(self.budgets)}.")
        ell, sigma = (ell if self.ell is None else self.ell), (sigma if self.sigma is None else self.sigma)
        check_sigma(sigma)
        lengths = self.lengths(horizon, arms)
        level = alpha(clients, arms, dim, len(lengths), self.delta, shared=self.shared)
        return Setting(
            clients, arms, dim, horizon, lengths, self.delta, level, ell, sigma, self.shared, self.protocol
        )

    def regret_bound(self, env: LinearEnvironment, horizon: int, time: int | None = None) -> float:
        """Return a bound on the total regret that holds with probability 1 - delta.

        The regret includes the first pull of every arm. G(pi) is the sum over clients of the largest variance
        of an active arm. The theorems assume an optimal design, for which G = D, the sum of the ranks of the
        parameter blocks. B is the number of parameter vectors: K if disjoint, 1 if shared. D <= d B, and
        D = d B if the features of each parameter block span R^d. The policy has G <= D + design_gap <= d B +
        design_gap, so the bound is multiplied by sqrt(1 + design_gap / (d B)).

        Parameters
        ----------
        env : LinearEnvironment
            Environment.
        horizon : int
            T, the number of pulls of each client.
        time : int, optional
            Number of pulls of each client up to which regret is counted. Default: the horizon.

        Returns
        -------
        float
            Bound on the total regret of all clients.
        """
        own_rules = self.design is not None or self.keep is not confident or self.rounding is not ceiling
        if own_rules or self.budgets is not None:
            raise ValueError(self._no_theorem())
        if (self.ell or env.ell) > env.ell or (self.sigma or env.sigma) < env.sigma:
            raise ValueError(
                f"ell must be at most the environment's {env.ell:g} and sigma at least its {env.sigma:g}; "
                f"got ell = {self.ell}, sigma = {self.sigma}. The intervals are too narrow for a theorem."
            )
        shared, lengths = self.shared, self.lengths(horizon, env.arms)
        until = horizon if time is None else whole("time", time, 1, horizon)
        bound = self.theorem(
            Lengths(lengths).lengths(until, env.arms) if len(lengths) else lengths,
            until,
            len(lengths),
            clients=env.clients,
            arms=env.arms,
            dim=env.dim,
            delta=self.delta,
            ratio=env.L / (env.ell if self.ell is None else self.ell),
            shared=shared,
            sigma=env.sigma if self.sigma is None else self.sigma,
        )
        inexact = np.sqrt(1.0 + self.design_gap / (env.dim * (1 if shared else env.arms)))
        return float(inexact * bound + env.gaps.sum())

    def theorem(self, lengths: np.ndarray, time: int, phases: int, **constants: Any) -> float:  # noqa: ARG002
        """Return the regret bound of the paper for given exploration budgets f^p.

        Variants with a theorem override this method.

        Parameters
        ----------
        lengths : ndarray of int
            Exploration budgets of the phases that begin before the time.
        time : int
            Number of pulls of each client up to which regret is counted.
        phases : int
            Number H of phases up to the horizon.
        **constants : object
            Keyword arguments of :func:`bandits.theory.phase_regret`.

        Returns
        -------
        float
            Bound on the total regret of all clients.
        """
        raise ValueError(self._no_theorem())

    def _no_theorem(self) -> str:
        """Return the message for a policy that the paper does not bound."""
        return (
            "policy must be FedPE or EnhancedFedPE without budgets and with the paper's rules for designs, "
            f"for rounding and for the arms to keep; got {self}. The paper has no bound for other policies."
        )

    def parties(self) -> tuple[type[Client], type[Server]]:
        """Return the classes of clients and server. Variants override this method.

        Returns
        -------
        client : type
            Class of the clients.
        server : type
            Class of the server.
        """
        raise NotImplementedError

    def client(self, features: np.ndarray, setting: Setting) -> Client:
        """Return one client, or a batch of them.

        Parameters
        ----------
        features : ndarray of shape (m, K, d)
            Features of m clients.
        setting : Setting
            Constants.

        Returns
        -------
        Client
            The clients.
        """
        return self.parties()[0](features, setting, self.keep)

    def server(self, setting: Setting) -> Server:
        """Return the server.

        Parameters
        ----------
        setting : Setting
            Constants.

        Returns
        -------
        Server
            The server.
        """
        rule = self.design or phase_rule(self.design_method)
        return self.parties()[1](
            setting,
            budgets=None if self.budgets is None else np.array(self.budgets),
            design_gap=self.design_gap,
            design_rule=sparse(rule) if self.sparse else rule,
            warm_start=self.warm_start,
            rounding=self.rounding,
        )

    def play(self, trial: Trial) -> None:
        """Play one trial; see :class:`bandits.Policy`.

        Parameters
        ----------
        trial : Trial
            Trial to play.
        """
        env, ledger, clock = trial.env, trial.ledger, trial.clock
        blocks(self.parameters, env)
        setting = self.setting(env.clients, env.arms, env.dim, trial.horizon, env.ell, env.sigma)
        client, server = self.client(env.features, setting), self.server(setting)
        clock.advance(client.pulls, client.best, env.arms)
        last = len(setting.lengths)
        if last:
            first = client.initialise(trial.pull(client.pulls))
            estimates = server.initialise(ledger.up(first))
        before = (0, 0)
        for p in range(1, last + 1):
            start = clock.time
            if server.has_merged:
                check_separate(env, setting.sigma)
            active = client.eliminate(ledger.down(estimates))
            plan = server.design(ledger.up(active))
            pulls = client.explore(ledger.down(plan))
            clock.advance(pulls, client.best, setting.f(p) + setting.arms)
            if p < last:
                local = client.estimate(trial.pull(pulls))
                estimates = server.aggregate(ledger.up(local))
            lost = int((env.optimal & ~client.active).any(axis=1).sum())
            report = server.report
            trial.phases.append(
                (0, p, start, clock.time - start, client.active.sum() / env.clients,
                 report.support / env.clients, report.iterations, report.gap,
                 ledger.uploaded - before[0], ledger.downloaded - before[1], lost)
            )  # fmt: skip
            before = (ledger.uploaded, ledger.downloaded)
