"""Draws the Mermaid diagrams of the documentation as SVG files, which the site shows without a script.

    python docs/diagrams.py MERMAID_JS [CHROMIUM]

MERMAID_JS is `dist/mermaid.min.js` of the npm package `mermaid`. A diagram whose text has not changed is kept.
"""

from __future__ import annotations

import hashlib
import html
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
DRAWN = DOCS / "_static" / "diagrams"
FENCE = re.compile(r"^```mermaid\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGE = """<!doctype html><html><body><pre class="mermaid">{text}</pre>
<script src="{script}"></script>
<script>
mermaid.initialize({{startOnLoad: true, theme: "neutral", flowchart: {{htmlLabels: false}}, fontFamily: "sans-serif"}});
</script></body></html>"""


def diagrams() -> dict[Path, str]:
    """By the file that shows it, the text of every diagram in the documentation."""
    texts = [text for page in sorted(DOCS.rglob("*.md")) for text in FENCE.findall(page.read_text(encoding="utf-8"))]
    return {DRAWN / drawn_name(text): text for text in texts}


def drawn_name(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12] + ".svg"


def draw(text: str, script: Path, chromium: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(PAGE.format(text=html.escape(text), script=script.resolve().as_uri()), encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"]
        done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<svg.*</svg>", done.stdout, re.DOTALL)
    if found is None:
        raise SystemExit(f"not drawn:\n{text}")
    return found[0].replace("<br>", "<br/>").replace("&nbsp;", "&#160;")


def main(script: Path, chromium: str) -> None:
    DRAWN.mkdir(parents=True, exist_ok=True)
    wanted = diagrams()
    for path in set(DRAWN.glob("*.svg")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        if not path.is_file():
            path.write_text(draw(text, script, chromium) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "chromium")
