"""Random conditions, compared with an evaluation of every row in exact rational arithmetic."""

from __future__ import annotations

import ast
import operator
from decimal import Decimal, getcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from kept_rows import INTEGERS, rows

HOLDS = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
NEGLIGIBLE = Fraction(1, 10**60)


class Unclear(Exception):
    """A row whose truth depends on less than the tolerance."""


class Exact(NamedTuple):
    """An exact value, and how far it moves if every fraction among its inputs moves by 2^-40 of itself."""

    value: Fraction
    error: Fraction


UNDEFINED = "undefined"
"""The result of a division by 0."""


def read(value: Any, error: Fraction) -> Any:
    exact = Fraction(value)
    return Exact(exact, abs(exact) * error)


def combine(op: ast.operator, a: Any, b: Any) -> Any:
    """Return the exact result of an operation with its error to first order."""
    if UNDEFINED in (a, b):
        return UNDEFINED
    (x, ex), (y, ey) = a, b
    if (ex or ey or isinstance(op, ast.Div)) and max(abs(x), abs(y)) > 2**53:  # which is rounded
        ex, ey = ex + abs(x) / 2**50, ey + abs(y) / 2**50
    if isinstance(op, ast.Add):
        return Exact(x + y, ex + ey)
    if isinstance(op, ast.Sub):
        return Exact(x - y, ex + ey)
    if isinstance(op, ast.Mult):
        return Exact(x * y, abs(x) * ey + abs(y) * ex + ex * ey)
    if isinstance(op, ast.Pow):
        return raised(a, b)
    if 0 < abs(y) <= 4 * ey:
        raise Unclear
    if y == 0:
        return UNDEFINED
    quotient = Exact(x / y, (ex + abs(x / y) * ey) / abs(y))
    if isinstance(op, ast.Div):
        return quotient
    floor = Fraction(quotient.value.__floor__())
    apart = abs(quotient.value - round(quotient.value))
    if 0 < apart <= 4 * quotient.error or quotient.error > Fraction(1, 10):
        raise Unclear
    return (
        Exact(floor, Fraction(0))
        if isinstance(op, ast.FloorDiv)
        else combine(ast.Sub(), a, combine(ast.Mult(), b, Exact(floor, Fraction(0))))
    )


def raised(a: Exact, b: Exact) -> Any:
    (x, ex), (y, _) = a, b
    if x == 0 and y < 0:
        return UNDEFINED
    if 0 < abs(x) <= 4 * ex and (y < 0 or y.denominator > 1):
        raise Unclear
    if y.denominator == 1:
        value = x ** int(y)
    elif x < 0:
        return UNDEFINED
    else:
        getcontext().prec = 80
        value = Fraction((Decimal(x.numerator) / x.denominator) ** (Decimal(y.numerator) / y.denominator))
    near = abs(y) * abs(value) * ex / abs(x) if x else (ex ** int(y) if y.denominator == 1 else ex)
    return Exact(value, 4 * near + abs(value) * Fraction(1, 2**36))


def reference(node: ast.expr, row: dict[str, Any]) -> Any:
    """Return the value of a node in one row: an Exact, a bool, text or UNDEFINED."""
    if isinstance(node, ast.Name):
        return row[node.id]
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool | str):
            return node.value
        decimal = Fraction(Decimal(repr(node.value)))
        return read(decimal, Fraction(isinstance(node.value, float), 2**40))
    if isinstance(node, ast.BoolOp):
        join = all if isinstance(node.op, ast.And) else any
        return join([reference(v, row) for v in node.values])
    if isinstance(node, ast.UnaryOp):
        operand = reference(node.operand, row)
        if isinstance(node.op, ast.Not):
            return not operand
        return combine(ast.Sub(), read(0, Fraction(0)), number(operand))
    if isinstance(node, ast.BinOp):
        return combine(node.op, number(reference(node.left, row)), number(reference(node.right, row)))
    assert isinstance(node, ast.Compare)
    left, truth = reference(node.left, row), []
    for op, other in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn):
            found = [compared(ast.Eq(), left, reference(e, row)) for e in other.elts]
            truth.append(any(found) == isinstance(op, ast.In))
        else:
            right = reference(other, row)
            truth.append(compared(op, left, right))
            left = right
    return all(truth)


def number(value: Any) -> Any:
    return read(int(value), Fraction(0)) if isinstance(value, bool) else value


def compared(op: ast.cmpop, a: Any, b: Any) -> bool:
    a, b = number(a), number(b)
    if isinstance(a, str) and isinstance(b, str) and UNDEFINED not in (a, b):
        return HOLDS[type(op)](a, b)
    if UNDEFINED in (a, b):
        raise Unclear  # infinities and NaN have tests of their own
    apart, error = abs(a.value - b.value), a.error + b.error
    if apart <= NEGLIGIBLE:
        return HOLDS[type(op)](0, 0)
    largest = max(abs(a.value), abs(b.value))
    if error and apart <= 4 * error + largest / 2**45:
        raise Unclear
    return HOLDS[type(op)](a.value, b.value)


def draw_columns(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return columns of many types, and the same rows as exact values."""
    columns: dict[str, Any] = {}
    truth: dict[str, list[Any]] = {}
    for name in "abc":
        dtype = INTEGERS[rng.integers(len(INTEGERS))]
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        span = rng.choice([3, 20, 10**6, high])
        columns[name] = rng.integers(max(low, -span), min(high, span), n, dtype=dtype, endpoint=True)
        truth[name] = [read(int(v), Fraction(0)) for v in columns[name]]
    for name in "xyz":
        tenths, scale = rng.integers(-30, 31, n), int(rng.choice([2, 4, 5, 10, 100]))
        columns[name] = tenths / scale
        truth[name] = [read(Fraction(int(t), scale), Fraction(1, 2**40)) for t in tenths]
    for name in "uv":
        columns[name] = rng.random(n) < 0.5
        truth[name] = columns[name].tolist()
    columns["g"] = np.array(["p", "q", "r"], dtype=object)[rng.integers(3, size=n)]
    truth["g"] = columns["g"].tolist()
    return columns, [dict(zip(truth, row, strict=True)) for row in zip(*truth.values(), strict=True)]


def draw_number(rng: np.random.Generator, depth: int, names: str) -> str:
    kind = rng.integers(10) if depth else rng.integers(4)
    if kind < 3:
        return str(rng.choice(list(names)))
    if kind == 3:
        whole = not set(names) & set("xyz") or rng.random() < 0.5
        return str(rng.integers(1, 300)) if whole else str(rng.integers(1, 40) / 10)
    if kind == 4:
        return f"(-{draw_number(rng, depth - 1, names)})"
    if kind == 5:
        return f"({draw_condition(rng, depth - 1, names)})"
    if kind == 6:
        exponent = rng.choice(["2", "3", "0", "5"] + ["-1", "-2", "0.5"] * bool(set(names) & set("xyz")))
        return f"({draw_number(rng, depth - 1, names)}) ** {exponent}"
    signs = ["+", "-", "*", "//", "%"] + ["/"] * bool(set(names) & set("xyz"))
    left, right = draw_number(rng, depth - 1, names), draw_number(rng, depth - 1, names)
    return f"({left} {rng.choice(signs)} {right})"


def draw_condition(rng: np.random.Generator, depth: int, names: str) -> str:
    kind = rng.integers(8) if depth else 0
    if kind == 1:
        return f"(not {draw_condition(rng, depth - 1, names)})"
    if kind == 2:
        word = rng.choice(["and", "or"])
        return f"({draw_condition(rng, depth - 1, names)} {word} {draw_condition(rng, depth - 1, names)})"
    if kind == 3:
        entries = ", ".join(draw_number(rng, 0, names) for _ in range(rng.integers(1, 4)))
        return f"{draw_number(rng, depth - 1, names)} {rng.choice(['in', 'not in'])} [{entries}]"
    if kind == 4:
        return f"g {rng.choice(['==', '!=', '<', '>='])} '{rng.choice(list('pqr'))}'"
    sides = [draw_number(rng, max(depth - 1, 0), names) for _ in range(2 + (kind == 5))]
    text = sides[0]
    for side in sides[1:]:
        text += f" {rng.choice(['==', '!=', '<', '<=', '>', '>='])} {side}"
    return text


def check(seed: int, n: int = 12) -> int:
    """Compare one random expression on n rows with the reference. Return the number of rows compared."""
    rng = np.random.default_rng(seed)
    columns, truth = draw_columns(rng, n)
    names = str(rng.choice(["abcuv", "abcxyzuv", "xyz", "abc"]))
    where = draw_condition(rng, int(rng.integers(1, 5)), names)
    tree = ast.parse(where, mode="eval").body
    if not any(isinstance(node, ast.Name) for node in ast.walk(tree)):
        return 0
    try:
        found = rows(columns, where)
    except ValueError as error:
        if "whole numbers must stay below" in str(error):
            return 0
        raise
    count = 0
    for k, row in enumerate(truth):
        try:
            expected = reference(tree, row)
        except Unclear:
            continue
        count += 1
        plain = {name: column[k] for name, column in columns.items()}
        assert (k in found) == expected, f"seed {seed}: {where} in {plain}"
    return count


@pytest.mark.parametrize("start", range(0, 400, 100))
def test_random_expressions_equal_exact_arithmetic(start: int) -> None:
    assert sum(check(seed) for seed in range(start, start + 100)) > 500


@pytest.mark.slow
def test_many_random_expressions_equal_exact_arithmetic() -> None:
    assert sum(check(seed) for seed in range(1000, 6000)) > 25_000
