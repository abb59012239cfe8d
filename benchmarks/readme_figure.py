"""Picture of the README: a sensitivity surface with its bound, and a run list in the plane of two factors.

The block of the README from factors to a run list is executed; the picture shows its problem and its runs.

python benchmarks/readme_figure.py [--out docs/figures/readme.png]
"""

from __future__ import annotations

import argparse
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

import optdesign as od
from optdesign.plot.style import BLUE, ORANGE, STYLE

README = Path(__file__).parents[1] / "README.md"
DPI = 110


def problem_and_runs() -> tuple[od.DesignProblem, od.Runs]:
    """Return the problem and the runs of the README's first block that makes a run list."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), flags=re.M | re.S)
    code = next(block for block in blocks if "od.exact" in block)
    names: dict[str, Any] = {}
    with redirect_stdout(io.StringIO()):
        exec(compile(code, README.name, "exec"), names)
    return names["problem"], names["runs"]


def on_grid(x: np.ndarray, y: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the axes of the grid and the values on it, NaN at excluded settings."""
    xs, ys = np.unique(x), np.unique(y)
    grid = np.full((len(ys), len(xs)), np.nan)
    grid[np.searchsorted(ys, y), np.searchsorted(xs, x)] = values
    return xs, ys, grid


def draw(path: Path) -> None:
    problem, runs = problem_and_runs()
    result = od.solve(problem, tol=1e-9)
    frame = result.to_frame()
    x, y = (frame[name].to_numpy() for name in ("temperature", "pressure"))
    bound = result.rank / problem.budgets[0]
    ratio = result.variances / bound
    support = result.support
    with rc_context({**STYLE, "font.size": 10}):
        figure = Figure(figsize=(10.4, 4.5))
        surface = figure.add_axes((0.0, 0.02, 0.52, 0.86), projection="3d", computed_zorder=False)
        xs, ys, grid = on_grid(x, y, ratio)
        mesh = np.meshgrid(xs, ys)
        surface.plot_surface(*mesh, grid, cmap="Blues", vmin=0.2, vmax=1.15, rstride=1, cstride=1,
                             linewidth=0.15, edgecolor="white", antialiased=True, zorder=1)  # fmt: skip
        surface.plot_surface(*mesh, np.where(np.isnan(grid), np.nan, 1.0), color=ORANGE, alpha=0.13,
                             linewidth=0, zorder=2)  # fmt: skip
        surface.scatter(x[support], y[support], ratio[support], s=46, color=ORANGE, edgecolor="black",
                        depthshade=False, zorder=3)  # fmt: skip
        surface.set_xlabel("temperature")
        surface.set_ylabel("pressure")
        surface.set_yticks(np.linspace(ys[0], ys[-1], 3))
        surface.set_zlabel("variance / bound")
        surface.set_zlim(min(0.4, float(ratio.min())), 1.02)
        surface.view_init(elev=24, azim=-122)
        surface.set_box_aspect((1.25, 1.0, 0.62), zoom=1.02)
        proof = "Proof: the variance reaches its bound (orange)\nonly at the support points"
        figure.text(0.03, 0.93, proof, fontsize=11, va="center")
        plane = figure.add_axes((0.60, 0.13, 0.38, 0.73))
        plane.scatter(x, y, s=3, color="#B8B8B8", zorder=1)
        used = np.flatnonzero(runs.counts)
        counts = runs.counts[used]
        plane.scatter(x[used], y[used], s=190 + 110 * counts, color=BLUE, edgecolor="black", zorder=2)
        for k, count in zip(used, counts, strict=True):
            plane.text(x[k], y[k], f"{count}", color="white", ha="center", va="center", zorder=3)
        plane.set_xlabel("temperature")
        plane.set_ylabel("pressure")
        plane.margins(0.09)
        percent = np.floor(1e4 * runs.efficiency) / 100
        scope = "against all designs on these candidates"
        title = f"Run list: {counts.sum()} runs, efficiency at least {percent:.2f} %\n{scope}"
        figure.text(0.58, 0.93, title, fontsize=11, va="center")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI, metadata={"Software": None})
    print(f"{path}  {path.stat().st_size / 1000:.0f} kB, {len(support)} support points, "
          f"largest variance / bound elsewhere {np.delete(ratio, support).max():.4f}")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures/readme.png"))
    draw(parser.parse_args().out)


if __name__ == "__main__":
    main()
