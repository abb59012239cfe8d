"""Strategies for environments, and the ready test of policies: ours obey the rules, cheats are caught."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import find, given
from learners import LEARNERS
from searches import few, seen, smallest

import bandits
from bandits.testing import (
    NOISES,
    assert_played,
    assert_plays,
    check_policy,
    environments,
    random_environments,
)

# ------------------------------------------------------------------------------------------- strategies


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("parameters", ["disjoint", "shared"])
def test_environments_are_what_was_asked_for(parameters, noise):
    @few
    @given(environments(parameters=parameters, noise=noise, max_clients=3, max_arms=2, max_dim=2, scale=0.25))
    def holds(env):
        assert env.clients <= 3
        assert env.arms <= 2
        assert env.dim <= 2
        assert env.shared == (parameters == "shared")
        assert env.noise == bandits.noise.noise_named(noise, 1.0 if noise == "bernoulli" else 0.25)

    holds()


@few
@given(environments(scale=0))
def test_environments_without_noise_have_none(env):
    assert env.sigma == 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_corners_occur(noise):
    drawn = environments(noise=noise)
    find(drawn, lambda env: env.arms == 1 and env.clients > 1, settings=seen)
    find(drawn, lambda env: np.all(env.means == 0) and env.arms > 1, settings=seen)
    find(drawn, lambda env: env.optimal.all() and env.arms > 1 and env.means.any(), settings=seen)
    find(drawn, lambda env: env.ell < env.L, settings=seen)
    find(drawn, lambda env: env.clients < env.dim, settings=seen)


@few
@given(environments(collinear=True), environments(identical=True), random_environments(noise="bounded"))
def test_collinear_identical_and_random_clients(collinear, identical, generic):
    x = collinear.features
    ratios = [np.unique(x[-1][y != 0] / y[y != 0]) for y in x[:-1] if np.array_equal(y != 0, x[-1] != 0)]
    assert any(len(r) == 1 for r in ratios)
    assert np.all(identical.features == identical.features[0])
    norms = np.linalg.norm(generic.features, axis=2)
    assert np.all((norms > 0.499) & (norms < 1.001))


@pytest.mark.slow
def test_environments_shrink_to_few_small_numbers():
    one = find(environments(), lambda _: True, settings=smallest)
    assert one.features.tolist() == [[[1.0]]]
    assert one.parameters.tolist() == [[0.0]]
    two = find(environments(), lambda env: env.clients >= 2 and env.gaps.max() > 0.3, settings=smallest)
    assert two.features.shape == (2, 2, 1)
    assert np.abs(two.features).max() == 1
    assert two.gaps.max() <= 2
    assert two.noise == bandits.noise.Gaussian(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: environments(parameters="both"), "parameters must be one of disjoint, shared; got 'both'"),
        (lambda: environments(noise="pink"), "noise must be of gaussian, .*; got 'pink'. Leave it out"),
        (lambda: random_environments(noise=()), "noise must be of .*; got none"),
        (lambda: environments(max_arms=0), "max_arms must be at least 1; got 0"),
        (lambda: environments(collinear=True, max_clients=1), "max_clients must be at least 2 for collinear"),
    ],
)
def test_options_are_checked_where_they_are_given(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --------------------------------------------------------------------------------------------- policies


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [kind for kind in LEARNERS if kind is not bandits.DELB], ids=lambda kind: kind.__name__
)
def test_our_policies_obey_the_rules(kind):
    check_policy(lambda env: kind(parameters="shared" if env.shared else "disjoint"), max_examples=25)


@pytest.mark.slow
def test_policies_for_special_environments_obey_the_rules():
    check_policy(bandits.LocalUCB(), max_examples=25)
    check_policy(bandits.CollaborativeFedPE(intervals="enhanced"), max_examples=25)
    for v in ("worst-case", "sigma"):
        check_policy(bandits.LinTS(v=v), max_examples=25)
    check_policy(bandits.DELB(), environments(parameters="shared", identical=True), max_examples=25)


class Plain:
    """Every client pulls its arms in turn."""

    @property
    def name(self):
        return type(self).__name__

    def play(self, trial):
        while not trial.done:
            trial.step(self.arms(trial))

    def arms(self, trial):
        return np.full(trial.env.clients, trial.time % trial.env.arms)


class Peeks(Plain):
    def arms(self, trial):
        return trial.env.means.argmax(axis=1)


class ReadsRegret(Plain):
    def arms(self, trial):
        return np.full(trial.env.clients, int(trial.clock.total > 0) % trial.env.arms)


class Remembers(Plain):
    def __init__(self):
        self.before = 0

    def play(self, trial):
        super().play(trial)
        self.before += 1

    def arms(self, trial):
        return np.full(trial.env.clients, self.before % trial.env.arms)


class OwnStream(Plain):
    def __init__(self):
        self.rng = np.random.default_rng(0)

    def arms(self, trial):
        return self.rng.integers(trial.env.arms, size=trial.env.clients)


class FreeLooks(Plain):
    def play(self, trial):
        trial.pull(np.ones(trial.env.means.shape, dtype=np.int64))
        super().play(trial)


class CheapClock(Plain):
    """Pulls the arms in turn and tells the clock that they were the first ones."""

    def play(self, trial):
        m, k = trial.env.means.shape
        while not trial.done:
            once = np.zeros((m, k), dtype=np.int64)
            once[:, trial.time % k] = 1
            trial.pull(once)
            trial.clock.advance(np.zeros((m, k), dtype=np.int64), trial.env.optimal.argmax(axis=1), 1)


class DearClock(Plain):
    """The opposite: the clock is told of the worst arms."""

    def play(self, trial):
        m, k = trial.env.means.shape
        while not trial.done:
            once = np.zeros((m, k), dtype=np.int64)
            once[:, 0] = 1
            trial.pull(once)
            trial.clock.advance(np.zeros((m, k), dtype=np.int64), trial.env.gaps.argmax(axis=1), 1)


class Commits(Plain):
    """Pulls every arm once, and then the best arm without a look at its rewards."""

    def play(self, trial):
        once = np.ones(trial.env.means.shape, dtype=np.int64)
        once[:, trial.horizon :] = 0
        trial.pull(once)
        trial.clock.advance(once, np.zeros(len(once), dtype=np.int64), int(once[0].sum()))
        best = trial.env.optimal.argmax(axis=1)
        trial.clock.advance(np.zeros_like(once), best, trial.horizon - trial.time)


class Looks(Plain):
    """Observes free rewards of a copy of the environment."""

    def play(self, trial):
        seen = trial.env.fresh().pull(trial.rng, np.full(trial.env.means.shape, 100))
        while not trial.done:
            trial.step(seen.argmax(axis=1))


class Forges(Plain):
    def play(self, trial):
        trial.clock.finish(np.zeros(len(trial.clock.times)))


class Chatters(Plain):
    def __init__(self):
        self.said = 0

    def play(self, trial):
        self.said += 1
        trial.ledger.uploaded += self.said
        super().play(trial)


class Owes(Plain):
    def play(self, trial):
        trial.ledger.downloaded -= 1
        super().play(trial)


class Undoes(Plain):
    """Pulls that are taken back."""

    def play(self, trial):
        trial.pull(np.full(trial.env.means.shape, -1))
        super().play(trial)


def test_a_plain_policy_passes():
    check_policy(Plain(), max_examples=25)
    check_policy(Plain(), random_environments(), max_examples=10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Peeks(), "Peeks makes other pulls when the parameters are hidden from it"),
        (ReadsRegret(), "ReadsRegret makes other pulls when the parameters are hidden"),
        (Remembers(), "Remembers plays trial 1 otherwise when it comes first: regret"),
        (OwnStream(), "OwnStream plays trial 1 otherwise"),
        (FreeLooks(), "FreeLooks learns the rewards of 2 pulls of a client, and the horizon is 1"),
        (CheapClock(), "CheapClock counts a regret of 0, and the pulls whose rewards it drew cost"),
        (DearClock(), "DearClock counts a regret of .*, and all its pulls cost 0"),
        (Commits(), "Commits makes other pulls when the parameters are hidden from it"),
        (Looks(), "Looks learns the rewards of 101 pulls of a client, and the horizon is 1"),
        (Forges(), "Forges hands over its regret by clock.finish"),
        (Chatters(), "Chatters sends other numbers of scalars when trial 1 comes first: uploaded 1, and 2"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_cheat_is_caught_with_a_small_example(policy, message):
    """Noise that can be drawn at any count, so that what fails is the rule and not the environment."""
    with pytest.raises(AssertionError, match=message) as caught:
        check_policy(policy, environments(noise="gaussian"))
    shown = "\n".join(caught.value.__notes__)
    assert "env=LinearEnvironment(" in shown
    assert len(shown) < 250, shown


def test_a_policy_that_stops_early_is_told_so():
    class Idle(Plain):
        def play(self, trial):
            """Nothing happens."""

    with pytest.raises(ValueError, match="policy must play to the horizon 1; Idle made 0 pulls"):
        check_policy(Idle())


def test_counts_must_be_counts():
    env = bandits.LinearEnvironment([[[1.0], [0.5]]], [[0.2], [0.8]])
    with pytest.raises(
        ValueError, match="counts must not be negative; Undoes gave client 0 -1 pulls of arm 0"
    ):
        assert_plays(Undoes(), env, 3)


def test_scalars_must_not_be_negative():
    message = "ledger.downloaded of Owes must be a whole number of at least 0; got -1"
    with pytest.raises(ValueError, match=message):
        check_policy(Owes())


# ------------------------------------------------------------------------------------------------- runs

ENV = bandits.environments.authors(3, 4, 2, seed=0)
RUN = bandits.simulate(bandits.FedPE(), ENV, 200, trials=2)


def changed(name, change):
    value = getattr(RUN, name).copy()
    change(value)
    return dataclasses.replace(RUN, **{name: value})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("regret", lambda r: np.negative(r, out=r), "regret falls up to pull"),
        (
            "regret",
            lambda r: r.__setitem__((1, 5), r[1, 4] - 1e-9),
            r"regret falls up to pull \d+ of trial 1",
        ),
        ("regret", lambda r: np.multiply(r, 50.0, out=r), "regret grows too fast up to pull"),
        ("regret", lambda r: r.fill(np.nan), "regret is not finite"),
        ("times", lambda t: t.__setitem__(-1, 150), "regret is not read up to the horizon 200"),
        ("uploaded", lambda u: u.fill(-1), "scalars uploaded must not be negative; got -1"),
        (
            "downloaded",
            lambda u: u.fill(1),
            r"the phases of trial 0 have \d+ scalars downloaded, the ledger 1",
        ),
        ("phases", lambda p: p["length"].fill(150), "phases of trial 0 overlap or pass the horizon 200"),
        ("phases", lambda p: p["active"].fill(0), r"between one and 4 active arm\(s\)"),
    ],
)
def test_a_run_that_is_not_well_formed_is_refused(name, change, message):
    assert_played(RUN, ENV)
    with pytest.raises(AssertionError, match=message):
        assert_played(changed(name, change), ENV)


def test_a_single_arm_costs_nothing():
    env = bandits.environments.authors(3, 1, 2, seed=0)
    run = bandits.simulate(bandits.FedPE(), env, 20, trials=1)
    assert_played(run, env)
    with pytest.raises(AssertionError, match="regret grows too fast"):
        assert_played(dataclasses.replace(run, regret=run.regret + 1e-300), env)
