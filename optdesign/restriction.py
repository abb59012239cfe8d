"""Which settings are possible: a condition on the factors.

A condition is a boolean array, a function of the settings, or an expression such as
``temp + 2 * press <= 90 and cat in ["a", "b"]``. Expressions are evaluated by ``pandas.DataFrame.eval``
(names that are not Python's in backticks), which by itself would follow attributes and call functions; so
only names of factors, numbers, text, lists, arithmetic, comparisons and and, or, not are let through to it.

Comparisons of numbers forgive rounding: 0.1 + 0.2 is at most 0.3, and equals it. Two sides are equal if they
would be for some numbers within a fraction 2^-40 of those that they are computed from, so that
``a + b - 0.3 <= 0`` says the same as ``a + b <= 0.3``. Whole numbers, text and booleans compare exactly.
"""

from __future__ import annotations

import ast
import io
import operator
import re
import tokenize
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from optdesign.settings import Settings, listed, lookup

ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Invert, ast.USub, ast.UAdd,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.FloorDiv, ast.BitAnd, ast.BitOr,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple,
)  # fmt: skip
"""What an expression may be made of."""

ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.Mod: operator.mod, ast.Pow: operator.pow, ast.FloorDiv: operator.floordiv,
}  # fmt: skip

COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip

ROUNDING = 2.0**-40
"""What numbers may be off by, as a fraction of them: four thousand roundings."""

SINGLE_ROUNDING = 2.0**-19
"""The same for columns in single precision: sixteen roundings."""

QUOTED = re.compile(r"`([^`]*)`")


def kept(settings: Settings, where: Any) -> np.ndarray:
    """The rows of the settings that meet a condition.

    >>> kept(Settings({"x": [1, 2, 3]}), lambda s: s["x"] > 1)
    array([1, 2])
    """
    n = settings.n_rows
    if isinstance(where, str):
        mask, how = _evaluated(settings, where), f"where {where!r}"
    elif callable(where):
        mask, how = np.asarray(where(settings)), "where, as a function of the settings,"
    else:
        mask, how = np.asarray(where), "where"
    if mask.dtype == object and all(isinstance(v, bool | np.bool_) for v in mask.reshape(-1)):
        mask = mask.astype(bool)
    if mask.shape != (n,) or mask.dtype != bool:
        raise ValueError(
            f"{how} must give True or False for each of {n} settings; got {mask.dtype} of shape "
            f"{mask.shape}. Compare columns, as in 'temp <= 60'."
        )
    if not mask.any():
        raise ValueError(f"{how} must leave some settings; it leaves none of {n}. Relax the condition.")
    return np.flatnonzero(mask)


def _evaluated(settings: Settings, where: str) -> np.ndarray:
    from optdesign.model import pandas

    stands_for = {f"_quoted_{k}_": name for k, name in enumerate(QUOTED.findall(where))}
    names = iter(stands_for)
    try:
        tree = ast.parse(_with_words(QUOTED.sub(lambda _: next(names), where).strip()), mode="eval")
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        raise ValueError(
            f"where must be an expression such as 'temp <= 60 and cat == \"a\"'; {where!r} is none "
            f"({getattr(error, 'msg', error)})."
        ) from None
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED):
            raise ValueError(
                f"where must be made of factors, numbers, text and comparisons; {where!r} has "
                f"{type(node).__name__.lower()}, which is not evaluated. Pass a function of the settings."
            )
        if isinstance(node, ast.Name):
            lookup(settings, stands_for.get(node.id, node.id), "where")
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not used:
        raise ValueError(
            f"where must name a factor; {where!r} names none. The factors are {listed(settings)}."
        )
    columns = {name: settings[stands_for.get(name, name)] for name in used}
    try:
        rest = ast.unparse(_Forgiving(columns, settings.n_rows).visit(tree))
        frame = pandas().DataFrame(columns)
        return np.asarray(frame.eval(rest, engine="python", parser="pandas", local_dict={}, global_dict={}))
    except Exception as error:
        raise ValueError(f"where must be a condition on the settings; {where!r} fails ({error}).") from None


def _with_words(where: str) -> str:
    """An expression with and, or for the signs &, |, which pandas takes to bind as loosely."""
    words = {"&": "and", "|": "or"}
    found = tokenize.generate_tokens(io.StringIO(where).readline)
    is_sign = [(t.type == tokenize.OP and t.string in words, t) for t in found]
    tokens = [(tokenize.NAME, words[t.string]) if sign else (t.type, t.string) for sign, t in is_sign]
    return tokenize.untokenize(tokens).strip()


class _Forgiving(ast.NodeTransformer):
    """Puts columns of True and False in the place of comparisons of numbers. Adds to the columns."""

    def __init__(self, columns: dict[str, np.ndarray], n: int) -> None:
        self.columns, self.n = columns, n

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        pairs = list(zip(sides, node.ops, sides[1:], strict=False))
        if len(pairs) > 1:  # a < b < c
            return ast.BoolOp(ast.And(), [self._compared(*pair) for pair in pairs])
        return self._compared(*pairs[0])

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        among = isinstance(op, ast.In | ast.NotIn)
        others = list(right.elts) if among and isinstance(right, ast.List | ast.Tuple) else [right]
        if not all(map(self._is_number, [left, *others])) or (among and others == [right]):
            return ast.Compare(left, [op], [right])
        a = self._number(left)
        if among:
            found = [_holds(operator.eq, a, self._number(other)) for other in others]
            mask = np.logical_or.reduce(found) == isinstance(op, ast.In)
        else:
            mask = _holds(COMPARED[type(op)], a, self._number(right))
        name = f"_compared_{len(self.columns)}_"
        self.columns[name] = np.broadcast_to(mask, self.n).copy()
        return ast.Name(name, ast.Load())

    def _is_number(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return self.columns[node.id].dtype.kind in "iuf"
        if isinstance(node, ast.Constant):
            return type(node.value) in (int, float)
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.USub | ast.UAdd) and self._is_number(node.operand)
        return (
            isinstance(node, ast.BinOp)
            and type(node.op) in ARITHMETIC
            and self._is_number(node.left)
            and self._is_number(node.right)
        )

    def _number(self, node: Any) -> _Number:
        """The value of an arithmetic expression, with its error to first order."""
        if isinstance(node, ast.Name | ast.Constant):
            value = np.asarray(self.columns[node.id] if isinstance(node, ast.Name) else node.value)
            single = value.dtype.kind == "f" and value.dtype.itemsize < 8
            return _Number(value, np.abs(value) * (SINGLE_ROUNDING if single else ROUNDING))
        if isinstance(node, ast.UnaryOp):
            value, error = self._number(node.operand)
            return _Number(-value if isinstance(node.op, ast.USub) else value, error)
        (a, error_a), (b, error_b) = self._number(node.left), self._number(node.right)
        with np.errstate(all="ignore"):
            value = ARITHMETIC[type(node.op)](a, b)
            if isinstance(node.op, ast.Add | ast.Sub):
                return _Number(value, error_a + error_b)
            if isinstance(node.op, ast.Mult):
                return _Number(value, np.abs(a) * error_b + np.abs(b) * error_a)
            if isinstance(node.op, ast.Div):
                return _Number(value, (error_a + np.abs(value) * error_b) / np.abs(b))
            return _Number(value, np.abs(value) * ROUNDING)


class _Number(NamedTuple):
    """What an expression comes to, and what rounding may have changed it by."""

    value: np.ndarray
    error: np.ndarray


def _holds(compare: Callable[[Any, Any], Any], left: _Number, right: _Number) -> np.ndarray:
    """Whether a comparison holds, with numbers taken as equal that differ by rounding."""
    a, b = left.value, right.value
    exactly = compare(a, b)
    if a.dtype.kind != "f" and b.dtype.kind != "f":
        return exactly
    error = left.error + right.error
    with np.errstate(invalid="ignore"):
        near = np.isfinite(error) & (np.abs(a - b) <= error)
    return np.where(near, compare(0, 0), exactly)
