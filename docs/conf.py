"""Sphinx configuration: `make docs`."""

import optdesign

project = "optdesign"
author = "The optdesign developers"
release = version = optdesign.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
html_theme = "alabaster"
html_theme_options = {"page_width": "1040px", "fixed_sidebar": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
exclude_patterns = ["_build", "measured"]
