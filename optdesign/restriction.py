"""Which settings are possible: a condition on the factors.

A condition is a boolean array, a function of the settings, or an expression such as
``temp + 2 * press <= 90 and cat in ["a", "b"]``. Expressions are evaluated by ``pandas.DataFrame.eval``
(names that are not Python's in backticks), which by itself would follow attributes and call functions; so
only names of factors, numbers, text, lists, arithmetic, comparisons and and, or, not are let through to it.
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np

from optdesign.settings import Settings, listed, lookup

ALLOWED = (
    ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Invert, ast.USub, ast.UAdd,
    ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Mod, ast.Pow, ast.FloorDiv, ast.BitAnd, ast.BitOr,
    ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn,
    ast.Name, ast.Load, ast.Constant, ast.List, ast.Tuple,
)  # fmt: skip
"""What an expression may be made of."""

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
        tree = ast.parse(QUOTED.sub(lambda _: next(names), where).strip(), mode="eval")
    except (SyntaxError, ValueError) as error:
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
    used = {stands_for.get(node.id, node.id) for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if not used:
        raise ValueError(
            f"where must name a factor; {where!r} names none. The factors are {listed(settings)}."
        )
    frame = pandas().DataFrame({name: settings[name] for name in used})
    try:
        return np.asarray(
            frame.eval(where.strip(), engine="python", parser="pandas", local_dict={}, global_dict={})
        )
    except Exception as error:
        raise ValueError(f"where must be a condition on the settings; {where!r} fails ({error}).") from None
