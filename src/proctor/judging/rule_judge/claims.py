"""Splits a text into statements, and tells claims from what claims nothing.

A text is cut into blocks (bullets, headings, `label: value` lines, table rows) and blocks into sentences; cutting at
every full stop would break abbreviations, initials and numbered lists. Greetings, thanks, offers, apologies, refusals,
remarks about the speaker and questions back are not claims: they neither pass nor fail anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_STATEMENT = 600
"""The most characters of a statement: text without a full stop is cut here, so that it stays fast to compare."""
_MAX_NESTING = 50
_ABBREVIATIONS = frozenset(
    """mr mrs ms dr prof st sr jr vs etc e.g i.e eg ie cf al approx inc ltd co corp no nos vol fig p pp art sec dept est
    jan feb mar apr jun jul aug sep sept oct nov dec a.m p.m u.s u.k ph.d gen col lt capt rev gov sen mt ft""".split()
)


def split_statements(text: str) -> list[str]:
    """The statements of a text in their order; empty for a text without words."""
    document = _json(text)
    if document is not None:
        return [entry for entry in _entries(document, "", 0) if _has_words(entry)]
    found = [piece for block in _blocks(text) for piece in _sentences(block) if _has_words(piece)]
    for index in range(len(found) - 2, -1, -1):
        if _BARE_REPLY.fullmatch(found[index]):
            found[index : index + 2] = [f"{found[index]} {found[index + 1]}"]  # `Yes. It is open.` is one statement
    return found


_BARE_REPLY = re.compile(r"\W*(?:yes|no|yeah|yep|nope)\W*", re.IGNORECASE)


def _json(text: str) -> Any:
    stripped = text.strip()
    if stripped[:1] not in ("{", "[") or stripped[-1:] not in ("}", "]"):
        return None
    try:
        return json.loads(stripped)
    except (ValueError, RecursionError):
        return None


def _entries(value: Any, name: str, depth: int) -> Iterator[str]:
    """One statement per value: "price total: 12" for `{"price": {"total": 12}}`."""
    if depth > _MAX_NESTING:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _entries(item, f"{name} {key.replace('_', ' ')}".strip(), depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _entries(item, name, depth + 1)
    else:
        text = value if isinstance(value, str) else json.dumps(value)
        yield f"{name}: {text[:MAX_STATEMENT]}" if name else text[:MAX_STATEMENT]


_BULLET = re.compile(r"^\s{0,40}(?:[-*+•‣◦–]|\(?[0-9]{1,3}[.)]|\(?[a-zA-Z][.)]|#{1,6}|>{1,4})\s{1,10}")
PAIR = re.compile(r"\s{0,40}(?:[-•*]\s)?\**[^\s:=|.!?][^:=|.!?]{0,40}\**\s?(?::\**|=)\s{1,10}\S.{0,200}")
"""A line such as `Price: 12` or `price = 12`."""


def _blocks(text: str) -> Iterator[str]:
    """Blocks of text: one for each bullet, heading, `label: value` line and table row; wrapped lines are joined."""
    lines: list[str] = []
    number = 0
    for line in text.splitlines():
        bare = _BULLET.sub("", line, count=1)
        counted = re.match(r"\s*\(?(\d+)", line) if bare != line else None
        if counted and int(counted[1]) not in (1, number + 1):
            bare = line  # `16. Let me know` starts with an answer, not with item 16
        number = int(counted[1]) if counted else number
        row = bare.strip()
        alone = bare != line or row.startswith("|") or bool(PAIR.fullmatch(bare))
        if alone or not row or row.startswith("```"):
            yield " ".join(lines)
            lines = []
        if row and not row.startswith("```"):
            is_heading = line.lstrip().startswith("#") and not row.endswith((":", ".", "!", "?"))
            lines.append(f"{row}:" if is_heading else row)
        if row.startswith("|") or PAIR.fullmatch(bare) or line.lstrip().startswith("#"):
            yield " ".join(lines)
            lines = []
    yield " ".join(lines)


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
    is_initial = len(word) == 1 and word.isalpha() and len(match[0]) == 1
    return (word in _ABBREVIATIONS or is_initial) and bool(block[match.end() : match.end() + 200].strip())


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


def makes_claim(text: str) -> bool:
    """Whether the text claims anything that could be right or wrong."""
    if text.rstrip(" \"'*_)”").endswith(("?", ":")):
        return False
    bare = without_courtesy(text)
    if not _has_words(bare) or _REMARK.fullmatch(bare.strip()):
        return False
    # `I am not sure, but …` claims what comes after it.
    last = re.split(r"\b(?:but|however|though)\b", bare, flags=re.IGNORECASE)[-1]
    return not declines(last) and not _SPEAKER.match(last.strip())


def declines(text: str) -> bool:
    """Whether the text declines to answer: `I don't know`, `there is no information about that`."""
    return _DECLINING.search(text[:600].replace("’", "'")) is not None


def without_courtesy(text: str) -> str:
    """The statement without greetings, thanks, apologies and offers of help."""
    bare = text.replace("’", "'")
    for _ in range(3):
        bare = _COURTESY.sub(" ", bare).strip()
    return bare


_COURTESY = re.compile(
    r"^\W{0,5}(?:(?:hi|hello|hey|dear|good (?:morning|afternoon|evening|day))(?: there| again)?"
    r"(?:,? (?:mr|mrs|ms|dr)\.? \w{1,20}|,? \w{1,20})?"
    r"|(?:many )?thanks?(?: you)?(?: so much| very much| a lot)?(?: for [^,.!]{1,80})?"
    r"|you(?:'re| are)(?: very| most)? welcome|(?:great|good|excellent|interesting) (?:question|point)"
    r"|(?:good|great) (?:news|luck)|congratulations|sure(?: thing)?|of course|certainly|absolutely"
    r"|no (?:problem|worries)"
    r"|my pleasure|happy to help(?: with [^,.!]{1,60})?|glad to help|i understand|i see|got it|understood|no rush"
    r"|(?:(?:i(?: am|'m)|we(?: are|'re)) )?(?:so |very |really |terribly )?sorry"
    r"(?: to hear that| about that| (?:for|about) [^,.!]{1,60})?"
    r"|(?:my |our )?apologies(?: for [^,.!]{1,60})?|(?:i|we) apologi[sz]e(?: for [^,.!]{1,60})?"
    r")\s{0,2}(?:[,.!:;-]|$)"
    r"|\b(?:please )?(?:let (?:me|us) know|feel free|don't hesitate|do not hesitate|get in touch|reach out"
    r"|contact (?:us|me)|just ask)\b.{0,300}$"
    r"|\b(?:if (?:you|there)\b[^.!?]{0,120}, )?(?:i|we)(?: am|'m| are|'re|'d be|'ll be| would be| will be)"
    r" (?:always |very |so |more than )?(?:happy|glad|delighted|pleased|here) to\b.{0,200}$"
    r"|\b(?:i|we)? ?hope (?:this|that|it|you|to)\b.{0,200}$"
    r"|\b(?:have|enjoy) (?:an?|your|the) (?:nice|great|good|lovely|wonderful|pleasant|rest|day|stay|trip|evening|visit"
    r"|weekend|flight)\b.{0,60}$"
    r"|\b(?:take care|best regards|kind regards|cheers|all the best|see you soon|safe travels)\b.{0,60}$"
    r"|^\W{0,5}(?:here (?:is|are|you go)|here's|below (?:is|are)|let me (?:help|check|see|explain|walk|show|look)"
    r"|(?:i|we)(?: can| will|'ll| would be able to|'d love to) (?:gladly |also )?(?:help|assist|explain|check|look))\b"
    r".{0,200}$",
    re.IGNORECASE,
)
"""Courtesies around an answer, up to the end of the sentence if the rest of it is a courtesy, too."""
_REMARK = re.compile(
    r"\W*(?:(?:yes|no|yeah|oh|ah|wow|well|haha|lol|ok|okay)\W{1,3})*(?:(?:that|it|this|they|those)"
    r"\s?(?:'s|'re| is| are| was| sounds?| seems?)"
    r"(?: (?:so|really|quite|very|pretty|such|a|an|too|definitely|certainly|absolutely|always|all))*"
    r" (?:cool|nice|great|true|good|awesome|amazing|interesting|right|fun|funny|lovely|fantastic|wonderful|bad|sad"
    r"|crazy|weird|neat|correct|impressive|terrible|awful|fine|ok|okay|best|thing|one|fact|idea|shame|pity))?\W*",
    re.IGNORECASE,
)
"""A remark about the conversation, such as `that's so cool`, or nothing but `yes`."""
_SPEAKER = re.compile(
    r"\W*(?:i|we)(?: am|'m) (?:just |only )?(?:an? )?(?:ai|assistant|virtual|language model|bot|chatbot|glad|happy"
    r"|sorry|afraid|pleased|looking into)\b"
    r"|\W*i (?:really |also |just |do )?(?:love|like|enjoy|hope|wish|feel|agree|appreciate"
    r"|understand|apologi[sz]e|wonder|prefer|hate)\b|\W*my (?:name is|favou?rite)\b",
    re.IGNORECASE,
)
"""Statements about the speaker, which no passage can support or contradict."""
_DECLINING = re.compile(
    r"\b(?:i|we)(?: am|'m| are|'re)?(?: really| honestly)?"
    r" (?:do not|don't|did not|didn't|cannot|can't|could not|couldn't|not|unable to|have no|am unable to)"
    r"(?: \w{1,12}){0,2}? "
    r"(?:know|sure|certain|answer|say|tell|find|determine|provide|help|access|information|idea|aware|do that)\b"
    r"|\b(?:as an ai|no information (?:is |was )?(?:available|provided|given|found|about|on)|not enough information"
    r"|(?:is|are|was|were) (?:unknown|unclear|not (?:known|clear|specified|mentioned|provided|stated))"
    r"|it depends|insufficient information|(?:outside|beyond) (?:my|the) (?:scope|knowledge)"
    r"|sorry, (?:but )?i (?:can|do|could)n?'?t)\b",
    re.IGNORECASE,
)
