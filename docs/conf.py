"""How Sphinx makes the site of these pages (`make docs`): offline, and with every broken link as an error."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from diagrams import drawn_name  # noqa: E402
from reference import write_reference  # noqa: E402

from proctor.version import __version__  # noqa: E402

project = "Proctor"
release = version = __version__
project_copyright = "the Proctor contributors"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
smartquotes = False
default_role = "literal"
"""Docstrings are written with single backticks."""
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["misc.highlighting_failure"]
"""Examples leave things out with `…`, which no lexer knows."""
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False

html_theme = "furo"
html_title = f"Proctor {release}"
html_static_path = ["_static"]
html_css_files = ["proctor.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}

OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#\s]+)(?:#[^)]*)?\)")
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def as_site(app: Any, page: str, source: list[str]) -> None:
    """A page as the site shows it."""
    text = source[0]
    if page == "index":
        text = listed(text, {path.stem for path in HERE.glob("*.md")} - {"index"})
    # Files of the repository that are no pages are named, since the site does not have them.
    if "/" not in page:
        text = OUTSIDE.sub(r"\1 (`\2` in the repository)", text)
    source[0] = MERMAID.sub(drawn, text)


def listed(index: str, pages: set[str]) -> str:
    """The index with the pages that are there: those it does not name come last."""
    lines = index.split("\n")
    named = {line for line in lines if re.fullmatch(r"[a-z-]+", line)}
    kept = "\n".join(line for line in lines if line not in named - pages)
    if more := sorted(pages - named):
        kept += "\n```{toctree}\n:caption: More\n:hidden:\n\n" + "\n".join(more) + "\n```\n"
    return kept


def index_of_new_pages(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The index is read again where the pages that it lists are others."""
    return ["index"] if added or removed else []


def drawn(fence: re.Match[str]) -> str:
    """The picture of a diagram that `docs/diagrams.py` drew; its text, where it was not drawn since it changed."""
    picture = HERE / "_static" / "diagrams" / drawn_name(fence[1])
    return f"![Diagram](_static/diagrams/{picture.name})" if picture.is_file() else fence[0]


def reference(app: Any) -> None:
    """The pages that the program itself writes."""
    write_reference(HERE / "generated")


def setup(app: Any) -> None:
    from pygments.lexers.special import TextLexer

    app.add_lexer("mermaid", TextLexer)
    app.connect("env-get-outdated", index_of_new_pages)
    app.connect("source-read", as_site)
    app.connect("builder-inited", reference)
