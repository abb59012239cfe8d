"""Fed-PE: federated phased elimination, as in Algorithms 1 and 2 of the paper.

M clients pull the same K arms. The reward of client i from arm a is x_{i,a}' theta_a plus noise. No message
holds a feature vector or a reward. Messages reveal the active arms and the direction of every feature up to
sign. They also reveal the mean reward divided by the norm of the feature, up to the same sign.

At the start, every client pulls each arm once and sends local estimates along the directions of its features.
The server combines them into global estimates. A phase then has four steps, as in Algorithm 1:

1. Every client drops the arms whose confidence interval lies below that of the arm with the largest estimate.
2. The server computes an optimal design over the active arms and sends every client its numbers of pulls.
3. Every client pulls its arms, sends local estimates, and pulls the arm with the largest estimate until the
   phase ends.
4. The server combines the local estimates into global estimates.

``Client`` is Algorithm 1 and ``Server`` is Algorithm 2. Both classes hold the state between messages. They
neither send nor receive data: their methods take messages and sums of rewards, and return messages and
numbers of pulls. The caller delivers the messages. The caller can be the simulator, or a program that sends
them over a network. A ``Client`` object is a batch of one or more clients; arrays have a leading axis for
the clients. M objects of one client each and one object of M clients make the same decisions, bit for bit.

    client                              server
    initialise(rewards)   ------------> initialise(estimates)
    eliminate(estimates)  <------------
                          ------------> design(active arms)
    explore(plan)         <------------
    estimate(sums)        ------------> aggregate(estimates), and so on with eliminate

Differences from the pseudocode of the paper:

- V_a^1 divides by ||theta-hat_{i,a}^0||^2, as the proof does. The pseudocode divides by
  ||theta-hat_{i,a}^0||.
- All phases use the directions of the first estimates. The direction of a later estimate theta-hat_{i,a} is
  undefined if the mean reward is zero. Otherwise it is the same up to sign.
- If the largest absolute entry of a first estimate is below TINY, the client sends the direction separately.
- Arms with f_{i,a} = 0 are not estimated.
- The horizon cuts the last phase. Its local estimates are not computed and not sent, because no phase
  follows. If the first pulls reach the horizon, no message is sent.
- Half-widths have the factor sigma, the sub-Gaussian parameter of the rewards. The paper has sigma = 1.
- Algorithm 3 (block coordinate ascent) makes at most 200 sweeps with ``design_method="auto"``, the default.
  It makes fewer sweeps if a design has more than 50,000 candidates, where a candidate is a client with one of
  its active arms. ``optdesign.solve`` continues a design that needs more sweeps; see
  :mod:`bandits.policies.design`. ``design_method="bca"`` uses Algorithm 3 alone.
- The paper has no algorithm for designs with shared parameters. For these designs, a sweep exchanges weight
  between pairs of arms of each client; see :mod:`optdesign.solvers.group_step`.
- Each class of collinear clients (:mod:`bandits.policies.collinearity`) has a separate design. G is the
  objective of the multi-client G-optimal design, and D is its minimum, the sum of the ranks. The gap G - D
  of a design is at most design_gap / number of classes, so that the sum over classes is at most design_gap.
- V_a and theta-hat_a are computed separately for each class. A client receives those of its class, for every
  arm that is active for at least one client of the class.
- A class in which no arm was eliminated in a phase keeps its design of the phase before.
- Weights at the level of round-off are set to 0; see :func:`bandits.policies.design.certified`.
- If a product pi_{i,a} f^p differs from an integer only by round-off, it is replaced by that integer before
  it is rounded up.
- Eigenvalues of the inverse of V_a at the level of round-off are set to 0; see
  :func:`bandits.policies.aggregation.pseudo_inverses`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bandits.checks import pulls_per_arm, whole
from bandits.policies.aggregation import accumulate, are_accurate, dot, project, pseudo_inverses
from bandits.policies.collinearity import collinear_classes
from bandits.policies.design import DesignRule, ascent, certified
from bandits.policies.phased import KeepRule, Phased, Rounding, Setting, ceiling, confident
from bandits.protocol import (
    SCALARS,
    ActiveArms,
    FirstEstimates,
    GlobalEstimates,
    LocalEstimates,
    Message,
    Projections,
    PullPlan,
)
from bandits.theory.bounds import phase_regret
from optdesign import DesignProblem

TINY = 1e-100
"""A first estimate does not determine its direction if its largest absolute entry is below this value."""


class Client:
    """Algorithm 1, for a batch of m clients whose features have the shape (m, K, d)."""

    def __init__(self, features: np.ndarray, setting: Setting, keep: KeepRule = confident) -> None:
        self.setting = setting
        self.keep = keep
        self.features = features
        self.phase = 0
        self.active = np.ones(features.shape[:2], dtype=bool)
        self.pulls = np.ones(features.shape[:2], dtype=np.int64)
        self.best = np.zeros(len(features), dtype=np.int64)
        self.direction: np.ndarray
        """e-bar, the unit directions that the server stores. Each is e or -e, where e = x / ||x||."""
        self.norm: np.ndarray
        """x' e-bar, which is ||x|| or -||x||.

        The product of this factor and the coordinate e-bar' theta-hat of an estimate is the estimated reward
        x' theta-hat."""

    def initialise(self, rewards: np.ndarray) -> Message:
        """Return theta-hat^0 = y x / ||x||^2 from one reward y of each arm (line 1)."""
        x = self.features
        vectors = (rewards / dot(x, x))[:, :, None] * x
        no_direction = np.abs(vectors).max(axis=2, keepdims=True) < TINY
        first = FirstEstimates(vectors, np.where(no_direction, unsigned(x), 0.0))
        self.direction = directions(first)
        self.norm = dot(x, self.direction)
        return first

    def eliminate(self, message: Message) -> ActiveArms:
        """Estimate rewards, find the best arm and return the arms that stay active (lines 3-7)."""
        self.phase += 1
        estimate, deviation = self._projections(message)
        r = self.norm * estimate  # x' theta-hat
        width = self.setting.sigma * np.abs(self.norm) * deviation / self.setting.ell  # sigma ||x||_V / ell
        r, u = self.intervals(r, width)
        self.best = np.argmax(np.where(self.active, r, -np.inf), axis=1)
        # A new array, because the server holds the old one. The keep rule gets a copy that it may change.
        self.active = self.active & self._checked_keep(self.keep(r, u, self.active.copy()))
        empty = np.flatnonzero(~self.active.any(axis=1))
        if len(empty):
            raise ValueError(
                f"keep must leave every client an arm; in phase {self.phase} client {empty[0]} has none."
            )
        return ActiveArms(self.active)

    def _checked_keep(self, kept: np.ndarray) -> np.ndarray:
        """Return the result of the keep rule. Raise ValueError unless it has a bool per client and arm."""
        if not isinstance(kept, np.ndarray) or kept.dtype != np.bool_ or kept.shape != self.active.shape:
            given = f"{kept.dtype} of shape {kept.shape}" if isinstance(kept, np.ndarray) else repr(kept)
            raise ValueError(
                f"keep must return an array of bool of shape {self.active.shape}, clients and arms; in phase "
                f"{self.phase} it returned {given}. Compute it elementwise from estimates and half-widths."
            )
        return kept

    def intervals(self, r: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return r-hat and the half-width u = alpha sigma ||x||_V / ell; ``width`` is sigma ||x||_V / ell."""
        return r, self.setting.alpha * width

    def explore(self, plan: PullPlan) -> np.ndarray:
        """Return the pulls of each arm (lines 8-10). The caller pulls ``best`` until the phase ends."""
        self.pulls = plan.pulls
        return plan.pulls

    def estimate(self, sums: np.ndarray) -> LocalEstimates:
        """Return theta-hat_{i,a} = y x / ||x||^2 for the pulled arms, with mean rewards y (lines 10-12).

        ``sums`` has the sums of the rewards. With the protocol SCALARS, the coordinate of theta-hat_{i,a}
        along e-bar replaces the vector.
        """
        pulled = self.pulls > 0
        means = np.divide(sums, self.pulls, out=np.zeros(sums.shape), where=pulled)
        scalars = means / self.norm
        if self.setting.protocol == SCALARS:
            return LocalEstimates(scalars, pulled)
        return LocalEstimates(scalars[:, :, None] * self.direction, pulled)

    def _projections(self, message: Message) -> tuple[np.ndarray, np.ndarray]:
        """Return e-bar' theta-hat and ||e-bar||_V.

        With the protocol SCALARS, the message holds both numbers. With VECTORS, the client computes them from
        theta-hat and V of the message.
        """
        if isinstance(message, GlobalEstimates):
            message = along(self.direction, self.active, message)
        assert isinstance(message, Projections)
        return message.estimate, message.deviation


class DesignReport(NamedTuple):
    """Summary of the designs of all classes in a phase.

    ``iterations`` is the largest number of iterations of a class. ``gap`` is the sum of the gaps.
    """

    iterations: int
    gap: float
    support: int
    """Number of positive weights."""


class Server:
    """Algorithm 2."""

    def __init__(
        self,
        setting: Setting,
        *,
        budgets: np.ndarray | None = None,
        design_gap: float = 0.1,
        design_rule: DesignRule = ascent,
        warm_start: bool = False,
        rounding: Rounding = ceiling,
    ) -> None:
        self.setting = setting
        self.budgets = budgets
        self.design_gap, self.design_rule, self.warm_start = design_gap, design_rule, warm_start
        self.rounding = rounding
        self.phase = 0
        self.active = np.ones((setting.clients, setting.arms), dtype=bool)
        self.pulls = np.ones((setting.clients, setting.arms), dtype=np.int64)
        self.weights: np.ndarray | None = None
        self.report = DesignReport(0, 0.0, 0)
        self.direction: np.ndarray
        self.class_of: np.ndarray
        """Class index of every client, of shape (M,). A class is a set of collinear clients."""
        self.clients_of: list[np.ndarray]
        """The clients of each class."""
        self.ranks: np.ndarray
        """Ranks of the explored directions, of shape (classes, blocks).

        A block is one arm, or all arms if parameters are shared."""
        self.solved: list[tuple[int, float]]
        """Iterations and gap of the design of each class."""
        self.has_merged = False
        """True if directions are so nearly parallel that a computed rank of the last V_a is too small, or if
        round-off of the last estimates exceeds their noise."""

    def initialise(self, first: Message) -> Message:
        """Store the directions; return V_a^1 and theta-hat_a^1 from one pull of each arm (line 1)."""
        vectors = self._store_directions(first)
        self.class_of = collinear_classes(self.direction, shared=self.setting.shared)
        self.clients_of = [np.flatnonzero(self.class_of == c) for c in range(int(self.class_of.max()) + 1)]
        self.ranks = np.array([self._problem(clients).ranks for clients in self.clients_of])
        self.solved = [(0, 0.0)] * len(self.clients_of)
        return self._broadcast(vectors)

    def design(self, message: ActiveArms) -> PullPlan:
        """Return the pulls of the multi-client G-optimal design over the active arms (lines 3-5)."""
        self.phase += 1
        f = self.setting.f(self.phase)
        before, self.active = self.active, message.active
        self.weights = self._solve(before)
        # The rounding rule gets a copy. The check below and possibly the next phase use the weights.
        self.pulls = self._checked(self.weights, self.rounding(self.weights.copy(), f))
        return PullPlan(self.pulls, self.active)

    def aggregate(self, message: LocalEstimates) -> Message:
        """Return V_a^{p+1} and theta-hat_a^{p+1} from the local estimates of phase p (lines 6-9)."""
        values = message.values
        vectors = values if values.ndim == 3 else values[:, :, None] * self.direction
        return self._broadcast(vectors)

    def _store_directions(self, first: Message) -> np.ndarray:
        """Store the directions of the first messages; return theta-hat^0."""
        assert isinstance(first, FirstEstimates)
        self.direction = directions(first)
        return first.vectors

    def _solve(self, before: np.ndarray) -> np.ndarray:
        """Return the weights pi^p. Each class is a separate problem; the gaps sum to at most design_gap.

        A class in which no arm was eliminated since ``before`` has the same problem, so it keeps its design.
        """
        weights = np.zeros(self.active.shape)
        for c, clients in enumerate(self.clients_of):
            active = self.active[clients]
            if self.weights is not None and np.array_equal(active, before[clients]):
                weights[clients] = self.weights[clients]
                continue
            problem = self._problem(clients)
            start = None
            if self.warm_start and self.weights is not None:
                start = self.weights[clients][active]
            design = self.design_rule(problem, self.design_gap / len(self.clients_of), start)
            if not (hasattr(design, "weights") and hasattr(design, "iterations")):
                raise ValueError(
                    f"design must return weights and iterations, such as bandits.policies.design.Design; in "
                    f"phase {self.phase} it returned {type(design).__name__}."
                )
            found, certificate = certified(problem, design.weights)
            if certificate.gap == np.inf:
                raise ValueError(
                    f"design must keep the rank of the features; in phase {self.phase} its information is "
                    "singular. Give weight to arms whose features span those of the active arms."
                )
            weights[clients] = problem.to_grid(found)
            self.ranks[c] = problem.ranks
            self.solved[c] = whole("iterations of the design", design.iterations, 0), certificate.gap
        iterations, gaps = zip(*self.solved, strict=True)
        self.report = DesignReport(max(iterations), sum(gaps), int((weights > 0).sum()))
        return weights

    def _problem(self, clients: np.ndarray) -> DesignProblem:
        """Return the design problem of one class, for the active arms and the budgets of its clients.

        Every budget is 1 by default.
        """
        make = DesignProblem.shared if self.setting.shared else DesignProblem.disjoint
        budgets = None if self.budgets is None else self.budgets[clients]
        return make(self.direction[clients], self.active[clients], budgets)

    def _broadcast(self, vectors: np.ndarray) -> Message:
        """Return V = (sum f e e')^+ and theta-hat = V sum f theta-hat_i, for every class and block.

        A block is one arm, or all arms if parameters are shared. With the protocol SCALARS, return the
        projections of V and theta-hat on the directions of the clients.
        """
        information, moment, ranks = self._information(vectors)
        potential, kept = pseudo_inverses(information, ranks)
        self.has_merged = bool(np.any(kept < ranks))
        theta = (potential @ moment[..., None])[..., 0]
        deviation = self.setting.sigma / self.setting.ell
        self.has_merged |= not are_accurate(information, moment, theta, potential, deviation)
        alive = np.array([self.active[clients].any(axis=0) for clients in self.clients_of])
        if self.setting.shared:
            alive = np.ones((len(self.clients_of), 1), dtype=bool)
        estimates = GlobalEstimates(theta, potential, alive, self.class_of)
        if self.setting.protocol == SCALARS:
            return along(self.direction, self.active, estimates)
        return estimates

    def _information(self, vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the information, the moment and the rank for every class and block.

        The information is the sum of f e e' over the clients of the class. The moment is the sum of
        f theta-hat_i over these clients.
        """
        d, blocks = self.setting.dim, 1 if self.setting.shared else self.setting.arms
        information = np.zeros((len(self.clients_of), blocks, d, d))
        moment = np.zeros((len(self.clients_of), blocks, d))
        accumulate(self.direction, self.class_of, self.pulls, vectors, information, moment)
        return information, moment, self.ranks

    def _checked(self, weights: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """Return the pulls. Raise ValueError if they exceed the phase or lower the rank of the design."""
        pulls = pulls_per_arm("pulls", pulls, weights.shape, f"rounding in phase {self.phase}")
        limit = self.setting.f(self.phase) + self.setting.arms
        if pulls[~self.active].any() or pulls.sum(axis=1).max() > limit:
            raise ValueError(
                f"rounding must give inactive arms no pulls, and each client at most f + K = {limit} pulls; "
                f"the largest number of pulls of a client was {pulls.sum(axis=1).max()}. Use bandits.ceiling."
            )
        lost = np.flatnonzero(((pulls == 0) & (weights > 0)).any(axis=1))
        for c in np.unique(self.class_of[lost]):
            clients = self.clients_of[c]
            kept = pulls[clients] > 0
            some = kept.any(axis=1)
            make = DesignProblem.shared if self.setting.shared else DesignProblem.disjoint
            if not some.any() or np.any(
                make(self.direction[clients][some], kept[some]).ranks < self.ranks[c]
            ):
                raise ValueError(
                    f"rounding must keep the rank of the design; phase {self.phase} lost a direction. "
                    "Give every positive weight a pull."
                )
        return pulls


class FedPE(Phased):
    """Fed-PE, Algorithms 1 and 2 of the paper. The options are those of :class:`bandits.Phased`.

    The docstring of the module :mod:`bandits.policies.fedpe` lists the differences from the pseudocode.

    See Also
    --------
    bandits.EnhancedFedPE : Use the estimates of all phases.
    bandits.CollaborativeFedPE : Exchange all information.

    Examples
    --------
    >>> import bandits
    >>> env = bandits.environments.authors(clients=6, arms=3, dim=2)
    >>> bandits.simulate(bandits.FedPE(), env, horizon=1000, trials=2).regret.shape[0]
    2
    """

    def parties(self) -> tuple[type[Client], type[Server]]:
        """Return the classes that implement Algorithms 1 and 2."""
        return Client, Server

    def theorem(self, lengths: np.ndarray, time: int, phases: int, **constants: Any) -> float:  # noqa: ARG002
        """Return the bound of :func:`bandits.theory.phase_regret` on the regret of the phases."""
        return phase_regret(lengths, phases=phases, **constants)


def directions(first: FirstEstimates) -> np.ndarray:
    """Return e-bar = theta-hat^0 / ||theta-hat^0||, or the direction sent separately."""
    v = np.where(first.directions.any(axis=2, keepdims=True), first.directions, first.vectors)
    v = v / np.abs(v).max(axis=2, keepdims=True)
    return v / np.sqrt(dot(v, v))[:, :, None]


def unsigned(x: np.ndarray) -> np.ndarray:
    """Return x / ||x|| or -x / ||x||: the one whose coordinate of largest size is positive."""
    largest = np.take_along_axis(x, np.abs(x).argmax(axis=2)[:, :, None], axis=2)
    return np.sign(largest) * x / np.sqrt(dot(x, x))[:, :, None]


def along(direction: np.ndarray, active: np.ndarray, estimates: GlobalEstimates) -> Projections:
    """Return e-bar' theta-hat_a and sqrt(e-bar' V_a e-bar) of the active arms, with e-bar in ``direction``.

    The clients call this function with the protocol VECTORS. The server calls it with SCALARS.
    """
    estimate, deviation = np.zeros(active.shape), np.zeros(active.shape)
    project(direction, active, estimates.member, estimates.theta, estimates.potential, estimate, deviation)
    return Projections(estimate, deviation, active)
