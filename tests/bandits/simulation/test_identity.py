"""Checkpoints belong to one experiment: its content decides, in this process and in any other."""

from __future__ import annotations

import collections
import enum
import functools
import importlib
import logging
import subprocess
import sys
import threading
from types import ModuleType

import numpy as np
import pytest

import bandits
from bandits.simulation.fingerprints import fingerprint
from bandits.simulation.identity import content_hash

ENV = bandits.environments.authors(4, 3, 2, seed=0)
TIMES = np.array([50, 100])


def identity(policy=None, env=ENV):
    return fingerprint(policy or bandits.FedPE(), env, 100, TIMES, 0)


def rounding(weights, f, extra=0):
    return np.ceil(weights * f).astype(int) + extra * (weights > 0)


class Recorded:
    """A noise of ones own that holds a large array."""

    sigma = 1.0

    def __init__(self, draws):
        self.draws = draws

    def sums(self, rng, means, counts):
        return counts * means + np.sqrt(counts) * self.draws[rng.integers(len(self.draws), size=means.shape)]


class Shifted(bandits.LinearEnvironment):
    """Pays one more than it says."""

    def pull(self, rng, counts):
        return super().pull(rng, counts) + counts


def test_functions_differ_by_their_code_and_closure():
    def above(bonus):
        return lambda w, f: np.ceil(w * f + bonus).astype(int)

    policies = [
        bandits.FedPE(),
        bandits.FedPE(rounding=lambda w, f: np.ceil(w * f).astype(int)),
        bandits.FedPE(rounding=lambda w, f: np.floor(w * f).astype(int) + 1),
        bandits.FedPE(rounding=above(0)),
        bandits.FedPE(rounding=above(1)),
        bandits.FedPE(rounding=rounding),
        bandits.FedPE(rounding=functools.partial(rounding, extra=0)),
        bandits.FedPE(rounding=functools.partial(rounding, extra=1)),
    ]
    assert len({identity(policy) for policy in policies}) == len(policies)
    assert identity(bandits.FedPE(rounding=above(1))) == identity(policies[4])
    assert identity(bandits.FedPE(rounding=functools.partial(rounding, extra=1))) == identity(policies[-1])


def test_arrays_count_in_full():
    draws = np.random.default_rng(0).standard_normal(5000)
    other = draws.copy()
    other[2500] += 1e-9
    envs = [bandits.LinearEnvironment(ENV.features, ENV.parameters, Recorded(d)) for d in (draws, other)]
    assert repr(draws) == repr(other)
    assert identity(env=envs[0]) != identity(env=envs[1])
    again = bandits.LinearEnvironment(ENV.features, ENV.parameters, Recorded(draws.copy()))
    assert identity(env=envs[0]) == identity(env=again)


def test_everything_an_environment_tells_counts_and_what_it_remembers_does_not():
    plain = bandits.LinearEnvironment(ENV.features, ENV.parameters)
    roomy = bandits.LinearEnvironment(ENV.features, ENV.parameters, s=2.0)
    shifted = Shifted(ENV.features, ENV.parameters)
    assert len({identity(env=env) for env in (plain, roomy, shifted)}) == 3
    before = identity(env=plain)
    assert plain.gaps.shape == plain.optimal.shape
    assert identity(env=plain) == before


def test_a_checkpoint_of_another_rounding_is_refused_and_of_the_same_resumed(tmp_path):
    path = tmp_path / "run.npz"
    policy = bandits.FedPE(rounding=functools.partial(rounding, extra=0))
    run = bandits.simulate(policy, ENV, 100, trials=1, checkpoint=path)
    same = bandits.FedPE(rounding=functools.partial(rounding, extra=0))
    more = bandits.simulate(same, ENV, 100, trials=2, checkpoint=path)
    np.testing.assert_array_equal(more.regret[0], run.regret[0])
    other = bandits.FedPE(rounding=functools.partial(rounding, extra=1))
    with pytest.raises(ValueError, match="checkpoint must belong"):
        bandits.simulate(other, ENV, 100, trials=2, checkpoint=path)


@pytest.mark.slow
def test_the_hash_is_the_same_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests/bandits/simulation');"
        "import test_identity as t, functools, bandits;"
        "print(t.identity(bandits.FedPE(rounding=functools.partial(t.rounding, extra=2)), t.shifted()));"
        "print(t.identity(t.make_policy({'a', 'b', 'c'}, t.Heir, functions={t.rounding: t.uses_helpers})))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    here = identity(bandits.FedPE(rounding=functools.partial(rounding, extra=2)), shifted())
    made = identity(make_policy({"c", "b", "a"}, Heir, functions={rounding: uses_helpers}))
    assert said.split("\n")[:2] == [here, made]


def shifted():
    return Shifted(ENV.features, ENV.parameters, Recorded(np.arange(3.0)))


class Guarded:
    """Holds what has no content."""

    sigma = 1.0

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, _):
        return self

    def sums(self, _, means, counts):
        return counts * means


def test_what_has_no_content_must_have_a_name_to_be_resumed(tmp_path):
    env = bandits.LinearEnvironment(ENV.features, ENV.parameters, Guarded())
    with pytest.raises(ValueError, match=r"_thread.lock has none to look at.*attribute identity"):
        bandits.simulate(bandits.FedPE(), env, 100, trials=1, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="agree"):
        bandits.concatenate([bandits.simulate(bandits.FedPE(), env, 100, trials=1) for _ in range(2)])

    def named(text):
        noise = Guarded()
        noise.identity = text
        return identity(env=bandits.LinearEnvironment(ENV.features, ENV.parameters, noise))

    assert named("a") == named("a") != named("b")


def test_containers_and_cycles_are_followed():
    first: list = [1, {"a": np.arange(3), 2: {1, 2, 3}}]
    first.append(first)
    second: list = [1, {"a": np.arange(3), 2: {3, 2, 1}}]
    second.append(second)
    assert content_hash(first) == content_hash(second)
    array, listed = np.arange(3), [1, 2]
    assert content_hash(array, array) == content_hash(array, array.copy())
    assert content_hash([listed, listed]) == content_hash([listed, [1, 2]])
    assert content_hash([1, 2], [3]) != content_hash([1], [2, 3])
    distinct = [
        1, True, 1.0, "1", b"1", None, (1,), [1], {1}, {1: 1}, np.int64(1), np.array([1]), np.array([[1]]),
        np.array([1.0]), np.array([1], dtype=object), max, np.add, np, np.random.default_rng(1),
        np.random.default_rng(2), bandits.FedPE, bandits.FedPE().play, bandits.LocalUCB(),
        bandits.LocalUCB("ucb1"), slice(1), range(1),
    ]  # fmt: skip
    assert len({content_hash(thing) for thing in distinct}) == len(distinct)


def test_defaults_of_keywords_count():
    def make(default):
        def rule(x, *, scale=default):
            return scale * x

        return rule

    assert content_hash(make(1)) == content_hash(make(1))
    assert content_hash(make(1)) != content_hash(make(2))


def make_policy(bonus=0.0, base=bandits.FedPE, **attributes):
    return type("Made", (base,), {"bonus": bonus, **attributes})()


class Base(bandits.FedPE):
    """A class attribute that subclasses inherit."""

    factor = 1.0
    table = np.arange(3.0)


class Heir(Base):
    pass


class Bonus(bandits.LinearEnvironment):
    """A class attribute decides what is paid."""

    bonus = 0.0

    def pull(self, rng, counts):
        return super().pull(rng, counts) + self.bonus * counts


def test_class_attributes_count(monkeypatch):
    assert identity(make_policy(1.0)) == identity(make_policy(1.0))
    assert len({identity(make_policy(b)) for b in (1.0, 2.0, 1, True, "1", np.ones(2), [1.0], None)}) == 8
    before = identity(Heir())
    for name, value in (("factor", 2.0), ("table", np.arange(4.0)), ("new", 1)):
        with monkeypatch.context() as patch:
            patch.setattr(Base, name, value, raising=False)
            assert identity(Heir()) != before
    assert identity(Heir()) == before
    with monkeypatch.context() as patch:
        patch.setattr(bandits.FedPE, "parties", lambda _: None)
        assert identity(Heir()) != before, "methods of this package that were replaced in the class"


def test_class_attributes_of_environments_and_noises_count(monkeypatch):
    env = Bonus(ENV.features, ENV.parameters)
    before = identity(env=env)
    monkeypatch.setattr(Bonus, "bonus", 1.0)
    assert identity(env=env) != before
    noisy = bandits.LinearEnvironment(ENV.features, ENV.parameters, Recorded(np.zeros(2)))
    before = identity(env=noisy)
    monkeypatch.setattr(Recorded, "sigma", 2.0)
    assert identity(env=noisy) != before


def test_a_checkpoint_is_not_used_after_a_class_attribute_has_changed(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    env = Bonus(ENV.features, ENV.parameters)
    bandits.simulate(bandits.FedPE(), env, 100, trials=1, checkpoint=path)
    monkeypatch.setattr(Bonus, "bonus", 1.0)
    with pytest.raises(ValueError, match=r"checkpoint must belong .* another environment\. Name another"):
        bandits.simulate(bandits.FedPE(), env, 100, trials=1, checkpoint=path)
    with pytest.raises(ValueError, match="another environment and another horizon, times or seed"):
        bandits.simulate(bandits.FedPE(), env, 200, trials=1, checkpoint=path)


HELPERS = ModuleType("helpers")
HELPERS.SCALE = 1.0
HELPERS.inner = ModuleType("inner")
HELPERS.inner.rule = lambda x: x
HELPERS.unused = 1.0


def uses_helpers(w, f):
    return np.ceil(HELPERS.inner.rule(w * f) * HELPERS.SCALE).astype(int)


def test_what_a_function_names_in_a_module_counts(monkeypatch):
    before = content_hash(uses_helpers)
    monkeypatch.setattr(HELPERS, "unused", 2.0)
    assert content_hash(uses_helpers) == before
    monkeypatch.setattr(HELPERS, "SCALE", 2.0)
    second = content_hash(uses_helpers)
    monkeypatch.setattr(HELPERS.inner, "rule", lambda x: x + 1)
    assert len({before, second, content_hash(uses_helpers)}) == 3


def test_a_global_with_the_name_of_an_attribute_does_not_count(monkeypatch):
    """The policy reads trial.ENV, not the global of that name."""

    def rule(trial):
        return trial.ENV

    before = content_hash(rule)
    monkeypatch.setitem(globals(), "ENV", None)
    assert content_hash(rule) == before


def imports_late(w, f):
    from late_helper import rule

    return rule(w, f)


def test_what_a_function_imports_when_it_runs_counts(tmp_path, monkeypatch):
    """Whether it has run or not."""
    absent = content_hash(imports_late)
    helper = tmp_path / "late_helper.py"
    helper.write_text("def rule(w, f):\n    return w\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    before = content_hash(imports_late)
    assert before != absent
    assert imports_late(1, 2) == 1
    assert content_hash(imports_late) == before
    helper.write_text("def rule(w, f):\n    return 2 * w\n")
    assert content_hash(imports_late) != before
    sys.modules.pop("late_helper")


class Colour(enum.Enum):
    RED = 1

    def shade(self):
        return self.value


class Pale(enum.Enum):
    RED = 2


class Ordered(dict):
    """A dictionary with a method and a state."""

    def __missing__(self, key):
        return key


def test_subclasses_of_containers_masks_and_members_count():
    plain, other = Ordered(a=1), Ordered(a=1)
    other.extra = 2
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    function = functools.lru_cache(rounding)
    with_attribute = functools.wraps(rounding)(lambda w, f: rounding(w, f))
    with_attribute.scale = 3
    distinct = [
        {"a": 1}, plain, other, masked, np.ma.masked_array([1.0, 2.0], [True, False]), np.array([1.0, 2.0]),
        Colour.RED, Pale.RED, Colour, function, functools.lru_cache(uses_helpers), with_attribute,
        lambda a, b: a + b, lambda a, *, b: a + b, lambda a, /, b: a + b, logging.getLogger("one"),
        logging.getLogger("two"), {rounding: 1}, {uses_helpers: 1}, (1, 2), [1, 2],
    ]  # fmt: skip
    assert len({content_hash(thing) for thing in distinct}) == len(distinct)
    assert content_hash({rounding, uses_helpers}) == content_hash({uses_helpers, rounding})


def test_the_order_of_dictionaries_and_members_counts_and_that_of_attributes_does_not():
    """A policy may play the arms of a dictionary in its order."""
    items = [(1, "a"), (0, "b")]
    for kind in (dict, collections.OrderedDict, Ordered):
        assert content_hash(kind(items)) == content_hash(kind(items)) != content_hash(kind(items[::-1]))
    members = [enum.Enum("Mode", names, module=__name__) for names in (items_of("AB"), items_of("BA"))]
    assert content_hash(members[0]) != content_hash(members[1])
    one, other = Guarded.__new__(Guarded), Guarded.__new__(Guarded)
    one.a = other.b = one.b = other.a = 1
    assert content_hash(one) == content_hash(other)


def items_of(names):
    return {name: ord(name) for name in names}


class Caching:
    """Has values that are computed once, of which one holds the object itself."""

    @functools.cached_property
    def arm(self):
        return 0

    @functools.cached_property
    def parts(self):
        return [self, self.arm]

    @functools.cached_property
    def given(self):
        raise NotImplementedError


def test_assigned_values_of_cached_properties_count_and_computed_ones_do_not():
    """An assigned value replaces the function."""
    before = content_hash(Caching())
    computed, assigned, given = Caching(), Caching(), Caching()
    assert computed.parts == [computed, 0]
    assert content_hash(computed) == before
    assigned.arm, given.given = 1, 2
    assert len({before, content_hash(assigned), content_hash(given)}) == 3


class Busy(bandits.FedPE):
    """Counts its trials, which do not depend on the counter."""

    played = 0
    lock = threading.Lock()

    def play(self, trial):
        Busy.played += 1
        super().play(trial)


def test_a_text_stands_for_the_attributes_of_a_class(monkeypatch):
    with pytest.raises(ValueError, match=r"_thread\.lock has none to look at"):
        identity(Busy())
    monkeypatch.setattr(Busy, "identity", "1", raising=False)
    before = identity(Busy())
    monkeypatch.setattr(Busy, "played", 7)
    assert identity(Busy()) == before
    monkeypatch.setattr(Busy, "identity", "2")
    second = identity(Busy())
    monkeypatch.setattr(Busy, "play", lambda *_: None)
    assert len({before, second, identity(Busy())}) == 3, "the code of its methods counts all the same"
