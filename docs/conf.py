"""The book: `sphinx-build -W docs site`, with the extra `docs`. Pages are Markdown that also reads well where it
lies."""

import os
import re
from collections.abc import Iterator
from importlib.metadata import version as installed
from pathlib import Path

from sphinx.application import Sphinx
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
myst_url_schemes = {"http": None, "https": None, "mailto": None, "beside": {"url": "{{path}}"}}
suppress_warnings = [
    "misc.highlighting_failure",  # assembly, and C with ellipses
    "ref.python",  # `addr` in a list of attributes may be several things
]


def _whole(docstring: GoogleDocstring) -> tuple[str, list[str]]:
    """All of a property's docstring, as its description.

    Napoleon takes what stands before the first colon for the property's type; ours have annotations.
    """
    return "", docstring._consume_to_end()


GoogleDocstring._consume_inline_attribute = _whole


# --- files beside docs/ that pages link to: each becomes a page of its text

DOCS = Path(__file__).resolve().parent
LINK = re.compile(r"\]\((?P<path>\.\./[^)#\s]+)\)")
LANGUAGES = {".py": "python", ".c": "c", ".md": "markdown"}  # others are downloads
linked: set[str] = set()  # paths, from the project's folder


def link_beside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Have a page's links to text outside docs/ lead to the pages that pages_beside() makes."""
    home = (DOCS / docname).parent

    def write(found: re.Match[str]) -> str:
        file = Path(os.path.normpath(home / found["path"]))
        if file.is_relative_to(DOCS) or file.suffix not in LANGUAGES or not file.is_file():
            return found[0]
        path = file.relative_to(DOCS.parent).as_posix()
        linked.add(path)
        return f"](beside:{os.path.relpath(DOCS / '_beside' / path, home)}.html)"

    source[0] = LINK.sub(write, source[0])


def pages_beside(app: Sphinx) -> Iterator[tuple[str, dict[str, object], str]]:
    """Yield the page of each file beside docs/ that was linked to."""
    for path in sorted(linked):
        text = (DOCS.parent / path).read_text()
        shown = app.builder.highlighter.highlight_block(text, LANGUAGES[Path(path).suffix])
        yield f"_beside/{path}", {"title": path, "body": f"<h1>{path}</h1>{shown}"}, "page.html"


# --- members that are no users': docs/reference.md has the lists

HIDDEN = {
    name: words.replace(" -", " ").split()
    for name, words in re.findall(
        r"<!-- generated: reference (\w+)((?: -\w+)*) -->", (DOCS / "reference.md").read_text()
    )
}
MEMBERS = re.compile(r"^\.\. autoclass:: kprobes\.(\w+)\n   :members:\n", re.MULTILINE)


def leave_out(app: Sphinx, docname: str, source: list[str]) -> None:
    """Leave out of api/use.rst what docs/reference.md leaves out."""
    if docname == "api/use":
        source[0] = MEMBERS.sub(
            lambda found: f"{found[0]}   :exclude-members: {', '.join(HIDDEN.get(found[1], []))}\n", source[0]
        )


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", link_beside)
    app.connect("source-read", leave_out)
    app.connect("html-collect-pages", pages_beside)
