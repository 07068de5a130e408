"""What every page of HTML begins and ends with: policy, style, icon, filter and script."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import TextIO

from proctor.reporting.html.escaping import GLYPHS, inline
from proctor.results.run import Outcome

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""The page makes no request, whatever text of an agent it shows."""

ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Ccircle cx='8' cy='8' r='7' fill='%23{colour}'/%3E%3C/svg%3E"
)
ICON_COLOURS = {
    Outcome.PASSED: "1a7f37",
    Outcome.FAILED: "cf222e",
    Outcome.ERROR: "bf8700",
    Outcome.SKIPPED: "6e7781",
    Outcome.PENDING: "8250df",
}


def page_head(title: str, outcome: Outcome) -> str:
    """Everything up to the body; the outcome gives the icon its colour."""
    icon = ICON.format(colour=ICON_COLOURS[outcome])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f'<title>{inline(title, 200)}</title>\n<link rel="icon" href="{icon}">\n'
        f"<style>\n{_asset('report.css')}</style>\n</head>\n<body>\n"
    )


def write_filter(counts: Mapping[Outcome, int], out: TextIO) -> None:
    """Hidden until the script that makes it work has run."""
    out.write(
        '<div class="filter" role="search" hidden>\n<label>Find <input type="search" id="find" '
        'placeholder="a case, a word, a tool…" autocomplete="off" spellcheck="false"></label>\n'
        '<div class="toggles" role="group" aria-label="Outcomes shown">\n'
    )
    for outcome in Outcome:
        if count := counts.get(outcome, 0):
            out.write(
                f'<button type="button" class="{outcome.value}" data-toggle="{outcome.value}" aria-pressed="true">'
                f'<span aria-hidden="true">{GLYPHS[outcome]}</span> {outcome.value} {count:,}</button>\n'
            )
    out.write(
        '</div>\n<button type="button" id="open-all">Open all</button>\n'
        '<p id="shown" role="status" aria-live="polite"></p>\n</div>\n'
    )


def page_end() -> str:
    """The script, on which nothing but convenience depends, and the end."""
    return f"<script>\n{_asset('report.js')}</script>\n</body>\n</html>\n"


def _asset(name: str) -> str:
    return resources.files("proctor").joinpath("reporting", "assets", name).read_text(encoding="utf-8")
