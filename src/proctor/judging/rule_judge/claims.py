"""Splits a text into statements, and tells claims from what claims nothing.

A text is cut into blocks (bullets, headings, `label: value` lines, table rows) and blocks into sentences; cutting at
every full stop would break abbreviations, initials and numbered lists. Greetings, thanks, offers, apologies, refusals,
remarks about the speaker and questions back are not claims: they neither pass nor fail anything.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from proctor.judging.rule_judge.lexicon import ABBREVIATIONS, COURTESIES

MAX_STATEMENT = 600
"""The most characters of a statement: text without a full stop is cut here, so that it stays fast to compare."""
PAIR = re.compile(r"\s{0,40}(?:[-•*]\s)?\**[^\s:=|.!?][^:=|.!?]{0,40}\**\s?(?::\**|=)\s{1,10}\S.{0,200}")
"""A line such as `Price: 12` or `price = 12`."""
_BULLET = re.compile(r"^\s{0,40}(?:[-*+•‣◦–]|\(?[0-9]{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|>{1,4})\s{1,10}")


def split_statements(text: str) -> list[str]:
    """The statements of a text in their order; empty for a text without words."""
    pieces = (piece for block in _blocks(text) for piece in _sentences(block))
    return [piece for piece in pieces if any(map(str.isalnum, piece))]


def _blocks(text: str) -> list[str]:
    """Blocks of text: one for each bullet, heading, `label: value` line and table row; wrapped lines are joined."""
    blocks: list[list[str]] = [[]]
    was_alone = False
    for line in text.splitlines():
        bare = _BULLET.sub("", line, count=1)
        row = bare.strip()
        is_heading = line.lstrip().startswith("#")
        is_alone = is_heading or not row or row.startswith("|") or PAIR.fullmatch(bare) is not None
        if is_alone or was_alone or bare != line:
            blocks.append([])
        blocks[-1].append(f"{row}:" if is_heading else row)
        was_alone = is_alone
    return [" ".join(lines) for lines in blocks]


_END = re.compile(r"[.!?…]{1,8}[\"'”’)\]*]{0,4}(?=\s|$)|[。！？｡]{1,8}[」』”’）]{0,4}|;(?=\s)|[؟۔।]{1,4}")


def _sentences(block: str) -> Iterator[str]:
    """The sentences of a block; a full stop after an abbreviation or an initial does not end one."""
    begin = 0
    for match in _END.finditer(block):
        before = block[max(begin, match.start() - 12) : match.start()].rpartition(" ")[2].lstrip("(\"'“[").lower()
        is_initial = len(before) == 1 and before.isalpha()
        if match[0] != "." or not (before in ABBREVIATIONS or is_initial):
            yield from textwrap.wrap(block[begin : match.end()].strip(), MAX_STATEMENT)
            begin = match.end()
    yield from textwrap.wrap(block[begin:].strip(), MAX_STATEMENT)


def makes_claim(text: str) -> bool:
    """Whether the text claims anything that could be right or wrong."""
    bare = without_courtesy(text)
    # `I am not sure, but …` claims what comes after it.
    last = re.split(r"\b(?:but|however|though)\b", bare, flags=re.IGNORECASE)[-1]
    is_remark = declines(last) or _REMARK.match(last) is not None
    is_claim = any(map(str.isalnum, bare)) and not is_remark and not is_question(text)
    return is_claim or _PROMISE.search(text) is not None


def is_question(text: str) -> bool:
    """Whether the text is a question, or a heading; not `Did you know that towels are free?`."""
    return text.rstrip(" \"'*_)”").endswith(("?", ":")) and not _TELLING.match(text)


def declines(text: str) -> bool:
    """Whether the text declines to answer: `I don't know`, `there is no information about that`."""
    return _DECLINING.search(text[:600].replace("’", "'")) is not None


def without_courtesy(text: str) -> str:
    """The statement without greetings, thanks, apologies and offers of help."""
    bare = _TELLING.sub("", text.replace("’", "'"))
    for _ in range(3):
        bare = _CLOSING.sub(" ", _OPENING.sub(" ", bare)).strip()
    return bare


def _pattern(name: str, before: str = "", after: str = "") -> re.Pattern[str]:
    return re.compile(f"{before}(?:{'|'.join(COURTESIES[name])}){after}", re.IGNORECASE)


_TELLING = _pattern("tellings", r"^\W*", r"\b")
_PROMISE = re.compile(
    r"\b(?:free(?! to\b)|complimentary|discounted|half-price|no extra charge|upgrade|waive|refund you|immediate refund)"
    r"\b",
    re.IGNORECASE,
)
"""`Enjoy your free towel!` claims something."""
_OPENING = _pattern("openings", r"^\W{0,5}", r"\s{0,2}(?:[,.!:;-]|$)")
_CLOSING = _pattern("closings", r"\b", r"\b\D{0,300}$")
"""Not `contact us before 8 pm`."""
_REMARK = _pattern("remarks", r"\W*", r"(?:\b|$)")
_DECLINING = _pattern("refusals", r"\b", r"\b")
