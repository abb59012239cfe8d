"""Options of strategies, checked where they are given: hypothesis would tell only when it draws."""

from __future__ import annotations

from collections.abc import Sequence

from optdesign.errors import InputError


def chosen(name: str, given: str | Sequence[str] | None, known: Sequence[str]) -> tuple[str, ...]:
    """One or several of the known words; all of them if none is given.

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
    """Refuse sizes that leave nothing."""
    for name, size in sizes.items():
        if size < 1:
            raise InputError(name, "must be at least 1", f"got {size}", "One is the smallest there is.")
