"""Hunt for false rows of :func:`optdesign.candidates` with an expression as ``where``.

Claim: a row is kept exactly if the expression is true for it. Whole numbers, booleans and text compare
exactly, without overflow, and True counts as 1 in arithmetic. Comparisons of floats forgive round-off.

*Truth.* Every row is evaluated by itself in rational arithmetic. A float stands for the decimal that it was
made from, so that 0.1 + 0.2 equals 0.3. Cases in which two sides differ by a little more than round-off are
not drawn, because the documentation leaves their answer open. Every number carries a bound on what is
forgiven.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import optdesign as od
from hunt.claims import Found, call

WARM_UP = "decimals"

FORGIVEN, FORGIVEN_SINGLE = Fraction(1, 2**37), Fraction(1, 2**16)
"""Relative differences of numbers that may be forgiven: several times those that the package documents."""

ROWS = 12
DRAWS = 200
"""Expressions that are drawn until one has an answer for every row."""


class Open(Exception):
    """The documentation leaves the answer open, or there is none."""


class Number(NamedTuple):
    """A value, a bound on what may be forgiven in it, and whether it is a whole number throughout."""

    value: Fraction
    error: Fraction
    is_whole: bool


class Column(NamedTuple):
    """A column as it is given, and what its entries stand for."""

    given: np.ndarray
    means: list[Any]


# ------------------------------------------------------------------------------------------------ the columns


def whole(dtype: str, low: int, high: int) -> Callable[[np.random.Generator], Column]:
    """Return a function that draws integers of a type."""

    def draw(rng: np.random.Generator) -> Column:
        given = np.array([int(rng.integers(low, high)) for _ in range(ROWS)], dtype=dtype)
        return Column(given, [int(v) for v in given])

    return draw


def decimal(dtype: type) -> Callable[[np.random.Generator], Column]:
    """Return a function that draws multiples of 0.1 or 0.05 as floats, computed with round-off."""

    def draw(rng: np.random.Generator) -> Column:
        number = rng.integers(-12, 13, size=ROWS)
        step, share = (dtype(0.1), Fraction(1, 10)) if rng.random() < 0.7 else (dtype(0.05), Fraction(1, 20))
        given = number.astype(dtype) * step
        return Column(given, [int(k) * share for k in number])

    return draw


def flag(rng: np.random.Generator) -> Column:
    """Draw booleans."""
    given = rng.random(size=ROWS) < 0.5
    return Column(given, given.tolist())


def text(rng: np.random.Generator) -> Column:
    """Draw words."""
    given = rng.choice(["a", "b", "ab", "", "B", "ä"], size=ROWS).astype(object)
    return Column(given, given.tolist())


def large(dtype: str) -> Callable[[np.random.Generator], Column]:
    """Return a function that draws 64-bit integers near limits of exactness."""
    anchors = [2**53, 2**62, 2**31, 3, 10**18] + ([2**63, 2**64 - 9] if dtype == "uint64" else [-(2**62)])

    def draw(rng: np.random.Generator) -> Column:
        means = [int(anchors[rng.integers(0, len(anchors))]) + int(rng.integers(-3, 4)) for _ in range(ROWS)]
        return Column(np.array(means, dtype=dtype), means)

    return draw


COLUMNS: dict[str, dict[str, Callable[[np.random.Generator], Column]]] = {
    "unsigned": {"a": whole("uint8", 0, 256), "b": whole("uint8", 0, 256), "c": whole("uint16", 0, 2**16)},
    "signed": {"a": whole("int8", -128, 128), "b": whole("int16", -300, 300), "c": whole("int64", -9, 10)},
    "large_integers": {"a": large("int64"), "b": large("int64"), "c": large("uint64")},
    "decimals": {"a": decimal(np.float64), "b": decimal(np.float64), "c": whole("int64", -3, 4)},
    "single": {"a": decimal(np.float32), "b": decimal(np.float32), "c": decimal(np.float64)},
    "booleans": {"a": whole("int64", -2, 3), "b": decimal(np.float64), "p": flag, "q": flag},
    "text": {"a": whole("int64", -2, 3), "s": text, "t": text, "p": flag},
    "mixed": {
        "a": whole("uint8", 0, 256), "b": decimal(np.float32), "c": decimal(np.float64), "p": flag, "s": text,
    },
}  # fmt: skip
FAMILIES = list(COLUMNS)


# -------------------------------------------------------------------------------------------- the expressions


class Grammar:
    """Random expressions over columns of known kinds."""

    def __init__(self, columns: dict[str, Column], rng: np.random.Generator) -> None:
        self.rng = rng
        kinds = {name: column.given.dtype.kind for name, column in columns.items()}
        self.columns = columns
        self.numbers = [name for name, kind in kinds.items() if kind in "iuf"]
        self.flags = [name for name, kind in kinds.items() if kind == "b"]
        self.words = [name for name, kind in kinds.items() if kind == "O"]

    def pick(self, options: Any) -> str:
        """Return one of the options."""
        return str(options[self.rng.integers(0, len(options))])

    def constant(self) -> str:
        """Return a number, often one that is near the values of a column."""
        draw = self.rng.random()
        if draw < 0.5:
            means = self.columns[self.pick(self.numbers)].means
            value = means[self.rng.integers(0, len(means))]
            return repr(float(value)) if isinstance(value, Fraction) else str(int(value))
        if draw < 0.8:
            return self.pick(["0", "1", "2", "3", "7", "255", "100"])
        return self.pick(["0.1", "0.2", "0.3", "0.5", "1.5", "1e3"])

    def number(self, depth: int) -> str:
        """Return an arithmetic expression."""
        draw = self.rng.random()
        if depth == 0 or draw < 0.25:
            if self.flags and self.rng.random() < 0.2:
                return self.pick(self.flags)
            return self.pick(self.numbers) if self.rng.random() < 0.7 else self.constant()
        if draw < 0.35:
            return f"-{self.number(0)}" if self.rng.random() < 0.5 else f"(-({self.number(depth - 1)}))"
        if draw < 0.5:
            return f"({self.condition(0)}) + ({self.condition(0)})"
        left, right = self.number(depth - 1), self.number(depth - 1)
        sign = self.pick(["+", "-", "*", "+", "-", "*", "/", "//", "%", "**"])
        if sign == "**":
            right = self.pick(["2", "3", "1", "0.5"])
        return f"({left}) {sign} ({right})" if self.rng.random() < 0.5 else f"({left} {sign} {right})"

    def condition(self, depth: int) -> str:
        """Return an expression that is true or false."""
        draw = self.rng.random()
        if depth > 0 and draw < 0.4:
            left, right = self.condition(depth - 1), self.condition(depth - 1)
            both = f"({left}) {self.pick(['&', '|', '=='])} ({right})"
            return self.pick(
                [f"{left} and {right}", f"{left} or {right}", f"not ({left})", f"({both})", f"(~({left}))",
                 f"not {left} or {right}"]
            )  # fmt: skip
        if self.flags and draw < 0.5:
            return self.pick(self.flags)
        if self.words and draw < 0.7:
            one, other = self.pick(self.words), self.pick([*self.words, "'a'", "'b'"])
            return self.pick(
                [f"{one} == {other}", f"{one} != {other}", f"{one} in ['a', 'ab']", f"{one} not in ('b',)"]
            )
        if draw < 0.8:
            listed = ", ".join(self.constant() for _ in range(int(self.rng.integers(1, 4))))
            return f"{self.number(1)} {self.pick(['in', 'not in'])} [{listed}]"
        signs = ["<", "<=", ">", ">=", "==", "!="]
        chain = f"{self.number(2)} {self.pick(signs)} {self.number(1)}"
        return chain if self.rng.random() < 0.75 else f"{chain} {self.pick(signs)} {self.number(1)}"


# -------------------------------------------------------------------------------------------------- the truth

COMPARED: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


class Row:
    """The value of an expression for one row."""

    def __init__(self, columns: dict[str, Column], n: int) -> None:
        self.columns, self.n = columns, n

    def value(self, node: ast.expr) -> Any:
        """Return a Number, a bool or a text."""
        if isinstance(node, ast.Name):
            column = self.columns[node.id]
            return _leaf(column.means[self.n], column.given.dtype)
        if isinstance(node, ast.Constant):
            exact = Fraction(repr(node.value)) if isinstance(node.value, float) else node.value
            return _leaf(exact, np.dtype(float))
        if isinstance(node, ast.BoolOp):
            values = [_truth(self.value(v)) for v in node.values]
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BinOp):
            left, right = self.value(node.left), self.value(node.right)
            if isinstance(node.op, ast.BitAnd | ast.BitOr):
                both = _truth(left), _truth(right)
                return all(both) if isinstance(node.op, ast.BitAnd) else any(both)
            return _arithmetic(node.op, _number(left), _number(right))
        assert isinstance(node, ast.Compare)
        left = self.value(node.left)
        held = []
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                assert isinstance(right_node, ast.List | ast.Tuple)
                found = [_compared(ast.Eq(), left, self.value(v)) for v in right_node.elts]
                held.append(any(found) == isinstance(op, ast.In))
            else:
                right = self.value(right_node)
                held.append(_compared(op, left, right))
                left = right
        return all(held)

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not | ast.Invert):
            return not _truth(value)
        number = _number(value)
        return number._replace(value=-number.value)


def _leaf(value: Any, dtype: np.dtype) -> Any:
    if isinstance(value, bool | str):
        return value
    single = dtype.kind == "f" and dtype.itemsize < 8
    share = FORGIVEN_SINGLE if single else FORGIVEN
    exact = Fraction(value)
    return Number(exact, abs(exact) * share, isinstance(value, int))


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Open("a number where a condition belongs")
    return value


def _number(value: Any) -> Number:
    if isinstance(value, str):
        raise Open("text in arithmetic")
    return Number(Fraction(int(value)), Fraction(0), True) if isinstance(value, bool) else value


def _arithmetic(op: ast.operator, a: Number, b: Number) -> Number:
    is_whole = a.is_whole and b.is_whole
    if isinstance(op, ast.Add | ast.Sub):
        return Number(
            a.value + b.value if isinstance(op, ast.Add) else a.value - b.value, a.error + b.error, is_whole
        )
    if isinstance(op, ast.Mult):
        error = abs(a.value) * b.error + abs(b.value) * a.error + a.error * b.error
        return Number(a.value * b.value, error, is_whole)
    if isinstance(op, ast.Pow):
        return _power(a, b)
    if abs(b.value) <= 2 * b.error:
        raise Open("division by zero")
    quotient = a.value / b.value
    error = (a.error + abs(quotient) * b.error) / (abs(b.value) - b.error)
    if isinstance(op, ast.Div):
        return Number(quotient, error, False)
    if not is_whole and (error > Fraction(1, 4) or 0 < abs(quotient - round(quotient)) <= 2 * error):
        raise Open("a quotient of floats near a whole number, but not equal to it")
    if isinstance(op, ast.FloorDiv):
        return Number(Fraction(quotient.__floor__()), Fraction(0) if is_whole else error, is_whole)
    rest = a.value - quotient.__floor__() * b.value
    return Number(rest, a.error + abs(quotient) * b.error + b.error, is_whole)


def _power(a: Number, b: Number) -> Number:
    if b.value.denominator == 1 and 0 <= b.value <= 4:
        n = int(b.value)
        error = (abs(a.value) + a.error) ** n - abs(a.value) ** n + abs(a.value) ** n * FORGIVEN
        return Number(a.value**n, error, a.is_whole and b.is_whole)
    root = Fraction(round(float(a.value) ** 0.5, 9)) if a.value >= 0 else None
    if b.value == Fraction(1, 2) and root is not None and root**2 == a.value:
        return Number(root, root * FORGIVEN_SINGLE, False)
    raise Open("a power that is not rational")


def _compared(op: ast.cmpop, left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        if not isinstance(left, str) or not isinstance(right, str):
            raise Open("text and numbers compared")
        return COMPARED[type(op)](left, right)
    a, b = _number(left), _number(right)
    if not (a.is_whole and b.is_whole) and 0 < abs(a.value - b.value) <= a.error + b.error:
        raise Open("two sides differ by little more than round-off")
    return COMPARED[type(op)](a.value, b.value)


# --------------------------------------------------------------------------------------------------- the hunt


class Condition(NamedTuple):
    """Columns, an expression, and the rows for which it is true."""

    columns: dict[str, Column]
    where: str
    kept: list[int]


def case(family: str, seed: int) -> Found:
    """Draw columns and an expression, and examine the rows that are kept."""
    rng = np.random.default_rng([seed, 6, FAMILIES.index(family)])
    return examine(drawn(family, rng))


def drawn(family: str, rng: np.random.Generator) -> Condition:
    """Draw columns and an expression that has an answer for every row."""
    columns = {name: draw(rng) for name, draw in COLUMNS[family].items()}
    grammar = Grammar(columns, rng)
    for _ in range(DRAWS):
        where = grammar.condition(2)
        tree = ast.parse(where, mode="eval").body
        if not any(isinstance(node, ast.Name) for node in ast.walk(tree)):
            continue
        try:
            kept = [n for n in range(ROWS) if _truth(Row(columns, n).value(tree))]
        except (Open, OverflowError):
            continue
        found = Condition(columns, where, kept)
        if 0 < len(kept) < ROWS or rng.random() < 0.1:
            return found
    return found


def examine(condition: Condition) -> Found:
    """Apply the condition, and compare the rows that are kept with the truth."""
    frame = pd.DataFrame({name: column.given for name, column in condition.columns.items()})
    frame["row"] = np.arange(ROWS)
    made, refusal = call(od.candidates, frame, "~ row", where=condition.where)
    if made is None:
        if "leaves none" in refusal:
            wrong = f"{condition.where!r} leaves none, truly {condition.kept}" if condition.kept else ""
            return Found("none left", wrong)
        return Found("refused")
    kept = made.settings["row"].tolist()
    if kept != condition.kept:
        n = min(set(kept) ^ set(condition.kept))
        values = {name: column.given[n] for name, column in condition.columns.items()}
        return Found("kept", f"{condition.where!r} {'keeps' if n in kept else 'drops'} the row {values}")
    return Found("kept")
