"""Show a table of docs/measured as text, or how to measure it if it is not stored yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

MEASURED = Path(__file__).parents[1] / "measured"


class StoredTable(Directive):
    """Show the stored table of a name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table, or a paragraph with the command that stores it."""
        name = self.arguments[0]
        path = MEASURED / f"{name}.txt"
        self.state.document.settings.env.note_dependency(str(path))
        if path.exists():
            text = path.read_text(encoding="utf-8")
            return [nodes.literal_block(text, text, language="text")]
        command = nodes.literal("", f"make measured/{name}")
        return [
            nodes.paragraph("", "", nodes.Text("The table is not stored yet; it is printed by "), command)
        ]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("stored-table", StoredTable)
    return {"parallel_read_safe": True}
