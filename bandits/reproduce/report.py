"""One page with all verdicts, figures and tables."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from bandits.reproduce.claims import Verdict, method, totals
from bandits.reproduce.description import Experiment, Table
from bandits.reproduce.formatting import plain, with_spread
from bandits.reproduce.running import Results
from bandits.reproduce.summary import heading, note, table_lines
from optdesign import __version__
from optdesign.runtime.files import atomic

COLUMNS = {
    "model": "model",
    "algorithm": "algorithm",
    "regret": "regret per client, mean ± standard deviation",
    "regret_bound": "upper bound in theory",
    "lower_bound": "minimax lower bound",
    "uploaded": "scalars up per client",
    "downloaded": "scalars down per client",
    "regret_order": "order of the total regret",
    "communication_order": "order of the communication",
}
VERDICTS = {True: "yes", False: "no", None: "not decided"}

STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #1a1a1a; margin: 2rem auto; }
body { max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.85rem; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.6rem; border-bottom: 1px solid #ccc; }
td.number { text-align: right; white-space: nowrap; }
td.yes { background: #e3f1e6; } td.no { background: #f9dfd8; font-weight: bold; }
td.undecided { background: #eeeeee; font-style: italic; }
img { max-width: 100%; } figure { margin: 2rem 0; } .warning { font-weight: bold; }
"""


def write_report(
    path: Path, experiments: dict[str, Experiment], results: Results, verdicts: list[Verdict]
) -> None:
    """Write the page; it shows the pictures in the same directory."""
    parts = [
        "<h1>Federated linear contextual bandits: the experiments, reproduced</h1>",
        "<p>A trial is one instance and one stream of rewards; trial n of every algorithm has the same "
        f"instance. Made with optdesign {escape(__version__)}.</p>",
    ]
    parts += [f'<p class="warning">{escape(words)}</p>' for words in _warnings(experiments, results)]
    if verdicts:
        parts += [
            "<h2>Statements of the paper</h2>",
            "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in totals(verdicts)) + "</ul>",
            f"<p>{escape(method(verdicts))}</p>",
            _grid(
                ["statement", "source, and instance", "sort", "rule", "measured", "holds"],
                ([v.claim, v.source, v.sort, v.rule, v.measured, VERDICTS[v.holds]] for v in verdicts),
            ),
        ]
    for name, experiment in experiments.items():
        title = escape(heading(experiment, results))
        is_table = isinstance(experiment, Table)
        caption = f"{title}. {escape(note(experiment, results, 'bars' if is_table else 'bands'))}"
        parts.append(
            f'<figure id="{name}"><img src="{name}.png" alt="{title}">'
            f'<figcaption>{caption} Numbers: <a href="{name}.csv">{name}.csv</a>, '
            f'vector graphics: <a href="{name}.svg">{name}.svg</a>.</figcaption></figure>'
        )
        if isinstance(experiment, Table):
            lines = table_lines(experiment, results)
            parts.append(_grid(list(COLUMNS.values()), map(_table_row, lines)))
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Experiments, reproduced</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
    with atomic(path) as partial:
        partial.write_text(page, encoding="utf-8")


def claim_rows(verdicts: Iterable[Verdict]) -> list[list[object]]:
    """Return header and rows of claims.csv; sort and rule follow the numbers that they judge."""
    rows: list[list[object]] = [["claim", "source", "measured", "holds"]]
    return rows + [
        [v.claim, v.source, f"{v.measured} [{v.sort}; rule: {v.rule}]", VERDICTS[v.holds]] for v in verdicts
    ]


def _warnings(experiments: dict[str, Experiment], results: Results) -> list[str]:
    """Return a sentence for each way in which less was played than described."""
    cases = [case for experiment in experiments.values() for case in experiment.cases]
    out = []
    if any(map(results.is_cut, cases)):
        out.append(f"Horizons were cut to {results.effort.longest:,}: these are not the paper's numbers.")
    if any(results.trials(case) < case.trials for case in cases):
        described = " or ".join(str(trials) for trials in sorted({case.trials for case in cases}))
        out.append(f"Trials per case: {results.effort.trials} in place of {described}.")
    return out


def _table_row(line: dict[str, Any]) -> list[object]:
    """Return the cells of a line of a table; regret has the digits that its deviation supports."""
    cells = line | {"regret": Number(with_spread(line["regret_mean"], line["regret_std"]))}
    return [Number(plain(v)) if isinstance(v, float) else v for v in (cells[key] for key in COLUMNS)]


class Number(str):
    """A formatted number, which the page aligns to the right."""


def _grid(heads: list[str], rows: Iterable[list[object]]) -> str:
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    body = "\n".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _cell(value: object) -> str:
    classes = {"yes": "yes", "no": "no", "not decided": "undecided"}
    name = "number" if isinstance(value, Number) else classes.get(str(value), "")
    attribute = f' class="{name}"' if name else ""
    return f"<td{attribute}>{escape(str(value))}</td>"
