"""Conditions on the factors: which settings are possible.

A condition is a boolean array, a function of the settings, or an expression such as
``temp + 2 * press <= 90 and cat in ["a", "b"]``. An expression consists of names of factors (in backticks if
they are not Python names), numbers, text, ``+ - * / // % **``, comparisons, ``in`` with a list, and
``and``, ``or``, ``not`` (or ``& | ~``), and the functions ``abs`` and ``sqrt``. R's ``^``, ``!``, ``&&`` and
``||`` are accepted, too. It is evaluated here, node by node: no attribute is read and no other function is
called.

- Whole numbers are exact, whatever the type and size of the column. Booleans count as 0 and 1 in arithmetic.
- Comparisons of other numbers allow for round-off: 0.1 + 0.2 is at most 0.3, and equals it. See
  :mod:`optdesign.numbers.quantities`.
- Text compares with text. Its order is alphabetical. Text that holds dates or times, as columns of Python's
  dates do, compares with text of that format: a condition with ``"2024-1-2"`` is refused.
- Dates compare with dates, and with text such as ``"2024-05-31"``. Times with a time zone are local times.
- A comparison with a missing entry is false, except ``!=`` and ``not in``.
"""

from __future__ import annotations

import ast
import io
import operator
import re
import tokenize
import unicodedata
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from optdesign.errors import InputError
from optdesign.factors import notation
from optdesign.numbers import quantities
from optdesign.numbers.quantities import Quantity, compare, quantity
from optdesign.tables.columns import Settings, listed, lookup
from optdesign.tables.values import refuse_mask

ARITHMETIC: dict[type, Callable[[Quantity, Quantity], Quantity]] = {
    ast.Add: quantities.add, ast.Sub: quantities.subtract, ast.Mult: quantities.multiply,
    ast.Div: quantities.divide, ast.FloorDiv: quantities.floor_divide, ast.Mod: quantities.modulo,
    ast.Pow: quantities.power,
}  # fmt: skip

COMPARED: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip

FUNCTIONS: dict[str, Callable[[Quantity], Quantity]] = {
    "abs": quantities.absolute, "sqrt": quantities.square_root,
}  # fmt: skip
"""Functions of one argument that an expression may call."""

EQUALITIES = (operator.eq, operator.ne)

ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Invert, ast.USub, ast.UAdd,
    ast.BinOp, *ARITHMETIC, ast.Compare, *COMPARED, ast.In, ast.NotIn,
    ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple,
)  # fmt: skip
"""Nodes that an expression may have."""

QUOTED = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|`([^`]*)`""")
"""Text, which stays as it is, or a name in backticks."""


DATE = re.compile(r"\d{4}([-/.])\d\d\1\d\d([T ]\d\d:[\d:.]+)?|\d\d:\d\d[\d:.]*")
"""A date, a date with a time, or a time, in text whose order is that of time."""

OTHER_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([T ].*)?|\d{1,2}:\d\d[\d:.]*")
"""A date or a time in text whose order may be another one, as that of "1/2/2024" is."""

LIKE_A_DATE = re.compile(r"\d[\d\s:./T-]*")
"""Text that may be meant as a date."""

DIGIT = re.compile(r"\d")


def kept(settings: Settings, where: Any) -> np.ndarray:
    """Return the rows of the settings that meet a condition.

    >>> kept(Settings({"x": [1, 2, 3]}), lambda s: s["x"] > 1)
    array([1, 2])
    >>> kept(Settings({"x": [0, 1], "y": [1, 1]}), "(x > 0) + (y > 0) <= 1")
    array([0])
    """
    rows, what = _met(settings, where)
    if not len(rows):
        value = f"{what} leaves none of {settings.n_rows}"
        raise InputError("where", "must leave some settings", value, "Relax the condition.")
    return rows


def meeting(settings: Settings, where: str) -> np.ndarray:
    """Return the rows of the settings that meet a condition, if any.

    >>> meeting(Settings({"x": [1, 2]}), "x > 2").tolist()
    []
    """
    return _met(settings, where)[0]


def _met(settings: Settings, where: Any) -> tuple[np.ndarray, str]:
    """Return the rows that meet a condition, and words for the condition."""
    n = settings.n_rows
    if isinstance(where, str):
        mask, what = _evaluated(settings, where), repr(where)
    elif callable(where):
        given, what = where(settings), "the function"
        refuse_mask(given, "where, as a function of the settings,")
        mask = np.asarray(given)
    else:
        refuse_mask(where, "where")
        mask, what = np.asarray(where), "the array"
    if mask.dtype == object and all(isinstance(v, bool | np.bool_) for v in mask.reshape(-1)):
        mask = mask.astype(bool)
    if mask.shape != (n,) or mask.dtype != bool:
        rule = f"must give True or False for each of {n} settings"
        value = f"{what} gives {mask.dtype} of shape {mask.shape}"
        raise InputError("where", rule, value, "Compare columns, as in 'temp <= 60'.")
    return np.flatnonzero(mask), what


def _evaluated(settings: Settings, where: str) -> np.ndarray:
    """Return the values of an expression, one for every row of the settings."""
    names = _normalised(settings)

    def stand_in(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        name = f"_quoted_{len(names)}_"
        names[name] = match[2]
        return f" {name} "

    try:
        tree = ast.parse(_with_words(QUOTED.sub(stand_in, notation.condition(where)).strip()), mode="eval")
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError) as error:
        rule = "must be an expression such as 'temp <= 60 and cat == \"a\"'"
        held = f"{where!r} is none ({getattr(error, 'msg', error)})"
        remedy = 'A list is \'cat in ["a", "b"]\'.' if "%in%" in where else ""
        raise InputError("where", rule, held, remedy) from None
    nodes = list(ast.walk(tree))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        if not isinstance(node, ALLOWED) and not _is_call(node, settings):
            rule = "must be made of factors, numbers, text and comparisons"
            held = f"{where!r} has {type(node).__name__.lower()}, which is not evaluated"
            remedy = f"Functions are {' and '.join(FUNCTIONS)}; otherwise pass a function of the settings."
            raise InputError("where", rule, held, remedy)
        if isinstance(node, ast.Name) and id(node) not in functions:
            lookup(settings, names.get(node.id, node.id), "where")
    if not any(isinstance(node, ast.Name) for node in nodes):
        remedy = f"The factors are {listed(settings)}."
        raise InputError("where", "must name a factor", f"{where!r} names none", remedy)
    try:
        with np.errstate(all="ignore"):
            value = _Evaluator(settings, names).value(tree.body)
    except (ValueError, RecursionError) as error:
        rule = "must be a condition on the settings"
        raise InputError("where", rule, f"{where!r} fails: {error}") from None
    array = value if isinstance(value, np.ndarray) else value[0]
    return np.broadcast_to(array, settings.n_rows)


def _is_call(node: ast.AST, settings: Settings) -> bool:
    """Return True if a node calls a known function with one argument, and no factor has its name."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id in settings:
        return False
    return node.func.id in FUNCTIONS and len(node.args) == 1 and not node.keywords


def _normalised(settings: Settings) -> dict[str, str]:
    """Return the columns whose names Python spells otherwise, such as the micro sign, by that spelling."""
    spelled: dict[str, list[str]] = {}
    for name in settings:
        spelled.setdefault(unicodedata.normalize("NFKC", name), []).append(name)
    return {other: name for other, (name, *more) in spelled.items() if not more and other != name}


def _with_words(where: str) -> str:
    """Return an expression with ``and``, ``or`` for the signs ``&``, ``|``, which then bind as loosely."""
    words = {"&": "and", "|": "or"}
    found = tokenize.generate_tokens(io.StringIO(where).readline)
    is_sign = [(t.type == tokenize.OP and t.string in words, t) for t in found]
    tokens = [(tokenize.NAME, words[t.string]) if sign else (t.type, t.string) for sign, t in is_sign]
    return tokenize.untokenize(tokens).strip()


class _Text(NamedTuple):
    """Text. It can be ordered unless its levels have an order that is not alphabetical."""

    value: np.ndarray
    missing: np.ndarray
    is_alphabetical: bool = True


class _Times(NamedTuple):
    """Dates or durations."""

    value: np.ndarray


_Value = Quantity | _Text | _Times | np.ndarray
"""The value of a node; conditions are boolean arrays."""


class _Evaluator:
    """Evaluates the nodes of an expression. ``names`` maps stand-ins for quoted names to the names."""

    def __init__(self, settings: Settings, names: dict[str, str]) -> None:
        self.settings, self.names = settings, names

    def value(self, node: ast.expr) -> _Value:
        """Return the value of a node."""
        if isinstance(node, ast.Name):
            return _column(self.settings, self.names.get(node.id, node.id))
        if isinstance(node, ast.Constant):
            return _constant(node.value)
        if isinstance(node, ast.BoolOp):
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return np.asarray(join.reduce(np.broadcast_arrays(*map(self.condition, node.values))))
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Not | ast.Invert):
                return np.asarray(np.logical_not(self.condition(node.operand)))
            operand = self.number(node.operand)
            return quantities.negate(operand) if isinstance(node.op, ast.USub) else operand
        if isinstance(node, ast.BinOp):
            return ARITHMETIC[type(node.op)](self.number(node.left), self.number(node.right))
        if isinstance(node, ast.Compare):
            return self.compared(node)
        if isinstance(node, ast.Call):
            return FUNCTIONS[node.func.id](self.number(node.args[0]))  # type: ignore[attr-defined]
        raise ValueError(f"a list must follow in or not in; {self.said(node)} does not")

    def condition(self, node: ast.expr) -> np.ndarray:
        """Return a node as a boolean array."""
        value = self.value(node)
        if isinstance(value, np.ndarray):
            return value
        raise ValueError(
            f"and, or, not must join conditions such as x > 0; {self.said(node)} is none, or is missing in "
            "some rows"
        )

    def number(self, node: ast.expr) -> Quantity:
        """Return a node as numbers; True is 1 and False is 0."""
        value = self.value(node)
        if isinstance(value, np.ndarray):
            return quantity(value)
        if isinstance(value, Quantity):
            return value
        raise ValueError(f"arithmetic must have numbers; {self.said(node)} holds {_kind(value)}")

    def compared(self, node: ast.Compare) -> np.ndarray:
        """Return the truth of one or more comparisons, a < b < c."""
        found = []
        left, a = node.left, self.value(node.left)
        for op, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                if not isinstance(right, ast.List | ast.Tuple):
                    raise ValueError(
                        f"a list must follow in or not in, as in x in [1, 2]; {self.said(right)} is none"
                    )
                if op is not node.ops[-1]:
                    raise ValueError(f"no comparison must follow a list; {self.said(node)} has one. Use and")
                equal = [self.pair(operator.eq, left, a, entry, self.value(entry)) for entry in right.elts]
                among = np.logical_or.reduce(np.broadcast_arrays(False, *equal))
                found.append(among == isinstance(op, ast.In))
                continue
            b = self.value(right)
            found.append(self.pair(COMPARED[type(op)], left, a, right, b))
            left, a = right, b
        return np.asarray(np.logical_and.reduce(np.broadcast_arrays(*found)))

    def pair(
        self, holds: Callable[[Any, Any], Any], left: ast.expr, a: _Value, right: ast.expr, b: _Value
    ) -> np.ndarray:
        """Return the truth of a comparison of a, the value of ``left``, with b, the value of ``right``."""
        for side in (a, b):
            if isinstance(side, _Text) and side.missing.ndim and side.missing.all():  # its kind is unknown
                return np.full(len(side.missing), holds is operator.ne)
        if isinstance(a, _Times) and isinstance(b, _Text):
            b = _date(a, b, self.said(right))
        elif isinstance(b, _Times) and isinstance(a, _Text):
            a = _date(b, a, self.said(left))
        if isinstance(a, _Text) and isinstance(b, _Text):
            if holds not in EQUALITIES and not (a.is_alphabetical and b.is_alphabetical):
                raise ValueError(
                    f"{self.said(left)} and {self.said(right)} must not be compared by order, because the "
                    "levels are not in alphabetical order. List the levels: x in ['low', 'mid']"
                )
            self.check_dates(left, a, b, holds)
            self.check_dates(right, b, a, holds)
            truth = np.asarray(holds(a.value, b.value), dtype=bool)
            return np.where(a.missing | b.missing, holds is operator.ne, truth)
        if isinstance(a, _Times) and isinstance(b, _Times) and a.value.dtype.kind == b.value.dtype.kind:
            missing = np.isnat(a.value) | np.isnat(b.value)
            return np.where(missing, holds is operator.ne, compare(holds, _ticks(a), _ticks(b)))
        if isinstance(a, _Text | _Times) or isinstance(b, _Text | _Times):
            raise ValueError(
                f"values of one kind must be compared; {self.said(left)} holds {_kind(a)} and "
                f"{self.said(right)} {_kind(b)}"
            )
        a, b = (quantity(side) if isinstance(side, np.ndarray) else side for side in (a, b))
        return compare(holds, a, b)

    def check_dates(self, node: ast.expr, constant: _Text, column: _Text, holds: Callable[..., Any]) -> None:
        """Raise ValueError if text of a constant has not the format of the dates in a column of text.

        Dates of one format have the order of the alphabet. Names may be compared with dates by equality.
        """
        if constant.value.ndim or not column.value.ndim:
            return
        text, dates = constant.value.item(), set(column.value[~column.missing].tolist())
        if holds not in EQUALITIES and all(map(OTHER_DATE.fullmatch, dates)):
            for date in sorted(date for date in dates if not DATE.fullmatch(date))[:1]:
                raise ValueError(
                    f"dates and times must be written as '2024-05-31' and '08:30' to be compared by order; "
                    f"the column that is compared with {self.said(node)} holds {date!r}"
                )
        if not dates or not all(map(DATE.fullmatch, dates)):
            return
        formats = {DIGIT.sub("0", date) for date in dates}
        if DIGIT.sub("0", text) in formats or (holds in EQUALITIES and not LIKE_A_DATE.fullmatch(text)):
            return
        raise ValueError(
            f"dates and times must be compared with text in their format, such as {min(dates)!r}; "
            f"got {self.said(node)}"
        )

    def said(self, node: ast.expr) -> str:
        """Return the text of a node, with names as they were written."""
        text = ast.unparse(node)
        for stand_in, name in self.names.items():
            text = text.replace(stand_in, f"`{name}`")
        return text


def _column(settings: Settings, name: str) -> _Value:
    """Return a column of the settings as a value. Booleans of which some are missing are numbers with NaN."""
    array = settings[name]
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "mM":
        return _Times(array)
    if array.dtype != object:
        return quantity(array)
    if any(isinstance(v, bool) for v in array):
        return quantity(np.array([np.nan if v is None else float(v) for v in array]))
    levels = settings.levels.get(name)
    missing = np.array([v is None for v in array], dtype=bool)
    return _Text(
        np.where(missing, "", array), missing, levels is None or list(levels) == sorted(levels, key=str)
    )


def _constant(value: Any) -> _Value:
    """Return a constant of an expression as a value."""
    if isinstance(value, bool):
        return np.asarray(value)
    if isinstance(value, int | float):
        return quantity(value)
    if isinstance(value, str):
        return _Text(np.asarray(value, dtype=object), np.asarray(False))
    raise ValueError(f"constants must be numbers, text, True or False; got {value!r}")


def _kind(value: _Value) -> str:
    if isinstance(value, _Text):
        return "text"
    if isinstance(value, _Times):
        return "dates" if value.value.dtype.kind == "M" else "durations"
    return "numbers" if isinstance(value, Quantity) else "True or False"


def _date(beside: _Times, text: _Text, said: str) -> _Times:
    """Return a text constant that is compared with dates as a date."""
    if beside.value.dtype.kind != "M" or text.value.ndim:
        raise ValueError(f"values of one kind must be compared; {said} is text and the other side is not")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a time zone, which would be dropped
            date = np.datetime64(text.value.item())
    except (ValueError, Warning):
        date = np.datetime64("NaT")
    if np.isnat(date):
        raise ValueError(f"dates must be compared with text such as '2024-05-31'; got {said}")
    return _Times(np.asarray(date))


def _ticks(times: _Times) -> Quantity:
    """Return dates or durations as whole numbers of attoseconds, whatever their unit."""
    array = times.value
    if np.datetime_data(array.dtype)[0] in "YMW":
        array = array.astype(f"{array.dtype.kind}8[D]")
    unit, step = np.datetime_data(array.dtype)
    # Units of time in attoseconds.
    ticks = {"D": 86400 * 10**18, "h": 3600 * 10**18, "m": 60 * 10**18, "s": 10**18, "ms": 10**15,
             "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}  # fmt: skip
    return quantities.multiply(quantity(array.astype(np.int64)), quantity(ticks[unit] * step))
