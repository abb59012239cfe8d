"""Options that several commands of ``optdesign`` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from optdesign.cli.pipes import ExitCode
from optdesign.cli.roles import Label
from optdesign.errors import InputError
from optdesign.problem.inputs import TWO_MEANINGS

Group = Annotated[
    str | None,
    typer.Option(
        metavar="COL",
        help="Column of group labels [default: 'group', if there is one that the model does not name].",
    ),
]
NoGroup = Annotated[
    bool, typer.Option("--no-group", help="A column called 'group' is no label: there is one group.")
]
Block = Annotated[
    str | None,
    typer.Option(
        "--parameter-block",
        metavar="COL",
        help="Column of parameter blocks: every label has parameters of its own. A blocking factor is a term "
        "of the model instead [default: 'parameter_block', if there is one that the model does not name].",
    ),
]
NoBlock = Annotated[
    bool,
    typer.Option(
        "--no-parameter-block",
        help="A column called 'parameter_block' is no label: there is one parameter block.",
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,C",
        help="Feature columns [default: all other numeric columns that do not only name the rows].",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="FORMULA",
        help="What a run tells, by the factors in the columns: '~ temp * cat + I(temp**2)'. "
        "[default: feature columns as they are, without an intercept].",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NUMBER|A=1,B=2",
        help="Two columns, group label and budget; or one number, the budget of every group; or labels with "
        "numbers [default: 1; of a saved design, what its weights sum to].",
    ),
]
Saved = Annotated[Path, typer.Argument(metavar="DESIGN", help="A saved design, with weights.")]
Passing = Annotated[float, typer.Option("--tol", help="Largest gap / rank of a design that passes.")]
TimeLimit = Annotated[float | None, typer.Option(help="Most seconds.")]
Json = Annotated[bool, typer.Option("--json", help="Print a report in JSON instead of a table.")]


class DesignCommand(TyperCommand):
    """A command that refuses the former options --block and --no-block and explains both meanings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        for name in {arg.partition("=")[0] for arg in args} & {"--block", "--no-block"}:
            typer.echo(
                f"optdesign: {name} must not be given: the word has two meanings. {TWO_MEANINGS} For "
                f"parameter blocks, the option is {name.replace('block', 'parameter-block')}; for a blocking "
                "factor, use --model and --group.",
                err=True,
            )
            raise typer.Exit(ExitCode.BAD_INPUT)
        return super().parse_args(ctx, args)


def chosen_label(name: str, column: str | None, off: bool) -> Label:
    """Return the column of labels that two options choose; False for none."""
    if off and column is not None:
        raise InputError(
            f"--{name} and --no-{name}", "must not both be given", f"got --{name} {column}", "Drop one."
        )
    return False if off else column
