"""Signs in numbers: decimal commas and points, and ambiguous thousands separators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from optdesign.errors import InputError

DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
"""Numbers such as 1,5, which other separators than commas leave room for."""

DECIMAL_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")

DECIMALS = {".": (DECIMAL_COMMA, ","), ",": (DECIMAL_POINT, ".")}
"""By the sign between thousands, how decimals are written beside it, and their sign."""

THOUSANDS = {
    sign: re.compile(rf"\s*[-+]?([1-9]\d{{0,2}}([{sign}]\d{{3}})+|\d{{1,3}})\s*") for sign in DECIMALS
}
"""Numbers such as 1.000, a thousand where decimals have commas, and 1,000, one where they have points."""


class Marks:
    """Columns of which all numbers may have a sign between thousands, and the numbers that decide it.

    The sign is a decimal one in the whole file if some number has no other reading, such as 0,5 or 1,25.
    """

    def __init__(self, sign: str, names: Sequence[str]) -> None:
        self.sign = sign
        self.grouped = dict.fromkeys(names, "")  # an example of each
        self.numeric = set(names)
        self.other, self.own = "", ""  # a number with the other decimal sign, and one with this one

    def add(self, name: str, fields: Sequence[str]) -> None:
        """Add fields of a column."""
        beside, other = DECIMALS[self.sign]
        plain, _ = DECIMALS[other]
        thousands = THOUSANDS[self.sign]
        if name in self.numeric and not self.other:
            self.other = next((v for v in fields if beside.fullmatch(v.replace(self.sign, ""))), "")
        if name in self.numeric and not self.own:
            self.own = next((v for v in fields if plain.fullmatch(v) and not thousands.fullmatch(v)), "")
        if name in self.grouped and not all(thousands.fullmatch(v) or beside.fullmatch(v) for v in fields):
            del self.grouped[name]
        elif name in self.grouped and not self.grouped[name]:
            self.grouped[name] = next((v for v in fields if self.sign in v), "")

    def check(self, path: Path, text: set[str]) -> None:
        """Raise InputError if thousands separators and decimal signs are ambiguous."""
        words = {".": "point", ",": "comma"}
        own, other = words[self.sign], words[DECIMALS[self.sign][1]]
        for name, example in self.grouped.items():
            if example and name not in text and (self.other or not self.own):
                beside = f"{self.other!r} has a decimal {other}, and " if self.other else ""
                value = f"{beside}column {name!r} holds {example!r}, a thousand or a decimal {own}"
                remedy = "separate the columns by commas and write decimals with a point."
                if self.other:
                    remedy = f"write all decimals with a {other}."
                remedy = f"Leave out the thousands separators, or {remedy}"
                raise InputError(f"numbers of {path}", "must be written in one way", value, remedy)
