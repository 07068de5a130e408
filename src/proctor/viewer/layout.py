"""What every page of the viewer has around it, and the small pieces that several pages share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import StringIO
from urllib.parse import quote, urlencode

from proctor.reporting.html.escaping import GLYPHS, escape, inline
from proctor.reporting.html.page_frame import ICON, ICON_COLOURS
from proctor.reporting.wording import when
from proctor.results.run import Outcome, Run, SuiteInfo
from proctor.version import __version__

MENU = (("/", "Runs"), ("/compare", "Compare"), ("/grade", "Grade"))


def page(title: str, body: str, *, here: str = "", outcome: Outcome = Outcome.SKIPPED, live: str = "") -> str:
    """A whole page; `live` is the address of the events that tell of changes to it."""
    icon = ICON.format(colour=ICON_COLOURS[outcome])
    links = "".join(
        f'<a href="{place}"{" aria-current=page" if place == here else ""}>{name}</a>' for place, name in MENU
    )
    events = f' data-live="{escape(live)}"' if live else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>{inline(title, 200)} · Proctor</title>\n<link rel="icon" href="{icon}">\n'
        '<link rel="stylesheet" href="/assets/report.css">\n<link rel="stylesheet" href="/assets/viewer.css">\n'
        '<script src="/assets/viewer.js" defer></script>\n</head>\n'
        f'<body class="viewer"{events}>\n<a class="skip" href="#content">Skip to the content</a>\n'
        f'<header class="top"><a class="brand" href="/">Proctor</a><nav aria-label="Pages">{links}</nav>'
        '<button type="button" id="help-button" aria-haspopup="dialog" hidden>Keys <kbd>?</kbd></button></header>\n'
        f'<main id="content" tabindex="-1">\n{body}</main>\n'
        f"<footer><p>Proctor {__version__} · served from this machine</p></footer>\n{HELP}</body>\n</html>\n"
    )


HELP = (
    '<dialog id="help" aria-labelledby="help-title"><h2 id="help-title">Keys</h2><dl class="keys">'
    "<div><dt><kbd>j</kbd> <kbd>k</kbd></dt><dd>next and previous row or case</dd></div>"
    "<div><dt><kbd>Enter</kbd></dt><dd>open it</dd></div>"
    "<div><dt><kbd>u</kbd></dt><dd>up: from a case to its run, from a run to all</dd></div>"
    "<div><dt><kbd>/</kbd></dt><dd>find</dd></div>"
    "<div><dt><kbd>p</kbd> <kbd>f</kbd> <kbd>n</kbd></dt><dd>when grading: pass, fail, leave for later</dd></div>"
    "<div><dt><kbd>c</kbd></dt><dd>when grading: write a comment</dd></div>"
    "<div><dt><kbd>?</kbd></dt><dd>these keys</dd></div></dl>"
    '<form method="dialog"><button>Close</button></form></dialog>\n'
)


def message_page(title: str, text: str) -> str:
    return page(title, f'<h1 class="plain">{inline(title)}</h1>\n<p class="reason">{inline(text, 4_000)}</p>\n')


def moment(seconds: float | None) -> str:
    """A time that the script turns into the reader's own zone."""
    if seconds is None:
        return ""
    try:
        exact = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        return escape(str(seconds))
    return f'<time datetime="{exact}">{escape(when(seconds))}</time>'


def run_address(row: Run | str) -> str:
    return f"/runs/{quote(row if isinstance(row, str) else row.id, safe='')}"


def case_address(run: str, suite: str, case: str, trial: int | None = None) -> str:
    """Where a case of a run is shown; halves of surrogate pairs survive the way."""
    pairs = [("suite", suite), ("case", case), *([("trial", str(trial))] if trial is not None else [])]
    return f"{run_address(run)}/case?{urlencode(pairs, errors='surrogatepass')}"


def agents_text(suites: Sequence[SuiteInfo]) -> str:
    return ", ".join(dict.fromkeys(info.agent for info in suites if info.agent)) or "no agent"


def suites_text(suites: Sequence[SuiteInfo]) -> str:
    return ", ".join(dict.fromkeys(info.name for info in suites)) or "no suite"


def sign(outcome: Outcome | None, word: str = "") -> str:
    """An outcome, or a state that is none, as colour, sign and word."""
    if outcome is None:
        return f'<span class="badge skipped">{escape(word)}</span>'
    return (
        f'<span class="badge {outcome.value}"><span aria-hidden="true">{GLYPHS[outcome]}</span> '
        f"{escape(word or outcome.value)}</span>"
    )


def with_levels(html: str, level: int) -> str:
    """Pieces of the report have their headings at the fifth level; a page has fewer above them."""
    return html.replace("<h5", f'<h5 aria-level="{level}"')


def pages_links(at: int, pages: int, address: Callable[[int], str]) -> str:
    """Links to the page before and after."""
    if pages <= 1:
        return ""
    out = StringIO()
    out.write('<nav class="pages" aria-label="Pages of cases">')
    if at > 1:
        out.write(f'<a rel="prev" href="{escape(address(at - 1))}">← previous</a>')
    out.write(f"<span>page {at:,} of {pages:,}</span>")
    if at < pages:
        out.write(f'<a rel="next" href="{escape(address(at + 1))}">next →</a>')
    out.write("</nav>\n")
    return out.getvalue()
