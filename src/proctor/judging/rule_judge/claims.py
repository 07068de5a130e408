"""Splits a text into statements, and tells claims from what claims nothing.

A text is cut into blocks (bullets, headings, `label: value` lines, table rows) and blocks into sentences; cutting at
every full stop would break abbreviations, initials and numbered lists. Greetings, thanks, offers, apologies, refusals,
remarks about the speaker and questions back are not claims: they neither pass nor fail anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proctor.judging.rule_judge.lexicon import ABBREVIATIONS, COURTESIES

MAX_STATEMENT = 600
"""The most characters of a statement: text without a full stop is cut here, so that it stays fast to compare."""
_BARE_REPLY = re.compile(r"\W*(?:yes|no|yeah|yep|nope)\W*", re.IGNORECASE)


def split_statements(text: str) -> list[str]:
    """The statements of a text in their order; empty for a text without words."""
    pieces = (piece for block in _blocks(text) for piece in _sentences(block))
    found = [piece for piece in pieces if any(map(str.isalnum, piece))]
    for index in range(len(found) - 2, -1, -1):
        if _BARE_REPLY.fullmatch(found[index]):
            found[index : index + 2] = [f"{found[index]} {found[index + 1]}"]  # `Yes. It is open.` is one statement
    return found


_BULLET = re.compile(r"^\s{0,40}(?:[-*+•‣◦–]|\(?[0-9]{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|>{1,4})\s{1,10}")
PAIR = re.compile(r"\s{0,40}(?:[-•*]\s)?\**[^\s:=|.!?][^:=|.!?]{0,40}\**\s?(?::\**|=)\s{1,10}\S.{0,200}")
"""A line such as `Price: 12` or `price = 12`."""


def _blocks(text: str) -> Iterator[str]:
    """Blocks of text: one for each bullet, heading, `label: value` line and table row; wrapped lines are joined."""
    lines: list[str] = []
    for line in text.splitlines():
        bare = _BULLET.sub("", line, count=1)
        row = bare.strip()
        is_heading = line.lstrip().startswith("#")
        is_alone = is_heading or row.startswith(("|", "```")) or not row or bool(PAIR.fullmatch(bare))
        if bare != line or is_alone:
            yield " ".join(lines)
            lines = []
        if row and not row.startswith("```"):
            lines.append(f"{row}:" if is_heading and not row.endswith((":", ".", "!", "?")) else row)
        if is_alone:
            yield " ".join(lines)
            lines = []
    yield " ".join(lines)


_END = re.compile(r"[.!?…]{1,8}[\"'”’)\]*]{0,4}(?=\s|$)|[。！？｡]{1,8}[」』”’）]{0,4}|;(?=\s)|[؟۔।]{1,4}")


def _sentences(block: str) -> Iterator[str]:
    begin = 0
    ends = [match.end() for match in _END.finditer(block) if not _continues(block, match)]
    for end in [*ends, len(block)]:
        piece = block[begin:end].strip()
        begin = end
        while len(piece) > MAX_STATEMENT:
            cut = max(piece.rfind(" ", MAX_STATEMENT // 2, MAX_STATEMENT), MAX_STATEMENT // 2)
            yield piece[:cut].strip()
            piece = piece[cut:].strip()
        if piece:
            yield piece


def _continues(block: str, match: re.Match[str]) -> bool:
    """Whether the sentence goes on after this full stop, which follows an abbreviation or an initial."""
    before = block[max(0, match.start() - 12) : match.start()].rsplit(None, 1)
    word = before[-1].lstrip("(\"'“[").lower() if before else ""
    is_initial = len(word) == 1 and word.isalpha() and len(match[0]) == 1
    return match[0][0] == "." and (word in ABBREVIATIONS or is_initial) and bool(block[match.end() :][:200].strip())


def makes_claim(text: str) -> bool:
    """Whether the text claims anything that could be right or wrong."""
    if text.rstrip(" \"'*_)”").endswith(("?", ":")):
        return False
    bare = without_courtesy(text)
    if not any(map(str.isalnum, bare)) or _REMARK.fullmatch(bare):
        return False
    # `I am not sure, but …` claims what comes after it.
    last = re.split(r"\b(?:but|however|though)\b", bare, flags=re.IGNORECASE)[-1]
    return not declines(last) and not _SPEAKER.match(last)


def declines(text: str) -> bool:
    """Whether the text declines to answer: `I don't know`, `there is no information about that`."""
    return _DECLINING.search(text[:600].replace("’", "'")) is not None


def without_courtesy(text: str) -> str:
    """The statement without greetings, thanks, apologies and offers of help."""
    bare = text.replace("’", "'")
    for _ in range(3):
        bare = _ANNOUNCEMENT.sub(" ", _CLOSING.sub(_without_values, _OPENING.sub(" ", bare))).strip()
    return bare


def _without_values(closing: re.Match[str]) -> str:
    """Nothing for an offer or a wish; `contact us before 8 pm` is more than that."""
    return closing[0] if re.search(r"\d", closing[0]) else " "


def _pattern(name: str, before: str = "", after: str = "") -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(COURTESIES[name])}){after}", re.IGNORECASE)


_OPENING = _pattern("openings", r"^\W{0,5}", r"\s{0,2}(?:[,.!:;-]|$)")
_CLOSING = _pattern("closings", r"\b", r"\b.{0,300}$")
_ANNOUNCEMENT = _pattern("announcements", r"^\W{0,5}", r"\b.{0,200}$")
_REMARK = _pattern("remarks", r"\W*", r"?\W*")
_SPEAKER = _pattern("speaker", r"\W*", r"\b")
_DECLINING = _pattern("refusals", r"\b", r"\b")
