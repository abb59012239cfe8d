"""Options that several commands of ``optdesign`` have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Group = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column of group labels [default: 'group', if there is one]."),
]
Block = Annotated[
    str | None,
    typer.Option(metavar="COL", help="Column of block labels [default: 'block', if there is one]."),
]
Features = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="Feature columns [default: all other numeric columns].")
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
