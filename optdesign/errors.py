"""The error that every part of the package raises for arguments that break a rule.

It has its parts as attributes, so that a caller that uses other words for an argument or for a row, as the
command line does, changes these parts instead of the sentence.

>>> error = InputError("budgets", "must be positive", "budgets[3] = 0", "Drop the group or give it a budget.")
>>> print(error)
budgets must be positive; budgets[3] = 0. Drop the group or give it a budget.
>>> print(error.replace(argument="--budget", value="group 'A' has 0"))
--budget must be positive; group 'A' has 0. Drop the group or give it a budget.
"""

from __future__ import annotations

from typing import Any


class InputError(ValueError):
    """An argument breaks a rule. The message is one sentence made of the parts, and the remedy.

    Parameters
    ----------
    argument : str
        The argument, as the caller spells it.
    rule : str
        The rule that it breaks: "must be positive".
    value : str
        The value that breaks it, in words: "got -1", or "budgets[3] = 0".
    remedy : str
        Sentences about how to correct it.
    row : int, optional
        The row of the table at which it is broken, from 0. The message ends the value with "in row 3".
    place : str, optional
        The words for that row, if not "row 3": "line 5 of runs.csv".
    """

    def __init__(
        self,
        argument: str,
        rule: str,
        value: str = "",
        remedy: str = "",
        row: int | None = None,
        place: str | None = None,
    ) -> None:
        super().__init__(argument, rule, value, remedy, row, place)  # what pickle calls the class with
        self.argument, self.rule, self.value, self.remedy = argument, rule, value, remedy
        self.row, self.place = row, place

    def replace(self, **parts: Any) -> InputError:
        """Return the same error with other parts."""
        names = ("argument", "rule", "value", "remedy", "row", "place")
        return InputError(**({name: getattr(self, name) for name in names} | parts))

    def __str__(self) -> str:
        sentence = f"{self.argument} {self.rule}"
        if self.value:
            sentence += f"; {self.value}"
        if self.row is not None:
            sentence += f" in {self.place or f'row {self.row}'}"
        return f"{sentence}. {self.remedy}".rstrip()
