"""Files with a format, a version, a checksum and a content in JSON."""

from __future__ import annotations

import hashlib
import json
from os import PathLike
from pathlib import Path
from typing import Any

from optdesign.design.result import DesignResult
from optdesign.design.run_list import Runs
from optdesign.errors import InputError
from optdesign.numbers.checks import check_type
from optdesign.problem.problem import DesignProblem
from optdesign.runtime.files import atomic
from optdesign.saving.content import content_of, restored
from optdesign.tables.files import check_suffix, check_writable

FORMAT = "optdesign"
FILE_VERSION = 2


def save(design: DesignResult | Runs | DesignProblem, path: str | PathLike[str]) -> None:
    """Save a design or whole runs with the problem, or a problem alone, as JSON.

    The file replaces an existing one. An interrupted call leaves no partial file. A design of
    ``result.in_memory()`` is saved with the certificate on the candidates that it has in memory.

    Parameters
    ----------
    design : DesignResult, Runs or DesignProblem
        Object to save.
    path : str or path-like
        File to write.

    See Also
    --------
    optdesign.load : Restore the object to the last bit.

    Examples
    --------
    >>> import tempfile, optdesign as od
    >>> r = od.solve(od.DesignProblem([[1.0, 0.0], [0.0, 2.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     od.save(r, f"{folder}/design.json")
    ...     od.load(f"{folder}/design.json").weights.tolist()
    [0.5, 0.5]
    """
    rule = "design must be a DesignResult, Runs or a DesignProblem"
    check_type(design, DesignResult | Runs | DesignProblem, rule, "Save what solve or exact returns.")
    content = content_of(design)
    path = Path(path)
    check_suffix(path, "path", (".json",))
    check_writable(path, "path", force=True)
    text = json.dumps(content, allow_nan=False, ensure_ascii=False)
    head = {"format": FORMAT, "version": FILE_VERSION, "sha256": checksum(text)}
    with atomic(path) as temporary:
        temporary.write_bytes(encoded(f'{json.dumps(head)[:-1]},\n"content": {text}}}\n'))


def load(path: str | PathLike[str]) -> Any:
    """Return the design, whole runs or problem that :func:`optdesign.save` wrote.

    Rank, log det, efficiency and certificate are computed again and compared with those in the file. An upper
    bound on whole runs, from ``exact(..., prove=True)``, is as it was saved: the proof is not repeated.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Returns
    -------
    DesignResult, Runs or DesignProblem
        The saved object.

    Raises
    ------
    ValueError
        If the file was not written by ``save``, or was changed.

    See Also
    --------
    optdesign.save : Write the file.

    Examples
    --------
    >>> import tempfile, optdesign as od
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     od.save(od.DesignProblem([[1.0], [2.0]]), f"{folder}/problem.json")
    ...     od.load(f"{folder}/problem.json")
    DesignProblem(2 candidates x 1, 1 group, 1 parameter block, rank 1)
    """
    path = Path(path)
    try:
        document = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        rule = "must be a file that save wrote"
        remedy = "It may be cut short: save it again."
        raise InputError(str(path), rule, f"it is no JSON ({error})", remedy) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        remedy = "Tables go to candidates."
        raise InputError(str(path), "must be a file that save wrote", "it has another format", remedy)
    if document.get("version") != FILE_VERSION:
        value = f"it is of {document.get('version')!r}"
        remedy = "Load it with the release of optdesign that saved it."
        raise InputError(str(path), f"must be of version {FILE_VERSION}", value, remedy)
    content: dict[str, Any] = document.get("content", {})
    if document.get("sha256") != checksum(json.dumps(content, ensure_ascii=False)):
        remedy = "Restore it, or save it again."
        raise InputError(str(path), "must be as it was saved", "its checksum differs", remedy)
    try:
        return restored(content, path)
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}".partition("\n")[0]
        remedy = "Save it again."
        raise InputError(str(path), "must have the content of a saved object", what, remedy) from None


def encoded(text: str) -> bytes:
    """Return text in UTF-8. Lone surrogates, which file names may have, are encoded like other characters."""
    return text.encode("utf-8", "surrogatepass")


def checksum(text: str) -> str:
    """Return the checksum of a content."""
    return hashlib.sha256(encoded(text)).hexdigest()
