"""How the documentation is built; ``scripts/docs`` calls Sphinx with it."""

import os
import sys
from importlib import metadata
from pathlib import Path

import sparse_eval

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))
# Modules under the names by which the package lends them, which are looked up when they are used.
for name in ("baselines", "plots", "split", "track", "trec"):
    sys.modules[f"sparse_eval.{name}"] = getattr(sparse_eval, name)

project = "sparse_eval"
author = "the authors of sparse_eval"
version = release = metadata.version("sparse_eval")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx.ext.viewcode",
    "sphinx_codeautolink",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "metric_pages",
    "command_pages",
    "convention_pages",
    "repository_links",
    "example_outputs",
    "descriptions",
    "search_entries",
]
root_doc = "index"
smartquotes = False  # they would change the dashes and quotes of commands
default_role = "autolink"
templates_path = ["_templates"]
exclude_patterns = ["_build", "jupyter_execute", "**.ipynb_checkpoints"]
nitpicky = False

# What the reader's browser loads is in the folder that is built: no fonts, scripts or images from
# elsewhere, which `scripts/docs` checks.
html_theme = "pydata_sphinx_theme"
html_title = f"sparse_eval {version}"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": True,
    "show_prev_next": True,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
}
copyright = author  # noqa: A001 - Sphinx's name

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say what the types are
numpydoc_show_class_members = False  # the template does

# Each `se.name` in an example links to the reference. The examples of a page follow one another.
codeautolink_concat_default = True
# Sphinx takes the flags of doctest away, and codeautolink then does not find the example.
suppress_warnings = ["codeautolink.match_block"]
# The button copies the code of an example, and neither outputs nor prompts.
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"
copybutton_exclude = ".linenos, .gp, .go"

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

# Notebooks run anew each time: what they show is what the package does.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # tqdm's, with the path of this machine
