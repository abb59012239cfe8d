"""Formulas and conditions as users of R write them, in the notation that is evaluated here.

Formulas: ``^`` is a power within a function, as in ``I(x^2)``, and ``quad(a, b)`` stands for
``(a + b)**2 + I(a**2) + I(b**2)``. Outside functions ``^`` keeps its meaning, interactions up to an order.
Conditions: ``^`` is a power, ``!`` is ``not``, ``&&`` is ``and``, and ``||`` is ``or``.
"""

from __future__ import annotations

import re

QUOTED = r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`[^`]*`)"""
TEXT = re.compile(QUOTED)
"""Quoted text and names in backticks, which stay as they are."""

QUAD = re.compile(QUOTED + r"|\bquad\(((?:`[^`]*`|[^()`])*)\)")
"""Text, which stays, or the shorthand for a full quadratic in some factors."""

NAMES = re.compile(r"(?:`[^`]*`|[^,`])+")
"""Names between commas; names in backticks may contain commas."""

SIGNS = {"&&": " and ", "||": " or ", "^": "**"}

HINTS = (
    (r"\bas\.factor\(|\bfactor\(", "factor() is not known; a category is C(x)"),
    (
        r"\bC\([^()]*,\s*(sum|treatment|helmert|poly|diff)\s*\)",
        "contrasts are named contr.{0}: C(x, contr.{0})",
    ),
    (r"\boffset\(", "an offset has no parameter, so it does not change the design: leave it out"),
)
"""Spellings of R that are not evaluated, and the spelling that is."""


def formula(text: str) -> str:
    """Return a formula in the notation of formulaic.

    >>> formula("~ (a + b)^2 + I(a^2) + quad(u, v)")
    '~ (a + b)^2 + I(a**2) + ((u + v)**2 + I(u**2) + I(v**2))'
    >>> formula("~ quad(`u, (K)`, v)")
    '~ ((`u, (K)` + v)**2 + I(`u, (K)`**2) + I(v**2))'
    """

    def quadratic(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        names = [name.strip() for name in NAMES.findall(match[2])]
        return f"(({' + '.join(names)})**2 + {' + '.join(f'I({name}**2)' for name in names)})"

    parts = TEXT.split(QUAD.sub(quadratic, text))
    calls: list[bool] = []  # one for every open parenthesis: whether it is that of a function
    out = []
    for k, part in enumerate(parts):
        if k % 2:
            out.append(part)
            continue
        for at, sign in enumerate(part):
            if sign == "(":
                calls.append(bool(re.search(r"[\w.]\s*$", part[:at])))
            elif sign == ")" and calls:
                calls.pop()
            out.append("**" if sign == "^" and any(calls) else sign)
    return "".join(out)


def hint(text: str) -> str:
    """Return the spelling that works for a formula of R that does not, or an empty string.

    >>> hint("~ C(cat, sum)")
    'contrasts are named contr.sum: C(x, contr.sum)'
    """
    for pattern, said in HINTS:
        found = re.search(pattern, text)
        if found:
            return said.format(*found.groups())
    return ""


def condition(text: str) -> str:
    """Return a condition in the notation of Python.

    >>> condition("!(x > 1) && y^2 < 4 || c != 'a^b'")
    " not (x > 1)  and  y**2 < 4  or  c != 'a^b'"
    """
    parts = TEXT.split(text)
    for k in range(0, len(parts), 2):
        for sign, word in SIGNS.items():
            parts[k] = parts[k].replace(sign, word)
        parts[k] = re.sub(r"!(?!=)", " not ", parts[k])
    return "".join(parts)
