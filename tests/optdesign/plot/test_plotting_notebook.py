"""Pictures in a notebook: each cell that ends with one shows it, without ``%matplotlib inline``."""

import base64

import pytest

CELLS = (
    "import optdesign as od\nresult = od.solve(od.DesignProblem([[1, -1], [1, 0], [1, 1]], budgets=4))",
    "od.plot.weights(result)",
    "od.plot.overview(result)",
    "od.plot.runs(od.round(result))",
    "e = od.evaluate({'a': [-1, 1, 0, 1, -1, 0], 'b': list('uvwvwu')}, '~ a + b', effect=2)\n"
    "od.plot.correlations(e)",
    "od.plot.design_space(e)",
    "od.plot.profiles(e)",
    "od.plot.power(e)",
)
TABLES = ("result", "od.round(result)", "od.round(result).table()", "e")
"""Cells that show a table in HTML."""


@pytest.mark.slow
def test_pictures_are_shown(monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    cells = [nbformat.v4.new_code_cell(source) for source in (*CELLS, *TABLES)]
    notebook = nbclient.NotebookClient(nbformat.v4.new_notebook(cells=cells), timeout=120).execute()
    for cell in notebook.cells[len(CELLS) :]:
        (shown,) = [output.data for output in cell.outputs if "data" in output]
        assert "<table>" in shown["text/html"]
    for cell in notebook.cells[1 : len(CELLS)]:
        (shown,) = [output.data for output in cell.outputs if "data" in output]
        assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
