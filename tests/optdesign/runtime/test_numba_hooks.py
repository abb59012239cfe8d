"""The private parts of Numba that optdesign.runtime uses are where they were, and behave as they did."""

import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core import caching, dispatcher

REMEDY = (
    "This version of Numba has not been tested. Adapt optdesign/runtime/jit.py and tiers.py to it, then "
    "change the range of numba in pyproject.toml; or install a version in that range: pip install 'numba{}'."
)

SIGNATURES: dict[Callable[..., Any], list[str]] = {
    dispatcher.Dispatcher._compile_for_args: ["self", "*args", "**kws"],
    dispatcher.Dispatcher.typeof_pyval: ["self", "val"],
    caching.FunctionCache.__init__: ["self", "py_func"],
    caching.FunctionCache.load_overload: ["self", "sig", "target_context"],
    caching.FunctionCache._index_key: ["self", "sig", "codegen"],
    caching.FunctionCache._guard_against_spurious_io_errors: ["self"],
    caching.IndexDataCacheFile.__init__: ["self", "cache_path", "filename_base", "source_stamp"],
    caching.IndexDataCacheFile._load_index: ["self"],
    caching.NullCache.load_overload: ["self", "sig", "target_context"],
}
"""Every private function that is replaced, overridden or called, with its parameters."""


def declared() -> str:
    """Return the range of Numba in pyproject.toml, such as '>=0.60,<0.61'."""
    path = Path(__file__).parents[3] / "pyproject.toml"
    dependencies = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["dependencies"]
    return next(d.removeprefix("numba") for d in dependencies if re.match(r"numba\b", d))


def check(holds: bool, what: str) -> None:
    assert holds, f"Numba {numba.__version__}: {what}. {REMEDY.format(declared())}"


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def test_numba_is_in_the_declared_range() -> None:
    least, below = re.fullmatch(r">=(\d+\.\d+),<(\d+\.\d+)", declared()).groups()  # type: ignore[union-attr]
    check(numbers(least) <= numbers(numba.__version__) < numbers(below), f"it is outside {declared()}")


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda f: f.__qualname__)
def test_parameters_are_as_expected(function: Callable[..., Any]) -> None:
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = [marks.get(p.kind, "") + p.name for p in inspect.signature(function).parameters.values()]
    expected = SIGNATURES[function]
    check(found == expected, f"{function.__qualname__} takes {found}, and {expected} is expected")


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_compiled_functions_have_the_attributes_that_are_replaced() -> None:
    function = numba.njit(lambda x: x)
    for name in ("_cache", "_compile_for_args", "py_func", "targetctx", "overloads", "signatures", "stats"):
        check(hasattr(function, name), f"a compiled function has no {name}")
    check(isinstance(function._cache, caching.NullCache), "a function without a cache has no NullCache")
    cache = caching.FunctionCache(declared)
    for name in ("_cache_file", "_py_func", "cache_path"):
        check(hasattr(cache, name), f"FunctionCache has no {name}")
    check(hasattr(cache._cache_file, "_source_stamp"), "the file of a FunctionCache has no _source_stamp")


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_a_replaced_hook_is_called_and_its_answer_too() -> None:
    """Numba calls ``_compile_for_args`` without machine code in memory, and then what it returns."""
    function, calls = numba.njit(lambda x: x + 1), []

    def hook(*arguments: Any) -> Callable[..., Any]:
        calls.append(arguments)
        return lambda x: 10 * x

    function._compile_for_args = hook
    x = np.arange(3)
    check(function(x).tolist() == [0, 10, 20], "the answer of a replaced _compile_for_args is not called")
    check(len(calls) == 1 and calls[0][0] is x, "a replaced _compile_for_args is not called once")


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_machine_code_is_looked_up_before_it_is_compiled() -> None:
    """``load_overload`` is called once for each signature; None means that Numba compiles next."""

    class Cache(caching.NullCache):
        calls = 0

        def load_overload(self, sig: Any, target_context: Any) -> None:  # noqa: ARG002
            Cache.calls += 1

    function = numba.njit(lambda x: x + 1)
    function._cache = Cache()
    results = [function(1), function(2), function(1.0)]
    check(results == [2, 3, 2.0] and Cache.calls == 2, f"load_overload was called {Cache.calls} times, not 2")
