"""Sphinx configuration: `make docs`."""

import importlib
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import optdesign

project = "optdesign"
author = "The optdesign developers"
copyright = author
release = version = optdesign.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "reference_pages",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "stored_table",
    "verdicts",
]
exclude_patterns = ["_build", "_ext", "measured"]
nitpicky = True
toc_object_entries_show_parents = "hide"
smartquotes = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"optdesign {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    "index": [],
    "install": [],
    "quick-start": [],
    "glossary": [],
    "changelog": [],
    "mathematics": [],
    "measured": [],
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div.highlight-python pre, div.highlight-sh pre, div.highlight-pycon pre"

mathjax_path = "mathjax/tex-chtml.js"


def copy_mathjax(app, error):
    """Copy MathJax and its fonts from the installed package, so that pages need no network."""
    if error is not None or app.builder.format != "html":
        return
    source = Path(importlib.import_module("sphinx-mathjax-offline").__file__).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "tex-chtml.js", target)
    shutil.copytree(
        source / "output" / "chtml" / "fonts", target / "output" / "chtml" / "fonts", dirs_exist_ok=True
    )


def setup(app):
    """Connect the copy of MathJax."""
    app.connect("build-finished", copy_mathjax)
