"""Text from outside as HTML that shows it and nothing else, with differences marked, and pieces all sections use."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from proctor.base.json_data import Json, plain
from proctor.reporting.terminal.screen import visible
from proctor.results.run import Outcome
from proctor.results.statistics import Estimate

GLYPHS = {
    Outcome.PASSED: "✓",
    Outcome.FAILED: "✗",
    Outcome.ERROR: "!",
    Outcome.SKIPPED: "–",
    Outcome.PENDING: "…",
}
"""A sign beside every colour, for readers who do not see the colour."""

_REPLACED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> str:
    """Text for the inside of an element or of a quoted attribute; control characters are spelt out."""
    return visible(text).translate(_REPLACED)


def inline(text: str, limit: int = 500) -> str:
    """Text on one line; what is too long says how long it was."""
    words = " ".join(text[: limit + 1].split())
    return escape(text_cut(words, limit, len(text)))


def text_cut(text: str, limit: int, length: int) -> str:
    return text if length <= limit else f"{text[:limit]}… ({length:,} characters in all)"


def block(text: str, limit: int, kind: str = "") -> str:
    """Text as it stands, in a box of its own; cut before it is escaped, so that no escape is ever cut in two."""
    name = f' class="{kind}"' if kind else ""
    if not text:
        return f'<p class="none{" " + kind if kind else ""}">(empty)</p>\n'
    note = f'<p class="cut">{len(text):,} characters in all; the first {limit:,} are shown.</p>\n'
    return f"<pre{name}>{escape(text[:limit])}</pre>\n{note if len(text) > limit else ''}"


def pretty(value: Json) -> str:
    """The text a person reads for a value: words as they are, data as indented JSON."""
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False, indent=2)


def code(text: str, limit: int = 500) -> str:
    return f"<code>{inline(text, limit)}</code>"


def badge(outcome: Outcome) -> str:
    """An outcome as colour, sign and word."""
    return (
        f'<span class="badge {outcome.value}"><span aria-hidden="true">{GLYPHS[outcome]}</span> {outcome.value}</span>'
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A list of names and values; the values are HTML already."""
    rows = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{rows}</dl>\n' if rows else ""


def gauge(estimate: Estimate, threshold: float | None = None) -> str:
    """A mean on the way from 0 to 1, with its interval and what it has to reach; the numbers stand beside it."""
    places = {"low": estimate.low, "high": estimate.high, "mean": estimate.mean}
    style = ";".join(f"--{name}:{percent(number)}" for name, number in places.items())
    needs = "" if threshold is None else f'<i class="needs" style="left:{percent(threshold)}"></i>'
    marks = f'<i class="range"></i><i class="mean"></i>{needs}'
    return f'<span class="gauge" style="{style}" aria-hidden="true">{marks}</span>'


def percent(number: float) -> str:
    """A share as a length in a style; what is no number, or outside 0 to 1, stays on the scale."""
    kept = min(1.0, max(0.0, number)) if math.isfinite(number) else 0.0
    return f"{kept * 100:.4g}%"


MOST_PARTS = 3_000
"""Words of each side; longer texts are shown without marks."""
LEAST_ALIKE = 0.25
"""Texts that have less in common are simply two texts: marks would cover all of both."""

_PARTS = r"\s+|\d[\d.,]*\d|\w+|[^\w\s]"


def marked_pair(expected: str, actual: str) -> tuple[str, str] | None:
    """Both texts as HTML with their differences marked; `None` where marks would tell nothing."""
    if expected == actual or not expected or not actual:
        return None
    sides = [re.findall(_PARTS, text[: 20 * MOST_PARTS]) for text in (expected, actual)]
    if any(len(parts) > MOST_PARTS for parts in sides) or "".join(sides[0]) != expected or "".join(sides[1]) != actual:
        return None
    matcher = SequenceMatcher(None, sides[0], sides[1], autojunk=False)
    shared = sum(_words(sides[0][block.a : block.a + block.size]) for block in matcher.get_matching_blocks())
    if shared < LEAST_ALIKE * max(map(_words, sides)):
        return None
    left: list[str] = []
    right: list[str] = []
    for kind, start, end, first, last in matcher.get_opcodes():
        old, new = escape("".join(sides[0][start:end])), escape("".join(sides[1][first:last]))
        left.append(old if kind == "equal" or not old else f"<del>{old}</del>")
        right.append(new if kind == "equal" or not new else f"<ins>{new}</ins>")
    return "".join(left), "".join(right)


def _words(parts: list[str]) -> int:
    return sum(not part.isspace() for part in parts)
