"""The book: `sphinx-build -W docs site`, with the extra `docs`. Pages are Markdown that also reads well where it
lies."""

from importlib.metadata import version as installed

from sphinx.ext.napoleon.docstring import GoogleDocstring

project = "kprobes"
author = copyright = "the authors of kprobes"
version = release = installed("kprobes")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "contents"
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "kprobes"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_js_files = ["tables.js"]  # support.md and cost.md are tables, above all

myst_heading_anchors = 4  # links to headings, as repository browsers make them
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_use_ivar = True
suppress_warnings = [
    "myst.xref_missing",  # files beside docs/: tests/docs knows whether they are there
    "misc.highlighting_failure",  # assembly, and C with ellipses
    "ref.python",  # `addr` in a list of attributes may be several things
]


def _whole(docstring: GoogleDocstring) -> tuple[str, list[str]]:
    """All of a property's docstring, as its description.

    Napoleon takes what stands before the first colon for the property's type; ours have annotations.
    """
    return "", docstring._consume_to_end()


GoogleDocstring._consume_inline_attribute = _whole
