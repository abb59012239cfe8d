"""Options of strategies and searches.

Options are checked when a strategy is made; hypothesis would report an error only when it draws.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import Phase

from optdesign.errors import InputError

PHASES = [phase for phase in Phase if phase is not Phase.explain]
"""Phases of a search: all but the explanation, which names lines of this package."""


def chosen(name: str, given: str | Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return one or several of the known words; all of them if none is given.

    Parameters
    ----------
    name : str
        Name of the option in the error message.
    given : str or sequence of str or None
        Chosen words.
    known : sequence of str
        Allowed words.

    Returns
    -------
    tuple of str
        Chosen words.

    Raises
    ------
    ValueError
        If a word is not known.

    See Also
    --------
    optdesign.testing.at_least_one : Check sizes.

    Examples
    --------
    >>> chosen("noise", "gaussian", ["gaussian", "bounded"]), chosen("noise", None, ["gaussian", "bounded"])
    (('gaussian',), ('gaussian', 'bounded'))
    """
    words = tuple(known if given is None else (given,) if isinstance(given, str) else given)
    unknown = [word for word in words if word not in known]
    if unknown or not words:
        what = repr(unknown[0]) if unknown else "none"
        raise InputError(name, f"must be of {', '.join(known)}", f"got {what}", "Leave it out for any.")
    return words


def at_least_one(**sizes: int) -> None:
    """Raise ValueError unless all sizes are at least 1.

    Parameters
    ----------
    **sizes : int
        Sizes by the names of their options.

    Raises
    ------
    ValueError
        If a size is below 1.

    See Also
    --------
    optdesign.testing.chosen : Check words.

    Examples
    --------
    >>> at_least_one(max_dim=3)
    """
    for name, size in sizes.items():
        if size < 1:
            raise InputError(name, "must be at least 1", f"got {size}", "One is the smallest there is.")
