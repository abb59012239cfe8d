"""One page with everything: which statements hold, every figure, every table."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from bandits.reproduce.claims import Verdict
from bandits.reproduce.description import Experiment, Table
from bandits.reproduce.running import Results
from bandits.reproduce.summary import table_lines
from optdesign import __version__
from optdesign.tables import atomic

COLUMNS = {
    "model": "model",
    "algorithm": "algorithm",
    "regret_mean": "regret per client",
    "regret_std": "standard deviation",
    "regret_bound": "upper bound in theory",
    "lower_bound": "minimax lower bound",
    "uploaded": "scalars up",
    "downloaded": "scalars down",
    "regret_order": "order of the total regret",
    "communication_order": "order of the communication",
}

STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #1a1a1a; margin: 2rem auto; }
body { max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.85rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem; border-bottom: 1px solid #ccc; }
td.number { text-align: right; white-space: nowrap; }
td.yes { background: #e3f1e6; } td.no { background: #f9dfd8; font-weight: bold; }
img { max-width: 100%; } figure { margin: 2rem 0; } .warning { font-weight: bold; }
"""


def write_report(
    path: Path, experiments: dict[str, Experiment], results: Results, verdicts: list[Verdict]
) -> None:
    """Write the page; pictures are those beside it."""
    failed = sum(not verdict.holds for verdict in verdicts)
    parts = [
        "<h1>Federated linear contextual bandits: the experiments, reproduced</h1>",
        "<p>Every trial of a case is on an instance of its own; policies meet the same ones in the same "
        f"trials. Made with optdesign {escape(__version__)}.</p>",
    ]
    if results.effort.longest is not None:
        words = f"Horizons were cut to {results.effort.longest}: these are not the paper's numbers."
        parts.append(f'<p class="warning">{escape(words)}</p>')
    if verdicts:
        parts += [
            f"<h2>Statements of the paper: {len(verdicts) - failed} hold, {failed} do not</h2>",
            _grid(
                ["statement", "where, and on what", "rule", "measured", "holds"],
                ([v.claim, v.source, v.rule, v.measured, _yes(v.holds)] for v in verdicts),
            ),
        ]
    for name, experiment in experiments.items():
        parts.append(
            f'<figure id="{name}"><img src="{name}.png" alt="{escape(experiment.title)}">'
            f'<figcaption>{escape(experiment.title)}. Numbers: <a href="{name}.csv">{name}.csv</a>, '
            f'vector graphics: <a href="{name}.svg">{name}.svg</a>.</figcaption></figure>'
        )
        if isinstance(experiment, Table):
            lines = table_lines(experiment, results)
            parts.append(_grid(list(COLUMNS.values()), ([line[key] for key in COLUMNS] for line in lines)))
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Experiments, reproduced</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
    with atomic(path) as partial:
        partial.write_text(page, encoding="utf-8")


def claim_rows(verdicts: Iterable[Verdict]) -> list[list[object]]:
    """Header and rows of claims.csv; the rule stands behind the numbers it judges."""
    rows: list[list[object]] = [["claim", "source", "measured", "holds"]]
    return rows + [[v.claim, v.source, f"{v.measured} [rule: {v.rule}]", _yes(v.holds)] for v in verdicts]


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _grid(heads: list[str], rows: Iterable[list[object]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td class="number">{value:,.0f}</td>'
    kind = f' class="{value}"' if value in ("yes", "no") else ""
    return f"<td{kind}>{escape(str(value))}</td>"
