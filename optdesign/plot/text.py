"""Labels in any script: in a font that has their characters, or else as the codes of those characters.

A label is one line, is shortened in its middle, between words if possible, and stands for itself: a dollar
sign begins no formula.
"""

from __future__ import annotations

import re
import textwrap
import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

WORD = re.compile(r"-?\w+(?:[.-]\w+)*")
"""A word, or a number with its sign and its decimals."""

LAST_RESORT = "Last Resort"
"""A family whose glyphs are boxes for missing characters."""

UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn")
"""Characters without a shape of their own: control, format, surrogate, private, unassigned."""


def readable(label: object, most: int = 24) -> str:
    r"""Return a label as a picture can show it. Characters that no installed font has become their codes.

    >>> readable("a  label\nin two lines"), readable("costs $5, not $6"), readable("x" * 30 + "1", most=8)
    ('a label in two lines', 'costs \\$5, not \\$6', 'xxxx…xx1')
    >>> readable("product film, row 12: temperature 1", most=28)
    'product film,…temperature 1'
    >>> readable("catalyst[S.palladium on carbon]"), readable("concentration:speed of the belt", 19)
    ('catalyst[…on carbon]', 'concentration…belt')
    """
    text = " ".join(str(label).split())
    missing = sorted({c for c in text if c.isprintable() and _family(c) is None})
    if missing:
        warnings.warn(
            f"no installed font has {' '.join(missing[:5])}: the picture shows such characters as codes, "
            f"such as {_code(missing[0])}. Install a font that has them, such as one of the Noto family.",
            stacklevel=2,
        )
    shown = "".join(_code(c) if c in missing or unicodedata.category(c) in UNSEEN else c for c in text)
    if len(shown) > most:
        end, start = _cut(shown, most)
        shown = f"{shown[:end].rstrip()}…{shown[start:].lstrip()}"
    return shown.replace("$", r"\$")


def _cut(text: str, most: int) -> tuple[int, int]:
    """Return the ends of the part to leave out: between words if both sides keep one, as long as possible."""
    edges = [at for word in WORD.finditer(text) for at in word.span() if 0 < at < len(text)]
    pairs = [(a, b) for a in edges for b in edges if a < b and a + len(text) - b < most]
    kept = [(a, b) for a, b in pairs if re.search(r"\w", text[:a]) and re.search(r"\w", text[b:])]
    if not kept:
        return most // 2, len(text) - (most - 1) // 2
    return max(kept, key=lambda pair: (pair[0] - pair[1], -abs(pair[0] + pair[1] - len(text))))


def all_readable(labels: Sequence[object], most: int) -> list[str]:
    """Return labels of one axis; words that all share are left out if shortening makes two labels equal.

    >>> all_readable(["hospital 7 in the north", "hospital 8 in the north"], 12)
    ['…7…', '…8…']
    """
    words = [str(label).split() for label in labels]
    shown = [readable(label, most) for label in labels]
    if len(set(shown)) == len(set(map(tuple, words))):
        return shown
    head = _shared([line[:-1] for line in words])
    tail = _shared([line[:head:-1] for line in words])
    ends = "…" if head else "", "…" if tail else ""
    return [readable(" ".join(line[head : len(line) - tail]).join(ends), most) for line in words]


def all_distinct(labels: Sequence[object], most: int) -> list[str]:
    """Return labels that differ from each other: without shared words, or else with their number.

    >>> all_distinct(["Intercept", "speed of belt 1 in the hall", "speed of belt 2 in the hall"], 12)
    ['Intercept', '…1…', '…2…']
    >>> all_distinct(["a" * 20 + "b" * 20, "a" * 21 + "b" * 20], 9)
    ['1: aa…bb', '2: aa…bb']
    """
    shown = [readable(label, most) for label in labels]
    for same in {text for text in shown if shown.count(text) > 1}:
        at = [k for k, text in enumerate(shown) if text == same]
        for k, text in zip(at, all_readable([labels[k] for k in at], most), strict=True):
            shown[k] = text
    twice = {text for text in shown if shown.count(text) > 1}
    return [
        f"{k + 1}: {readable(labels[k], most - 4)}" if text in twice else text for k, text in enumerate(shown)
    ]


def _shared(lines: list[list[str]]) -> int:
    """Return the number of words that all lines begin with."""
    differ = (len(set(words)) > 1 for words in zip(*lines, strict=False))
    return next((n for n, differs in enumerate(differ) if differs), min(map(len, lines)))


def dress(figure: Any) -> None:
    """Give every text of a figure the fonts that its characters need beyond its own."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        extra = {family for c in text.get_text() if (family := _family(c))}
        if extra:
            text.set_fontfamily([*text.get_fontfamily(), *sorted(extra)])


def letters(axes: Any, *, upright: bool = False) -> int:
    """Return how many letters fit along the width or height of axes, with room for labels beside them."""
    per_inch, box = 9, axes.get_window_extent()
    return int(per_inch * (box.height if upright else box.width) / axes.figure.dpi)


def wrapped(text: str, room: int) -> str:
    """Return a text in lines of so many letters, but no fewer than 16."""
    return "\n".join(textwrap.fill(line, max(16, room)) for line in text.split("\n"))


def wrap_title(axes: Any) -> None:
    """Break a title into lines that fit above its axes."""
    axes.set_title(wrapped(axes.get_title(loc="left"), letters(axes)))


def _code(character: str) -> str:
    return character.encode("ascii", "backslashreplace").decode()


def _family(character: str) -> str | None:
    """Return the family of a font that has a character; empty if the default has it, None if none has."""
    from matplotlib.font_manager import FontProperties, findfont

    return "" if character.isascii() else _found(character, findfont(FontProperties()))


@cache
def _found(character: str, default: str) -> str | None:
    from matplotlib import font_manager

    if _has(default, character):
        return ""
    for entry in font_manager.fontManager.ttflist:
        plain = entry.style == "normal" and entry.weight in (400, "normal", "regular")
        if plain and not entry.name.startswith(LAST_RESORT) and _has(entry.fname, character):
            return entry.name
    return None


def _has(path: str, character: str) -> bool:
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
    except (OSError, RuntimeError):
        return False  # bitmaps, such as fonts of coloured emoji, cannot be drawn
    return bool(font.scalable) and font.get_char_index(ord(character)) != 0
