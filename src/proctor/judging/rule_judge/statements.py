"""Splits a text into statements: sentences, bullets, table rows, the entries of a JSON document.

How it works: JSON becomes one statement per value with the path of its keys. Other text is cut into blocks (bullets,
headings, `key: value` lines, table rows with their headers), and blocks into sentences. Cutting at every full stop
would break abbreviations, initials and numbered lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from proctor.judging.rule_judge.quantities import units

MAX_STATEMENT = 600
"""The most characters of a statement: text without a full stop is cut here, so that it stays fast to compare."""

_ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof st sr jr vs etc e.g i.e eg ie cf al approx inc ltd co corp no nos vol fig p pp art sec dept est
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun a.m p.m u.s u.k u.n ph.d gen col lt sgt
    capt rev hon gov sen rep mt ft ave blvd rd min max ca c b d s""".split()
)
_MAX_NESTING = 50
_WRAPPERS = frozenset("result results data response output".split())
"""Keys that tools put around their results, which say nothing about them."""
_MAX_NAME = 40
"""The most characters of the name of a record."""


def split_statements(text: str) -> list[str]:
    """The statements of a text in their order; empty for a text without words."""
    documents = _json_statements(text)
    if documents is not None:
        return documents
    found = [piece for block in _blocks(text) for piece in _sentences(block) if _has_words(piece)]
    for index in range(len(found) - 2, -1, -1):
        if _BARE_REPLY.fullmatch(found[index]):
            found[index : index + 2] = [f"{found[index]} {found[index + 1]}"]  # `Yes. It is open.` is one statement
    return found


_BARE_REPLY = re.compile(r"\W*(?:yes|no|yeah|yep|nope)\W*", re.IGNORECASE)


def is_data(text: str) -> bool:
    """Whether the text is data without sentences: JSON, a table, or lines such as `price: 12`."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = (line.strip().startswith("|") or bool(_PAIR.fullmatch(line)) for line in lines)
    return text.lstrip()[:1] in ("{", "[") or (len(lines) > 1 and all(rows))


def _json_statements(text: str) -> list[str] | None:
    stripped = text.strip()
    if stripped[:1] not in ("{", "[") or stripped[-1:] not in ("}", "]"):
        return None
    try:
        document = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    return [entry for entry in _entries(document, "", 0) if _has_words(entry)]


def _entries(value: Any, name: str, depth: int) -> Iterator[str]:
    """One statement per value: "price total: 12" for `{"price": {"total": 12}}`; list items have the list's name."""
    if depth > _MAX_NESTING:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            label = "" if key in _WRAPPERS and isinstance(item, (dict, list)) else _key_words(key)
            yield from _entries(item, f"{name} {label}".strip(), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item, f"{name} {_identity(item)}".strip(), depth + 1)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        for piece in split_statements(text) if isinstance(value, str) and len(text) > MAX_STATEMENT else [text]:
            words = name.split()
            if words and words[-1] in units() and isinstance(value, (int, float)):
                yield f"{' '.join(words[:-1])}: {piece} {words[-1]}"  # `term_months: 36` is a term of 36 months
            else:
                yield f"{name}: {piece}" if name else piece


def _identity(item: Any) -> str:
    """The name of a record in a list: its first short text; empty if it has none."""
    found = list(item.values()) if isinstance(item, dict) else []
    found += [text for part in found if isinstance(part, dict) for text in part.values()]
    return next((text for text in found if isinstance(text, str) and 0 < len(text) <= _MAX_NAME), "")


def _key_words(key: str) -> str:
    """A key as words: `orderTotal` and `order_total` are "order Total" and "order total"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key.replace("_", " ").replace("-", " "))


_BULLET = re.compile(r"^\s{0,40}(?:[-*+•‣◦–]|\(?[0-9]{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|>{1,4})\s{1,10}")


_PAIR = re.compile(r"\s{0,40}\**[^\s:=|.!?][^:=|.!?]{0,40}\**\s?(?::\**|=)\s{1,10}\S.{0,200}")
"""A line such as `Price: 12` or `price = 12`."""


def _blocks(text: str) -> Iterator[str]:
    """Blocks of text: one for each bullet, heading, `key: value` line and table row; wrapped lines are joined."""
    lines: list[str] = []
    header: list[str] = []
    number = 0
    for line in text.splitlines():
        bare = _BULLET.sub("", line, count=1)
        counted = re.match(r"\s*\(?(\d+)", line) if bare != line else None
        if counted and int(counted[1]) not in (1, number + 1):
            bare = line  # `16. Let me know` starts with an answer, not with item 16
        number = int(counted[1]) if counted else number
        row = bare.strip()
        heading = bare != line and line.lstrip().startswith("#")
        is_row = row.startswith("|") and row.endswith("|") and len(row) > 1
        alone = bare != line or is_row or bool(_PAIR.fullmatch(bare))
        if alone or not row or row.startswith("```"):
            yield " ".join(lines)
            lines = []
        if is_row:
            header, row = _row([cell.strip() for cell in row.strip("|").split("|")], header)
        else:
            header = []
        if row and not row.startswith("```"):
            lines.append(f"{row}:" if heading and not row.endswith((":", ".", "!", "?")) else row)
        if heading or is_row or _PAIR.fullmatch(bare):
            yield " ".join(lines)
            lines = []
    yield " ".join(lines)


def _row(cells: list[str], header: list[str]) -> tuple[list[str], str]:
    """The header for the next rows, and the row as text: every cell with the names of its row and column."""
    if not any(cell.strip(" -:") for cell in cells):
        return header, ""
    if not header:
        return cells, ", ".join(cells) + ":"
    row = cells[0] if any(map(str.isalpha, cells[0])) else ""  # otherwise the first cell is a value
    first = int(bool(row))
    labelled = [f"{row} {name} {cell}" for name, cell in zip(header[first:], cells[first:], strict=False) if cell]
    return header, ", ".join(labelled) or cells[0]


_END = re.compile(r"[.!?…]{1,8}[\"'”’)\]*]{0,4}(?=\s|$)|[。！？｡]{1,8}[」』”’）]{0,4}|;(?=\s)|[؟۔।]{1,4}")


def _sentences(block: str) -> Iterator[str]:
    begin = 0
    for match in _END.finditer(block):
        if match[0][0] == "." and _continues(block, begin, match):
            continue
        yield from _bounded(block[begin : match.end()])
        begin = match.end()
    yield from _bounded(block[begin:])


def _continues(block: str, begin: int, match: re.Match[str]) -> bool:
    """Whether the sentence goes on after this full stop, which follows an abbreviation or an initial."""
    before = block[max(begin, match.start() - 12) : match.start()].rsplit(None, 1)
    word = before[-1].lstrip("(\"'“[").lower() if before else ""
    if word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and len(match[0]) == 1):
        return bool(block[match.end() :].strip()) if len(block) - match.end() < 200 else True
    return False


def _bounded(piece: str) -> Iterator[str]:
    piece = piece.strip()
    while len(piece) > MAX_STATEMENT:
        cut = piece.rfind(" ", MAX_STATEMENT // 2, MAX_STATEMENT)
        cut = cut if cut > 0 else MAX_STATEMENT
        yield piece[:cut].strip()
        piece = piece[cut : cut + MAX_STATEMENT * 64].strip() + piece[cut + MAX_STATEMENT * 64 :]
    if piece:
        yield piece


def _has_words(piece: str) -> bool:
    return any(character.isalnum() for character in piece)


def without_courtesy(text: str) -> str:
    """The statement without greetings, thanks, apologies and offers of help."""
    bare = text.replace("’", "'")
    for _ in range(2):
        bare = _COURTESY.sub(" ", bare).strip()
    return bare


_COURTESY = re.compile(
    r"^\W{0,5}(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day))(?: there| again)?(?:,? \w{1,20})?"
    r"|(?:many )?thanks?(?: you)?(?: so much| very much| a lot)?(?: for [^,.!]{1,80})?"
    r"|you(?:'re| are)(?: very| most)? welcome|(?:great|good|excellent|interesting) (?:question|point)"
    r"|good (?:news|luck)|congratulations|sure(?: thing)?|of course|certainly|absolutely|no (?:problem|worries)"
    r"|my pleasure|(?:i(?: am|'m) )?(?:so |very )?sorry(?: to hear that| about that| for [^,.!]{1,60})?"
    r")\s{0,2}(?:[,.!:;-]|$)"
    r"|\b(?:please )?(?:let me know|feel free|don't hesitate|do not hesitate|get in touch|reach out"
    r"|contact (?:us|me))\b.{0,300}$"
    r"|\b(?:if (?:you|there)\b[^.!?]{0,120}, )?(?:i|we)(?: am|'m| are|'re|'d be|'ll be| would be| will be)"
    r" (?:always |very |so |more than )?(?:happy|glad|delighted|pleased|here) to\b.{0,200}$"
    r"|\b(?:i )?hope (?:this|that|it|you)\b.{0,200}$"
    r"|\b(?:have|enjoy) (?:a|your) (?:nice|great|good|lovely|wonderful|rest)\b.{0,60}$"
    r"|\b(?:take care|best regards|kind regards|cheers)\b.{0,60}$"
    r"|^\W{0,5}(?:here (?:is|are|you go)|here's|below (?:is|are)|let me (?:help|check|see|explain|walk|show)"
    r"|(?:i|we)(?: can| will|'ll| would be able to) (?:gladly )?(?:help|assist|explain|check|look))\b.{0,200}$",
    re.IGNORECASE,
)
"""Courtesies around an answer, up to the end of the sentence if the rest of it is a courtesy, too."""
