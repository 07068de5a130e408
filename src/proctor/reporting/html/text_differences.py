"""Marks what differs between an expected and an actual text, inside the text; data is compared as indented JSON."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from proctor.reporting.html.escaping import escape

MOST_PARTS = 3_000
"""Words of each side; longer texts are shown without marks."""
LEAST_ALIKE = 0.25
"""Texts that have less in common are simply two texts: marks would cover all of both."""

_PARTS = re.compile(r"\s+|\d[\d.,]*\d|\w+|[^\w\s]")


def marked_pair(expected: str, actual: str) -> tuple[str, str] | None:
    """Both texts as HTML with their differences marked; `None` where marks would tell nothing."""
    if expected == actual or not expected or not actual:
        return None
    sides = [_PARTS.findall(text[: 20 * MOST_PARTS]) for text in (expected, actual)]
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
