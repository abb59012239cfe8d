"""Options that several commands of ``optdesign`` have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from optdesign.cli import candidate_file
from optdesign.cli.candidate_file import CandidateFile
from optdesign.cli.pipes import ExitCode
from optdesign.cli.roles import Label
from optdesign.errors import InputError
from optdesign.problem.inputs import TWO_MEANINGS

Text = str | None
Saved = Annotated[Path, typer.Argument(metavar="DESIGN", help="A saved design, with weights, or a run list.")]
Candidates = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Candidates of a run list [default: those of its recipe DESIGN.json]."),
]
Where = Annotated[
    Text, typer.Option(metavar="CONDITION", help="Rows that are candidates: 'temp <= 60 or cat == \"a\"'.")
]
Passing = Annotated[float, typer.Option("--tol", help="Largest gap / rank of a design that passes.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Save a picture: .png, .pdf or .svg.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print a report in JSON instead of a table.")]


@dataclass(frozen=True)
class ColumnOptions:
    """Options that state what the columns of a file mean; see :func:`with_column_options`."""

    model: Annotated[
        Text,
        typer.Option(
            metavar="FORMULA",
            help="Formula of the model in the factors of the columns: '~ temp * cat + I(temp**2)'. "
            "[default: feature columns as they are, without an intercept].",
        ),
    ] = None
    group: Annotated[
        Text,
        typer.Option(
            metavar="COL",
            help="Column of group labels [default: 'group', if there is one that the model does not name].",
        ),
    ] = None
    no_group: Annotated[
        bool, typer.Option("--no-group", help="A column called 'group' is no label: there is one group.")
    ] = False
    parameter_block: Annotated[
        Text,
        typer.Option(
            metavar="COL",
            help="Column of parameter blocks: every label has parameters of its own. A blocking factor is a "
            "term of the model instead [default: 'parameter_block', if there is one that the model does not "
            "name].",
        ),
    ] = None
    no_parameter_block: Annotated[
        bool,
        typer.Option(
            "--no-parameter-block",
            help="A column called 'parameter_block' is no label: there is one parameter block.",
        ),
    ] = False
    features: Annotated[
        Text,
        typer.Option(
            metavar="A,B,C",
            help="Feature columns [default: all other numeric columns that do not only name the rows].",
        ),
    ] = None
    budget: Annotated[
        Text,
        typer.Option(
            metavar="FILE|NUMBER|A=1,B=2",
            help="Two columns, group label and budget; or one number, the budget of every group; or labels "
            "with numbers [default: 1; of a saved design, what its weights sum to].",
        ),
    ] = None

    def read(self, path: Path, *, runs: str | None = None, **more: Any) -> CandidateFile:
        """Return the candidates of a file, with budgets if they are given; ``runs`` come before budgets."""
        group, block = self.labels
        source = candidate_file.read(
            path, group=group, block=block, features=self.feature_names, model=self.model, **more
        )
        if runs is not None:
            return source.with_budgets(runs, "--runs")
        return source if self.budget is None else source.with_budgets(self.budget)

    @property
    def labels(self) -> tuple[Label, Label]:
        """The columns of groups and of parameter blocks that the options choose."""
        return self._label("group"), self._label("parameter-block")

    @property
    def feature_names(self) -> list[str] | None:
        """The feature columns that the options choose, or None."""
        names = None if self.features is None else self.features.split(",")
        return names and [name.strip() for name in names if name.strip()]

    def _label(self, name: str) -> Label:
        """Return the column of labels that two options choose; False for none."""
        key = name.replace("-", "_")
        column, off = getattr(self, key), getattr(self, f"no_{key}")
        if off and column is not None:
            value = f"got --{name} {column}"
            raise InputError(f"--{name} and --no-{name}", "must not both be given", value, "Drop one.")
        return False if off else column


def with_column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of :class:`ColumnOptions` in place of its argument ``columns``."""
    own, shared = (dict(inspect.signature(f, eval_str=True).parameters) for f in (command, ColumnOptions))
    del own["columns"]

    def replaced(**values: Any) -> None:
        columns = ColumnOptions(**{name: values.pop(name) for name in shared})
        command(columns=columns, **values)

    parameters = sorted([*shared.values(), *own.values()], key=lambda p: p.default is not p.empty)
    replaced.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    replaced.__doc__ = command.__doc__
    return replaced


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
