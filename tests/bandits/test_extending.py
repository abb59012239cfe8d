"""The page on policies of one's own: its code runs, is short, and does what the page says."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import bandits
from optdesign.runtime.jit import code_hash

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
ENV = bandits.environments.authors(6, 8, 2, seed=0)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """What the code of the page defines, as a module."""
    file = tmp_path_factory.mktemp("page") / "mypolicies.py"
    file.write_text("\n".join(BLOCKS))
    spec = importlib.util.spec_from_file_location("mypolicies", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules["mypolicies"] = module
    spec.loader.exec_module(module)
    yield vars(module)
    del sys.modules["mypolicies"]


def test_the_policies_of_the_page_are_short():
    phased, stepwise, _ = BLOCKS
    assert "Halving" in phased
    assert "PooledUCB" in stepwise
    assert max(len(block.strip().splitlines()) for block in (phased, stepwise)) < 40


@pytest.mark.slow
def test_the_page_plays_its_policies(page):
    assert {"Halving", "PooledUCB", "run"} <= set(page)
    assert page["run"].policy == "EnhancedFedPE"


@pytest.mark.slow
def test_the_phased_policy_halves_and_explores_evenly(page):
    run = bandits.simulate(page["Halving"](), ENV, 400, trials=2)
    active = run.phases["active"][run.phases["trial"] == 0]
    assert active.tolist()[:4] == [4, 2, 1, 1]
    np.testing.assert_array_equal(run.phases["sparsity"], run.phases["active"])
    assert np.all(run.phases["iterations"] == 0)


@pytest.mark.slow
@pytest.mark.parametrize("period", [7, 1000])
def test_the_stepwise_policy_is_that_of_a_plain_loop(page, period):
    """Without noise decisions are a matter of arithmetic; here they are made again in ten lines."""
    env = bandits.LinearEnvironment(ENV.features, ENV.parameters, scale=0.0)
    run = bandits.simulate(page["PooledUCB"](period), env, 200, trials=1, times=range(1, 201))
    m, k = env.means.shape
    pulls, total, news = np.zeros((m, k)), np.zeros((m, k)), np.zeros((2, m, k))
    lost = []
    for t in range(1, 201):
        n = np.maximum(pulls, 1e-9)
        arms = np.argmax(total / n + np.sqrt(2 * np.log(t + 1) / n), axis=1)
        once = np.eye(k)[arms]
        pulls, total, news = pulls + once, total + once * env.means, news + np.array([once, once * env.means])
        if t % period == 0:
            pulls, total = (x + y.sum(axis=0) - y for x, y in zip((pulls, total), news, strict=True))
            news[:] = 0
        lost.append((once * env.gaps).sum() / m)
    np.testing.assert_allclose(run.regret[0], np.cumsum(lost), rtol=1e-10, atol=1e-10)
    assert run.uploaded[0] == run.downloaded[0] == (200 // period) * 2 * m * k


@pytest.mark.slow
def test_the_generic_path_makes_the_same_decisions(page):
    class Plain:
        """No noise, told to nobody."""

        sigma = 1.0

        def sums(self, _, means, counts):
            return counts * means

    quiet = bandits.LinearEnvironment(ENV.features, ENV.parameters, scale=0.0)
    told = bandits.LinearEnvironment(ENV.features, ENV.parameters, Plain())
    for policy in (page["PooledUCB"](9), bandits.LocalUCB(sigma=1.0)):
        a, b = (bandits.simulate(policy, env, 300, trials=1) for env in (quiet, told))
        np.testing.assert_allclose(a.regret, b.regret, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(a.uploaded, b.uploaded)


def helper_one(x):
    return x + STEP


def helper_two(x):
    return x + 2 * STEP


STEP = 1


def test_the_cache_knows_all_the_code_that_a_loop_is_made_of(monkeypatch):
    """A change in a function that a policy calls, or in a constant it names, is another loop."""

    def choose(state, *_):
        return helper_one(state)

    def name():
        return code_hash([choose])

    first = name()
    assert name() == first
    monkeypatch.setitem(globals(), "STEP", 3)
    second = name()
    monkeypatch.setitem(globals(), "helper_one", helper_two)
    assert len({first, second, name()}) == 3


@pytest.mark.slow
def test_loops_are_compiled_once_for_all_processes():
    """A second process takes the compiled loop from the disk."""
    code = (
        "import bandits; from bandits.policies.stepwise import compiled, _rounds;"
        "bandits.simulate(bandits.LocalUCB(), bandits.environments.authors(2, 2, 2), 5, trials=1);"
        "print(sum(compiled(bandits.LocalUCB, _rounds).stats.cache_hits.values()))"
    )
    said = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert said[1].strip() == "1"


@pytest.mark.slow
def test_an_edit_of_what_a_policy_calls_is_seen(tmp_path):
    """The policy's own file stays as it is."""
    rule = tmp_path / "rule.py"
    rule.write_text("import numba\nARM = 1\n@numba.njit\ndef favourite():\n    return ARM\n")
    (tmp_path / "policy.py").write_text(
        "from bandits.policies.stepwise import Stepwise\n"
        "from rule import favourite\n"
        "class Stubborn(Stepwise):\n"
        "    @staticmethod\n"
        "    def choose(state, i, t, rng):\n"
        "        return favourite()\n"
    )
    code = (
        "import numpy as np; from policy import Stubborn;"
        "from bandits.policies.stepwise import compiled, _decide;"
        "arms = np.zeros(1, np.int64); loop = compiled(Stubborn, _decide);"
        "loop(0.0, 1, np.random.default_rng(0), arms, 3, np.zeros(3));"
        "print(arms[0], sum(loop.stats.cache_hits.values()))"
    )

    def ask():
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return run.stdout.split()

    assert ask() == ["1", "0"]
    assert ask() == ["1", "1"]
    rule.write_text(rule.read_text().replace("ARM = 1", "ARM = 2"))
    assert ask() == ["2", "0"]


FAVOURITE = 0


class Named(bandits.Stepwise):
    """Plays the arm that a global names."""

    def start(self, _):
        return Nothing(0)

    @staticmethod
    def choose(_state, _i, _t, _rng):
        return FAVOURITE


@pytest.mark.kernels
def test_a_constant_that_changes_is_seen_in_the_same_process(monkeypatch):
    """Compiled code keeps the constants of its time, so another value needs another loop."""
    for arm in (0, 1, 0):
        monkeypatch.setitem(globals(), "FAVOURITE", arm)
        run = bandits.simulate(Named(), ENV, 10, trials=1)
        assert run.regret[0, -1] == pytest.approx(10 * ENV.gaps[:, arm].mean(), rel=1e-12)
    monkeypatch.setattr(Named, "choose", staticmethod(lambda _s, _i, _t, _r: 2))
    run = bandits.simulate(Named(), ENV, 10, trials=1)
    assert run.regret[0, -1] == pytest.approx(10 * ENV.gaps[:, 2].mean(), rel=1e-12)


def always(arm, weights):
    """A policy made by a function: what it closes over is part of it."""

    class Always(bandits.Stepwise):
        def start(self, _):
            return Nothing(0)

        @staticmethod
        def choose(_state, _i, _t, _rng):
            return arm + int(weights.sum())

    return Always()


class Nothing(NamedTuple):
    empty: int


def test_policies_that_differ_in_their_closures_are_not_mixed_up():
    for arm, shift in ((0, 0), (1, 0), (1, 2)):
        run = bandits.simulate(always(arm, np.full(2, shift / 2)), ENV, 10, trials=1)
        assert run.regret[0, -1] == pytest.approx(10 * ENV.gaps[:, arm + shift].mean(), abs=1e-12)
