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
    """Report an argument that breaks a rule.

    The message is one sentence made of the parts, followed by the remedy.

    Parameters
    ----------
    argument : str
        Name of the argument, as the caller spells it.
    rule : str
        Rule that it breaks: "must be positive".
    value : str, default ""
        Value that breaks the rule, in words: "got -1", or "budgets[3] = 0".
    remedy : str, default ""
        Sentences about how to correct it.
    row : int, optional
        Row of the table that breaks the rule, from 0. The message ends the value with "in row 3".
    place : str, optional
        Words for that row, if not "row 3": "line 5 of runs.csv".

    See Also
    --------
    optdesign.DesignProblem : Check its arguments and raise this error.

    Examples
    --------
    >>> print(InputError("budgets", "must be positive", "budgets[3] = 0", "Drop the group."))
    budgets must be positive; budgets[3] = 0. Drop the group.
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
        super().__init__(
            argument, rule, value, remedy, row, place
        )  # the arguments with which pickle calls the class
        self.argument, self.rule, self.value, self.remedy = argument, rule, value, remedy
        self.row, self.place = row, place

    def replace(self, **parts: Any) -> InputError:
        """Return the same error with other parts.

        Parameters
        ----------
        **parts : str or int
            New values of the parameters of the class.

        Returns
        -------
        InputError
            A new error.
        """
        names = ("argument", "rule", "value", "remedy", "row", "place")
        return InputError(**({name: getattr(self, name) for name in names} | parts))

    def __str__(self) -> str:
        sentence = f"{self.argument} {self.rule}"
        if self.value:
            sentence += f"; {self.value}"
        if self.row is not None:
            sentence += f" in {self.place or f'row {self.row + 1}'}"
        return f"{sentence}. {self.remedy}".rstrip()
