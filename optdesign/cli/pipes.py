"""Command lines that report failures of files and pipes in one line.

A command ends quietly when the program that reads its output stops reading, as with ``| head``. Any other
error of the operating system becomes one message on standard error.

Public for packages that build on this one: :func:`command_line`.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from optdesign import __version__

__all__ = ["command_line"]


class ExitCode(IntEnum):
    """Exit codes of commands."""

    DONE = 0
    NOT_CONVERGED = 1
    """The design is not certified or verified, or the search was interrupted. The results are written."""
    BAD_INPUT = 2
    """The input cannot be used or read, or the output cannot be written."""
    CLOSED_PIPE = 141
    """The reader of the output has closed the pipe: 128 + SIGPIPE, as shells report it."""


def command_line(name: str, summary: str) -> typer.Typer:
    """Return a Typer application without commands, with the option ``--version``.

    Parameters
    ----------
    name : str
        Name of the command.
    summary : str
        Text of ``--help``.

    Returns
    -------
    typer.Typer
        Application to which commands are added.

    See Also
    --------
    optdesign.runtime.progress.Counter : Display progress.

    Examples
    --------
    >>> app = command_line("mine", "Design my experiment.")
    >>> @app.command()
    ... def run() -> None:
    ...     print("done")
    """
    plain: dict[str, Any] = {
        "add_completion": False,
        "pretty_exceptions_enable": False,
        "rich_markup_mode": None,
    }
    app = typer.Typer(name=name, cls=PipedCommands, help=summary, no_args_is_help=True, **plain)

    def show_version(wanted: bool) -> None:
        if wanted:
            typer.echo(f"{name} {__version__}")
            raise typer.Exit

    @app.callback()
    def options(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        pass

    return app


class PipedCommands(TyperGroup):
    """A group of commands that ends with code 141 if its output pipe is closed, and 2 after an OSError."""

    def invoke(self, ctx: Any) -> Any:
        """Invoke the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _discard_unwritten()
            raise typer.Exit(ExitCode.CLOSED_PIPE) from None
        except OSError as error:
            where = f": {error.filename}. Check the path" if error.filename else ", in writing the output"
            with suppress(OSError):
                typer.echo(f"{ctx.info_name}: {error.strerror or error}{where}.", err=True)
            _discard_unwritten()
            raise typer.Exit(ExitCode.BAD_INPUT) from None


def _discard_unwritten() -> None:
    """Redirect streams that cannot be written, because the interpreter flushes them at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
