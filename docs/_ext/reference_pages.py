"""Write the API pages, one per public name, and the command-line reference, before Sphinx reads them."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
from docutils import nodes

TOPICS = {
    "problems": (
        "Problems and candidates",
        "State candidates, groups, parameter blocks and budgets.",
        "optdesign: DesignProblem candidates Candidates factorial simplex_lattice simplex_centroid local "
        "InputError",
    ),
    "solving": (
        "Solving",
        "Compute optimal weights.",
        "optdesign: solve solve_many d_optimal g_optimal coordinate_ascent DesignResult Status History "
        "METHODS",
    ),
    "certificates": (
        "Certificates and verification",
        "Bound the efficiency of any design, and check results with code that the solvers do not share.",
        "optdesign: certify Certificate Measures efficiency verify Verification; optdesign.reference: solve",
    ),
    "runs": (
        "Whole runs and sparse designs",
        "Turn weights into run lists, or search for run lists, with a bound on these candidates.",
        "optdesign: exact round refine Refinement apportion sparsify MainEffects Runs RunTable RunStatus",
    ),
    "evaluation": (
        "Evaluation",
        "Standard errors, power, aliasing and prediction variance of any design.",
        "optdesign: evaluate Evaluation Measures",
    ),
    "files": ("Saved designs", "Save a problem with its design, and load it.", "optdesign: save load"),
    "ellipsoids": (
        "Ellipsoids and linear algebra",
        "Minimum-volume ellipsoids, pseudo-determinants and pseudo-inverses.",
        "optdesign: min_volume_ellipsoid Ellipsoid; optdesign.linalg: pseudo_det log_pseudo_det "
        "pseudo_inverse "
        "rank_one_update det_ratio eigen_range range_basis",
    ),
    "plot": (
        "Pictures",
        "Draw designs, runs and proofs of optimality with matplotlib.",
        "optdesign.plot: overview weights sensitivity runs efficiencies ellipsoid convergence correlations "
        "design_space profiles power require_matplotlib",
    ),
    "testing": (
        "Property tests",
        "Hypothesis strategies and assertions for design routines and policies.",
        "optdesign.testing: check_solver assert_certified assert_feasible assert_same_design assert_solves "
        "problems "
        "random_problems ugly_problem ugly_problems weighted feasible_weights lattice matrices semidefinite "
        "at_least_one chosen FAMILIES PHASES STRUCTURES; "
        "bandits.testing: check_policy assert_played assert_plays environments random_environments NOISES",
    ),
    "building": (
        "Packages that build on optdesign",
        "Compiled functions, files, progress displays and commands for other packages.",
        "optdesign.runtime.jit: kernel inlined uncached code_hash; optdesign.runtime.files: atomic; "
        "optdesign.runtime.progress: Counter; optdesign.cli.pipes: command_line; optdesign.examples: "
        "authors_features",
    ),
    "simulation": (
        "Bandits: simulation",
        "Play a policy on an environment, over trials.",
        "bandits: simulate Run load concatenate; bandits.plotting: plot_regret save_figure write_csv "
        "write_rows",
    ),
    "policies": (
        "Bandits: policies",
        "Fed-PE, its variants, and the algorithms it is compared with.",
        "bandits: FedPE EnhancedFedPE CollaborativeFedPE LocalUCB LinUCB LinTS DELB DisLinUCB FedUCB "
        "LongestFeature",
    ),
    "environments": (
        "Bandits: environments",
        "Features, parameters and noise.",
        "bandits: LinearEnvironment; bandits.environments: synthetic authors identical clusters random "
        "lower_bound "
        "movielens; bandits.noise: Noise Gaussian Bernoulli TwoPoint Bounded",
    ),
    "extending": (
        "Bandits: policies of your own",
        "Base classes, rules, schedules and messages.",
        "bandits: Policy Trial Record Phased Stepwise Design ascent ceiling efficient confident "
        "collinear_classes; "
        "bandits.schedules: Schedule Exponential Uniform Greedy Lengths; bandits.protocol: Message "
        "FirstEstimates "
        "ActiveArms PullPlan LocalEstimates GlobalEstimates Projections Ledger",
    ),
    "theory": (
        "Bandits: theory",
        "The theorems of the paper as numbers.",
        "bandits.theory: regret_bound fedpe_regret enhanced_regret phase_regret lower_bound "
        "communication_bound Cost; "
        "bandits.confidence: smallest_k alpha prior_variance mixture_alpha",
    ),
}


def names(listed: str) -> list[str]:
    """Return the full names of a list such as "optdesign: solve certify; optdesign.linalg: pseudo_det"."""
    parts = [part.partition(":") for part in listed.split(";")]
    return [f"{module.strip()}.{name}" for module, _, rest in parts for name in rest.split()]


def find(name: str) -> Any:
    """Return the object of a full name; AttributeError if there is none."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        return reduce(getattr, parts[n:], module)
    raise AttributeError(name)


def directive(item: Any) -> tuple[str, list[str]]:
    """Return the autodoc directive for an object, and its options."""
    if inspect.isclass(item):
        kind = "autoexception" if issubclass(item, BaseException) else "autoclass"
        return kind, [":members:"]
    return ("autofunction", []) if callable(item) else ("autodata", [":no-value:"])


def constant_text(name: str) -> str:
    """Return the text below the definition of a constant, in whichever module defines it."""
    item, short = find(name), name.rpartition(".")[2]
    for module in [m for key, m in sys.modules.items() if key.startswith(name.split(".")[0] + ".")]:
        if getattr(module, short, None) is not item:
            continue
        statements = ast.parse(inspect.getsource(module)).body
        for one, following in pairwise(statements):
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if is_text and any(isinstance(t, ast.Name) and t.id == short for t in targets):
                return inspect.cleandoc(str(following.value.value))
    raise ValueError(f"{name} must have a text below its definition.")


def describe_constant(_app: Any, what: str, name: str, _item: Any, _options: Any, lines: list[str]) -> None:
    """Replace the docstring of the type of a constant by the text below its definition."""
    if what == "data":
        lines[:] = [*constant_text(name).splitlines(), ""]


def summary(item: Any) -> str:
    """Return the first sentence of the docstring."""
    text = inspect.getdoc(item) or ""
    return " ".join(text.split("\n\n")[0].split()).rstrip(".")


def write(path: Path, text: str) -> None:
    """Write a file unless it has that text, so that Sphinx does not read it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def write_api(folder: Path) -> None:
    """Write a page per topic and per name."""
    wanted = set()
    for topic, (title, about, listed) in TOPICS.items():
        lines = [title, "=" * len(title), "", about, "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names(listed)]
        lines += ["", ".. toctree::", "   :hidden:", ""]
        for name in names(listed):
            lines.append(f"   {name} <{name}>")
            kind, options = directive(find(name))
            heading = name.replace(".", ".\u200b")  # long names break after a dot
            page = [
                heading,
                "=" * len(heading),
                "",
                f".. {kind}:: {name}",
                *(f"   {option}" for option in options),
                "",
            ]
            write(folder / f"{name}.rst", "\n".join(page))
            wanted.add(f"{name}.rst")
        write(folder / f"{topic}.rst", "\n".join([*lines, ""]))
        wanted.add(f"{topic}.rst")
    index = ["API", "===", "", "Each public name has a page. Import the names as the pages spell them.", ""]
    index += [".. toctree::", "   :maxdepth: 1", "", *(f"   {topic}" for topic in TOPICS), ""]
    write(folder / "index.rst", "\n".join(index))
    wanted.add("index.rst")
    for old in folder.glob("*.rst"):
        if old.name not in wanted:
            old.unlink()


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def option_rows(command: Any, context: Any) -> list[str]:
    """Return the rows of the table of a command's arguments and options."""
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if parameter.param_type_name == "argument":
            record = ((parameter.name or "").upper(), parameter.help or "")
        if record is not None:
            left = " ".join(record[0].split()).replace("|", "\\|")
            rows.append(f"| `{left}` | {cell(record[1])} |")
    return rows


def write_commands(path: Path) -> None:
    """Write the reference of both commands from their applications."""
    page = [
        "# Command line",
        "",
        "This page is generated from the commands. `COMMAND --help` prints the same text.",
        "",
    ]
    for name in ("optdesign", "bandits"):
        group: Any = typer.main.get_command(importlib.import_module(f"{name}.cli.commands").app)
        page += [f"## {name}", "", inspect.cleandoc(group.help or ""), ""]
        context = group.context_class(group, info_name=name)
        for title in group.list_commands(context):
            command = group.get_command(context, title)
            inner = command.context_class(command, info_name=title, parent=context)
            usage = " ".join(command.collect_usage_pieces(inner)).replace("{", "").replace("}", "")
            page += [f"### {name} {title}", "", "```text", f"{name} {title} {usage}", "```", ""]
            page += [inspect.cleandoc((command.help or "").replace("\b", "")), ""]
            rows = option_rows(command, inner)
            if rows:
                page += ["| argument or option | meaning |", "|---|---|", *rows, ""]
    write(path, "\n".join(page))


def write_pages(app: Any, _config: Any) -> None:
    """Write all generated pages."""
    source = Path(app.srcdir)
    write_api(source / "api")
    write_commands(source / "cli.md")


def resolve_alias(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolve a reference by the object that it names.

    A name of an internal module that is public elsewhere becomes a link to its page. Other existing names of
    the packages are shown as code. Names that do not exist stay unresolved, and fail the build.
    """
    if node.get("refdomain") != "py":
        return None
    target, module = node["reftarget"], node.get("py:module") or ""
    same_ending = [name for name in app.public_names if name.endswith(f".{target}")]
    for name in (target, f"{module}.{target}".replace("..", "."), *same_ending):
        try:
            item = find(name)
        except (AttributeError, ImportError, ValueError, TypeError):
            continue
        if name.split(".")[0] not in ("optdesign", "bandits"):
            continue
        for public in app.public_names:
            if item is find(public):
                domain = env.get_domain("py")
                return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", public, node, content)
        return nodes.literal(text=content.astext())
    return None


def setup(app: Any) -> dict[str, Any]:
    """Connect the events."""
    app.public_names = [name for _, _, listed in TOPICS.values() for name in names(listed)]
    app.connect("config-inited", write_pages)
    app.connect("missing-reference", resolve_alias)
    app.connect("autodoc-process-docstring", describe_constant)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
