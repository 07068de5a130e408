"""How Sphinx builds the site (`make docs`): offline, and with every broken link as an error."""

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
"""Docstrings use single backticks for code."""
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["misc.highlighting_failure"]
"""Examples leave lines out with `…`, which no lexer knows."""
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

OUTSIDE_CONTRIBUTING = re.compile(r"\[([^\]]+)\]\((?:\.\./){2,}([^)#\s]+)(?:#[^)]*)?\)")
OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#\s]+)(?:#[^)]*)?\)")
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def as_site(app: Any, page: str, source: list[str]) -> None:
    """Change the Markdown of a page into what the site needs."""
    text = source[0]
    if page == "index":
        text = with_all_pages(text, {path.stem for path in HERE.glob("*.md")} - {"index", "dependencies"})
    # Links to files outside docs/ become their names: the site does not have those files.
    if page.startswith("contributing/"):
        text = OUTSIDE_CONTRIBUTING.sub(r"\1 (`\2` in the repository)", text)
    elif "/" not in page:
        text = OUTSIDE.sub(r"\1 (`\2` in the repository)", text)
    source[0] = MERMAID.sub(picture, text)


def with_all_pages(index: str, pages: set[str]) -> str:
    """The index without the pages that do not exist, and with those that it does not list under "More"."""
    lines = index.split("\n")
    listed = {line for line in lines if re.fullmatch(r"[a-z-]+", line)}
    text = "\n".join(line for line in lines if line not in listed - pages)
    if more := sorted(pages - listed):
        text += "\n```{toctree}\n:caption: More\n:hidden:\n\n" + "\n".join(more) + "\n```\n"
    return text


def outdated_pages(app: Any, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Read the index again if pages were added or removed."""
    return ["index"] if added or removed else []


def picture(fence: re.Match[str]) -> str:
    """The picture that `docs/diagrams.py` drew of a diagram, or its text if it has changed since."""
    file = HERE / "_static" / "diagrams" / drawn_name(fence[1])
    return f"![Diagram](/_static/diagrams/{file.name})" if file.is_file() else fence[0]


def reference(app: Any) -> None:
    """Write the reference pages, which are generated from the code."""
    write_reference(HERE / "generated")


def code_in_docstring(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Mark indented blocks of a docstring as code, as Markdown does. reStructuredText takes them for quotes."""
    result: list[str] = []
    in_code = False
    for line in lines:
        if line.startswith("    ") and not in_code and (not result or not result[-1].strip()):
            result += [".. code-block:: python", ""]
            in_code = True
        elif line.strip() and not line.startswith("    "):
            in_code = False
        result.append(line)
    lines[:] = result


def setup(app: Any) -> None:
    from pygments.lexers.special import TextLexer

    app.add_lexer("mermaid", TextLexer)
    app.connect("env-get-outdated", outdated_pages)
    app.connect("source-read", as_site)
    app.connect("builder-inited", reference)
    app.connect("autodoc-process-docstring", code_in_docstring)
