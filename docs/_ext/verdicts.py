"""Show the verdicts of docs/measured/claims.csv: a table per section, and the totals."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst.directives.tables import CSVTable

CLAIMS = Path(__file__).parents[1] / "measured" / "claims.csv"
HOLDS = ("yes", "no", "not decided")


def read() -> list[dict[str, str]]:
    """Return the statements of the paper with their verdicts."""
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def place(row: dict[str, str]) -> str:
    """Return the section, figure or table of the paper that a statement is from."""
    return row["source"].partition("; ")[0]


class Verdicts(CSVTable):
    """Show the statements of one place of the paper, or the number of verdicts of all places."""

    required_arguments = 0
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        chosen = self.arguments.pop() if self.arguments else ""
        self.content = self.rows_of(chosen) if chosen else self.totals()
        self.options |= {"header-rows": 1, "widths": [34, 16, 40, 10] if chosen else [55, 15, 15, 15]}
        self.state.document.settings.env.note_dependency(str(CLAIMS))
        return super().run()

    def get_csv_data(self) -> Any:
        """Return the rows as lines of CSV."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(self.content)
        return text.getvalue().splitlines(), str(CLAIMS)

    def rows_of(self, chosen: str) -> list[list[str]]:
        """Return the statements of one place."""
        found = [row for row in read() if place(row) == chosen]
        if not found:
            raise self.error(f"{CLAIMS.name} has no statement of {chosen!r}")
        return [["statement", "instance", "measured", "holds"]] + [
            [row["claim"], row["source"].partition("; ")[2], row["measured"], row["holds"]] for row in found
        ]

    def totals(self) -> list[list[str]]:
        """Return the number of statements of every place by their verdict."""
        rows = read()
        counts = {name: Counter(r["holds"] for r in rows if place(r) == name) for name in map(place, rows)}
        counts["all statements"] = Counter(row["holds"] for row in rows)
        return [["source", *HOLDS]] + [
            [name, *(str(found[verdict]) for verdict in HOLDS)] for name, found in counts.items()
        ]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("verdicts", Verdicts)
    return {"parallel_read_safe": True}
