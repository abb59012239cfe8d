"""Centralised LinUCB and linear Thompson sampling: literal twins, and what their papers promise."""

from __future__ import annotations

import numpy as np
import pytest
from play import environment, final_regrets, model_of
from scipy.special import ndtr

import bandits
from bandits.policies.ridge import REFRESH, Confidence, learn, predict, refresh, ridge
from bandits.trials.trial import Trial

PARAMETERS = ["disjoint", "shared"]


class LiteralLinUCB:
    """Algorithm 1 of Li et al. with plain inverses; one matrix for all arms if shared."""

    def __init__(self, arms, dim, alpha, weight, shared):
        self.alpha, self.shared = alpha, shared
        self.a = [weight * np.eye(dim) for _ in range(1 if shared else arms)]
        self.b = [np.zeros(dim) for _ in range(1 if shared else arms)]

    def block(self, arm):
        return 0 if self.shared else arm

    def choose(self, contexts):
        p = []
        for arm, x in enumerate(contexts):
            inverse = np.linalg.inv(self.a[self.block(arm)])
            theta = inverse @ self.b[self.block(arm)]
            p.append(theta @ x + self.alpha * np.sqrt(x @ inverse @ x))
        return int(np.argmax(p))

    def update(self, arm, x, y):
        self.a[self.block(arm)] += np.outer(x, x)
        self.b[self.block(arm)] += y * x


@pytest.mark.kernels
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_linucb_decides_as_its_transcription(parameters):
    """Every client is a new context, seen once: the classical contextual setting."""
    env = environment(parameters, m=400, k=5, d=3)
    policy = bandits.LinUCB(parameters, alpha=1.25, ridge=0.7)
    trial = Trial(env, 1, [1], np.random.default_rng(0))
    state = policy.start(trial)
    twin = LiteralLinUCB(env.arms, env.dim, 1.25, 0.7, parameters == "shared")
    rewards = np.random.default_rng(1).normal(env.means)
    for i in range(env.clients):
        arm = policy.choose(state, i, i + 1, trial.rng)
        assert arm == twin.choose(env.features[i])
        policy.observe(state, i, arm, rewards[i, arm])
        twin.update(arm, env.features[i, arm], rewards[i, arm])


def test_linucb_decides_as_mabwiser():
    """On identical contexts and rewards; each arm is first shown one context."""
    mabwiser = pytest.importorskip("mabwiser.mab", reason="mabwiser is a peer, not a dependency")
    rng = np.random.default_rng(5)
    contexts, rewards = rng.standard_normal((150, 3)), rng.standard_normal((150, 4))
    peer = mabwiser.MAB(list(range(4)), mabwiser.LearningPolicy.LinUCB(alpha=0.8, l2_lambda=2.0))
    peer.fit([0, 1, 2, 3], [rewards[i, i] for i in range(4)], contexts[:4])
    env = bandits.LinearEnvironment(np.repeat(contexts[:, None], 4, axis=1), np.ones((4, 3)))
    policy = bandits.LinUCB(alpha=0.8, ridge=2.0)
    trial = Trial(env, 1, [1], np.random.default_rng(0))
    state = policy.start(trial)
    for i in range(150):
        arm = i if i < 4 else policy.choose(state, i, i, trial.rng)
        policy.observe(state, i, arm, rewards[i, arm])
        if i >= 4:
            assert arm == peer.predict([contexts[i]])
            peer.partial_fit([arm], [rewards[i, arm]], [contexts[i]])


@pytest.mark.kernels
def test_models_are_ridge_regression():
    rng = np.random.default_rng(0)
    n = 300
    x, y = rng.standard_normal((n, 1, 3)), rng.standard_normal(n)
    model = ridge(1, 1, 3, 0.5)
    width, terms = np.ones((1, 1)), Confidence(True, 2.0, 3.0, 0.25)
    growth = sum(learn(model, width, terms, 0, x, i, 0, y[i]) for i in range(n))
    a = 0.5 * np.eye(3) + x[:, 0].T @ x[:, 0]
    theta = np.linalg.solve(a, x[:, 0].T @ y)
    # Well-conditioned: a thousand roundings of 1e-16.
    np.testing.assert_allclose(model.inverse[0, 0], np.linalg.inv(a), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(model.theta[0, 0], theta, rtol=1e-10)
    assert model.log_det[0, 0] == pytest.approx(np.linalg.slogdet(a)[1] - 3 * np.log(0.5), rel=1e-11)
    assert growth == pytest.approx(model.log_det[0, 0], rel=1e-11)
    assert width[0, 0] == pytest.approx(2.0 * np.sqrt(3.0 + model.log_det[0, 0]) + 0.25, rel=1e-14)
    mean, deviation = predict(model, 0, 0, x, 7, 0)
    assert mean == pytest.approx(x[7, 0] @ theta, rel=1e-10)
    assert deviation**2 == pytest.approx(x[7, 0] @ np.linalg.solve(a, x[7, 0]), rel=1e-10)


@pytest.mark.kernels
@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_model_is_computed_afresh_from_its_sums(d):
    rng = np.random.default_rng(d)
    model = ridge(2, 2, d, 0.3)
    root = rng.standard_normal((d, d))
    model.information[1, 0] = root @ root.T + 0.3 * np.eye(d)
    model.moment[1, 0] = rng.standard_normal(d)
    refresh(model, 1, 0)
    a = model.information[1, 0]
    # Condition numbers below 1e3.
    np.testing.assert_allclose(model.inverse[1, 0], np.linalg.inv(a), rtol=1e-11, atol=1e-13)
    np.testing.assert_array_equal(model.inverse[1, 0], model.inverse[1, 0].T)
    np.testing.assert_allclose(model.theta[1, 0], np.linalg.solve(a, model.moment[1, 0]), rtol=1e-10)
    assert model.log_det[1, 0] == pytest.approx(np.linalg.slogdet(a)[1] - d * np.log(0.3), abs=1e-12)


def test_models_do_not_drift():
    """Directions of very different sizes, and more observations than between two inversions."""
    rng = np.random.default_rng(0)
    n = 5 * REFRESH + 17
    x = rng.standard_normal((n, 1, 3)) * [1.0, 1e-2, 1e-3]
    y = rng.standard_normal(n)
    model = ridge(1, 1, 3, 1e-6)
    width, terms = np.ones((1, 1)), Confidence(False, 1.0, 1.0, 1.0)
    for i in range(n):
        learn(model, width, terms, 0, x, i, 0, y[i])
    assert width[0, 0] == 1.0
    a = 1e-6 * np.eye(3) + x[:, 0].T @ x[:, 0]
    # The condition number is 1e6, of 16 digits.
    np.testing.assert_allclose(model.inverse[0, 0] @ a, np.eye(3), atol=1e-8)


class Watched(bandits.LinUCB):
    """Keeps the state of its trials."""

    states: list = []  # noqa: RUF012

    def start(self, trial):
        Watched.states.append(super().start(trial))
        return Watched.states[-1]


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_confidence_ellipsoids_hold(parameters):
    """Theorem 2 of Abbasi-Yadkori et al., at the horizon: all of them miss with probability at most delta."""
    env = environment(parameters)
    Watched.states.clear()
    trials, delta = 300, 0.1
    bandits.simulate(Watched(parameters, delta=delta), env, 60, trials=trials)
    theta = np.atleast_2d(env.parameters)
    missed = 0
    for state in Watched.states:
        error = state.ridge.theta[0] - theta
        distance = np.sqrt(np.einsum("bj,bjk,bk->b", error, state.ridge.information[0], error))
        missed += bool(np.any(distance > state.width))
    assert len(Watched.states) == trials
    assert missed <= delta * trials


def test_linucb_keeps_the_regret_bound():
    """Theorem 3 of Abbasi-Yadkori et al., with probability 1 - delta; here ridge = sigma = 1."""
    env = environment("shared", m=1, k=6, d=3)
    n, d, delta = 4000, 3, 0.1
    run = bandits.simulate(bandits.LinUCB("shared", delta=delta), env, n, trials=20)
    inner = env.s + np.sqrt(2 * np.log(1 / delta) + d * np.log(1 + n * env.L / d))
    bound = 4 * np.sqrt(n * d * np.log(1 + n * env.L / d)) * inner
    assert np.mean(run.regret[:, -1] > bound) <= delta
    half = run.mean[len(run.times) // 2 - 1]
    assert run.mean[-1] - half < 0.5 * half, "the second half costs less than the first"


class LiteralLinTS(LiteralLinUCB):
    """theta-tilde = theta-hat + v A^-1/2 eta with plain inverses and determinants; v by name or number."""

    def __init__(self, env, v, weight, delta, shared):
        super().__init__(env.arms, env.dim, None, weight, shared)
        self.env, self.v, self.weight, self.delta = env, v, weight, delta

    def deviation(self, block, t):
        sigma, d = self.env.sigma, self.env.dim
        if self.v == "beta":
            ratio = np.linalg.det(self.a[block]) / np.linalg.det(self.weight * np.eye(d))
            level = self.delta / len(self.a)
            return sigma * np.sqrt(2 * np.log(np.sqrt(ratio) / level)) + np.sqrt(self.weight) * self.env.s
        return {"worst-case": sigma * np.sqrt(9 * d * np.log(t / self.delta)), "sigma": sigma}.get(
            self.v, self.v
        )

    def draw(self, contexts, t, rng):
        """Samples along the features: one parameter if shared, else the projection for every arm."""
        values = []
        for block in range(len(self.a)):
            inverse = np.linalg.inv(self.a[block])
            theta, v = inverse @ self.b[block], self.deviation(block, t)
            if self.shared:
                eta = np.array([rng.standard_normal() for _ in theta])
                return contexts @ (theta + v * np.linalg.cholesky(inverse) @ eta)
            x = contexts[block]
            values.append(x @ theta + v * np.sqrt(x @ inverse @ x) * rng.standard_normal())
        return np.array(values)


@pytest.mark.kernels
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("v", ["beta", "worst-case", "sigma", 0.4])
def test_thompson_sampling_decides_as_its_transcription(parameters, v):
    """Decision for decision on the same stream; several rounds of several clients, one after the other."""
    env = environment(parameters, m=5, k=4, d=3, scale=0.5)
    policy = bandits.LinTS(parameters, v, ridge=0.7, delta=0.2)
    trial = Trial(env, 60, [60], np.random.default_rng(3))
    state = policy.start(trial)
    twin, stream = LiteralLinTS(env, v, 0.7, 0.2, parameters == "shared"), np.random.default_rng(3)
    rewards = np.random.default_rng(1)
    pulled = set()
    for t in range(1, 61):
        arms = [policy.choose(state, i, t, trial.rng) for i in range(env.clients)]
        assert arms == [int(np.argmax(twin.draw(x, t, stream))) for x in env.features]
        for i, arm in enumerate(arms):
            y = rewards.normal(env.means[i, arm])
            policy.observe(state, i, arm, y)
            twin.update(arm, env.features[i, arm], y)
        pulled |= set(arms)
    assert len(pulled) > 1


def test_the_default_deviation_is_the_radius_of_linucb():
    """The same level delta / B, and the same observations, give the same radius."""
    env = environment("disjoint", m=3, k=4, d=2)
    trial = Trial(env, 50, [50], np.random.default_rng(0))
    samples, bounds = bandits.LinTS(delta=0.2, ridge=2.0), bandits.LinUCB(delta=0.2, ridge=2.0)
    one, two = samples.start(trial), bounds.start(trial)
    rng = np.random.default_rng(1)
    for n in range(40):
        np.testing.assert_array_equal(one.model.width, two.width)
        y = rng.standard_normal()
        samples.observe(one, n % 3, n % 4, y)
        bounds.observe(two, n % 3, n % 4, y)
    assert len(set(one.model.width[0])) > 1


def test_samples_of_a_best_arm_are_optimistic_with_a_fixed_probability():
    """Abeille and Lazaric: x' theta-tilde >= x' theta with probability at least P(N(0, 1) >= 1), given data.

    Checked after every round for every client, by the normal law of x' theta-tilde, on the event that the
    ellipsoids hold; "sigma" does not have the property.
    """
    env = environment("disjoint", m=4, k=3, d=2)
    least = {}
    for v in ("beta", "sigma"):
        policy = bandits.LinTS(v=v)
        least[v] = 1.0
        for seed in range(20):
            trial = Trial(env, 40, [40], np.random.default_rng(seed))
            state = policy.start(trial)
            for t in range(1, 41):
                for i in range(env.clients):
                    a = int(env.means[i].argmax())
                    mean, width = predict(state.model.ridge, 0, a, env.features, i, a)
                    z = (env.means[i, a] - mean) / (state.model.width[0, a] * width)
                    least[v] = min(least[v], float(ndtr(-z)))
                arms = np.array([policy.choose(state, i, t, trial.rng) for i in range(env.clients)])
                for i, y in enumerate(trial.step(arms)):
                    policy.observe(state, i, arms[i], y)
    assert least["beta"] >= ndtr(-1.0)
    assert least["sigma"] < ndtr(-1.0)


@pytest.mark.slow
def test_thompson_sampling_beats_clients_without_communication():
    """The worst-case constant loses to local UCB on the authors' instance; the radius and sigma do not."""
    sampling = bandits.LinTS(), bandits.LinTS(v="worst-case"), bandits.LinTS(v="sigma")
    beta, worst, posterior, local = final_regrets((*sampling, bandits.LocalUCB()), 2**12, trials=2)
    assert posterior < 0.2 * beta
    assert beta < 0.6 * local < local < worst


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_thompson_sampling_draws_from_the_posterior(parameters):
    """Frequencies of the arms, against draws of whole parameter vectors; z = 5 per arm, odds below 1e-5."""
    env = environment(parameters, m=1, k=4, d=3, seed=3)
    policy = bandits.LinTS(parameters, v=0.8)
    trial = Trial(env, 20, [20], np.random.default_rng(0))
    state = policy.start(trial)
    rng = np.random.default_rng(1)
    for n in range(12):
        policy.observe(state, 0, n % 4, rng.standard_normal())
    draws = 20_000
    ours = np.bincount([policy.choose(state, 0, 5, trial.rng) for _ in range(draws)], minlength=4) / draws
    model, x = state.model.ridge, env.features[0]
    blocks = [0] * 4 if parameters == "shared" else range(4)
    samples = [
        rng.multivariate_normal(model.theta[0, b], 0.64 * model.inverse[0, b], size=draws)
        for b in set(blocks)
    ]
    values = np.stack([samples[b] @ x[a] for a, b in enumerate(blocks)])
    theirs = np.bincount(values.argmax(axis=0), minlength=4) / draws
    error = np.sqrt((ours * (1 - ours) + theirs * (1 - theirs)) / draws)
    assert np.all(np.abs(ours - theirs) <= 5 * error)
    assert ours.max() < 0.99, "the test should see more than one arm"


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_thompson_sampling_learns(parameters):
    """Every kind of deviation: late pulls cost a twentieth of pulls at random."""
    env = environment(parameters, m=10, k=4, d=2, scale=0.1)
    for v in ("beta", "worst-case", "sigma", 0.1):
        run = bandits.simulate(bandits.LinTS(parameters, v=v), env, 2000, trials=3, times=[500, 1500])
        assert run.mean[-1] - run.mean[-2] < 0.05 * 500 * env.gaps.mean()
    greedy = bandits.LinTS(parameters, v=0.0)
    trial = Trial(env, 5, [5], np.random.default_rng(0))
    state = greedy.start(trial)
    for a in range(4):
        greedy.observe(state, 2, a, float(a == 1))
    x, theta = env.features[2], np.broadcast_to(state.model.ridge.theta[0], (4, 2))
    assert greedy.choose(state, 2, 5, trial.rng) == np.argmax(np.einsum("aj,aj->a", x, theta))


@pytest.mark.kernels
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("kind", [bandits.LinUCB, bandits.LinTS])
def test_the_ledger_of_a_central_server(kind, parameters):
    env = environment(parameters)
    run = bandits.simulate(kind(parameters), env, 30, trials=1)
    assert run.uploaded[0] == env.features.size + 30 * env.clients
    assert run.downloaded[0] == 30 * env.clients
    assert run.policy == kind(parameters).name


def test_options_are_checked():
    for kind, options, word in [
        (bandits.LinUCB, {"parameters": "both"}, "parameters"),
        (bandits.LinUCB, {"alpha": -1.0}, "alpha"),
        (bandits.LinUCB, {"ridge": 0.0}, "ridge"),
        (bandits.LinUCB, {"delta": 1.0}, "delta"),
        (bandits.LinUCB, {"s": 0.0}, "s must"),
        (bandits.LinTS, {"v": -1.0}, "v must"),
        (bandits.LinTS, {"sigma": 0.0}, "sigma"),
    ]:
        with pytest.raises(ValueError, match=word):
            kind(**options)
    with pytest.raises(ValueError, match="equal parameters"):
        bandits.simulate(bandits.LinUCB("shared"), environment("disjoint"), 10)


@pytest.mark.parametrize("parameters", ["disjoint", "shared"])
@pytest.mark.parametrize("kind", [bandits.LinUCB, bandits.DisLinUCB, bandits.FedUCB])
def test_widths_are_a_union_over_all_that_is_estimated(kind, parameters):
    """Before any pull: sigma sqrt(2 log(n / delta)) + sqrt(lambda) s, for n blocks of one or all clients."""
    env = bandits.LinearEnvironment(np.ones((5, 3, 2)), np.array([0.6, 0.8]), scale=0.5, s=2.0)
    trial = Trial(env, 10, [10], np.random.default_rng(0))
    width = model_of(kind(parameters, ridge=4.0, delta=0.2).start(trial)).width
    models = (3 if parameters == "disjoint" else 1) * (1 if kind is bandits.LinUCB else 5)
    expected = 0.5 * np.sqrt(2 * np.log(models / 0.2)) + 2.0 * 2.0
    np.testing.assert_allclose(width, expected, rtol=1e-12)


@pytest.mark.parametrize("parameters", PARAMETERS)
def test_the_worst_case_deviation_is_the_papers(parameters):
    """v = sigma sqrt(9 d log(t / delta)) in round t, for all blocks; sigma and numbers do not change."""
    env = environment(parameters, d=3, scale=0.5)
    trial = Trial(env, 20, [20], np.random.default_rng(0))
    for v in ("worst-case", "sigma", 0.7):
        policy = bandits.LinTS(parameters, v, delta=0.2)
        state = policy.start(trial)
        for t in range(1, 21):
            arm = policy.choose(state, 0, t, trial.rng)
            expected = {"worst-case": 0.5 * np.sqrt(9 * 3 * np.log(t / 0.2)), "sigma": 0.5}.get(v, v)
            np.testing.assert_allclose(state.model.width, expected, rtol=1e-12)
            policy.observe(state, 0, arm, 1.0)


def test_deviations_are_named():
    assert bandits.LinTS().name == "LinTS"
    assert bandits.LinTS("shared", v="sigma").name == "LinTS (shared) (v = sigma)"
    assert bandits.LinTS(v=0.5).name == "LinTS (v = 0.5)"
    for v in (-1.0, np.inf, np.nan, None, True, "posterior"):
        with pytest.raises(ValueError, match="v must be one of beta, worst-case, sigma or a finite number"):
            bandits.LinTS(v=v)
    assert bandits.LinTS(v=np.float32(2.0)).v == 2.0
