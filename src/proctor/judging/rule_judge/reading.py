"""Reads a statement into typed tokens.

A token has a key that is the same for every way to write the same thing ("doesn't", "does not"; "1.5 hours",
"90 minutes") and a kind, which decides whether two different tokens fill the same slot. The list keeps the order of the
statement, since order carries the roles.

Numbers with units, money, dates, times of day and identifiers are values: one pattern per type is tried, the most
specific first. Values of one dimension are compared in its base unit. Comparing strings instead would fail "3 May 2025"
against "2025-05-03" and pass 70 euros for 70 dollars.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Literal

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.lexicon import MONEY


@dataclass(frozen=True, slots=True)
class Value:
    """A typed value in a text."""

    kind: Literal["number", "date", "clock", "id"]
    text: str
    start: int
    end: int
    amount: float = 0.0
    """Of a number: in the base unit of its dimension. Of a time of day: minutes since midnight."""
    unit: str = ""
    """Of a number: its dimension (`time`, `usd`), `ordinal`, or empty. Of a time of day: whether its half is known."""
    parts: tuple[int | None, ...] = ()
    """Of a date: year, month, day, weekday, as far as the text has them."""
    size: float = 1.0
    """Of a number: the size of its unit in the base unit."""

    @property
    def key(self) -> str:
        """The same for every way to write the same value."""
        return self.text.casefold() if self.kind == "id" else f"{self.amount:.10g} {self.unit} {self.parts}"


def same_value(claim: Value, source: Value) -> bool:
    """Whether the claim's value follows from the source's: it may be less exact (May 2024 for 3 May 2024)."""
    if claim.kind != source.kind or (claim.kind == "number" and claim.unit != source.unit):
        return False
    if claim.kind == "id":
        return claim.text.casefold() == source.text.casefold()
    if claim.kind == "date":
        return all(ours in (None, theirs) for ours, theirs in zip(claim.parts, source.parts, strict=True))
    if claim.kind == "number" and not claim.unit and any(map(_LABEL.fullmatch, (claim.text, source.text))):
        return claim.text == source.text
    return math.isclose(claim.amount, source.amount)


_LABEL = re.compile(r"0\d.*|\d+\.\d+0")
"""Digits that name something: room 0101, version 3.10."""
_GROUPED_BY_POINTS = re.compile(r"\D*\d{1,3}(?:\.\d{3})+\D*")
"""1.000 is a thousand in most of Europe."""


def conflicts(claim: Value, source: Value) -> bool:
    """Whether both cannot be true of the same thing: another amount, unit, date, time or identifier."""
    if claim.kind != source.kind or same_value(claim, source) or same_value(source, claim):
        return False
    if claim.kind == "id":
        return re.sub(r"\W", "", claim.key) != re.sub(r"\W", "", source.key)  # `A-12` may be written `A12`
    if claim.kind == "date":
        return any(a != b for a, b in zip(claim.parts, source.parts, strict=True) if None not in (a, b))
    if claim.kind == "clock":
        return claim.amount % 720 != source.amount % 720 or claim.unit == source.unit
    if claim.unit != source.unit:
        is_same_number = claim.amount == source.amount or claim.text.split()[0] == source.text.split()[0]
        return bool(claim.unit and source.unit) and is_same_number  # `2 weeks` and `2 months`
    ratio = claim.amount / source.amount if source.amount else 0.0
    if ratio in (1000, 0.001) and any(map(_GROUPED_BY_POINTS.fullmatch, (claim.text, source.text))):
        return False
    # 1,234,567 is 1.2 million, 10 miles are 16 km, and 100 m are 328 feet.
    digits = len(f"{claim.amount:.15g}".replace(".", "").strip("-0"))
    is_rounded = float(f"{source.amount:.{max(digits, 1)}g}") == claim.amount
    tolerance = 0.05 if is_rounded else 0.02 if claim.size != source.size else 0.0
    return not math.isclose(claim.amount, source.amount, rel_tol=tolerance)


TokenKind = Literal[
    "word", "name", "number", "date", "clock", "id", "negation", "modal", "quantifier", "limit", "condition",
    "relation", "period", "function", "mark",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    """One word or value of a statement."""

    text: str
    key: str
    kind: TokenKind
    value: Value | None = None
    article: str = field(default="", compare=False)
    """The article before it: articles are not tokens."""

    @property
    def is_content(self) -> bool:
        return self.kind not in ("function", "mark", "condition")


Tokens = tuple[Token, ...]


def matches(claim: Token, source: Token) -> bool:
    """Whether the claim's token says the same as the source's, or less."""
    if claim.value is not None and source.value is not None:
        return same_value(claim.value, source.value)
    return claim.key == source.key or (claim.key == "should" and source.key == "must")


def excludes(claim: Token, source: Token) -> bool:
    """Whether the two fill the same slot and cannot both be true; of names, whether they have no word in common."""
    if claim.value is not None and source.value is not None:
        return conflicts(claim.value, source.value)
    if claim.kind == source.kind == "name":
        return set(claim.key.split()).isdisjoint(source.key.split())
    if claim.kind == source.kind == "modal":
        return lexicon.MODALS[claim.key] > lexicon.MODALS[source.key]
    if claim.kind == source.kind == "quantifier":
        share, other = lexicon.QUANTIFIERS[claim.key], lexicon.QUANTIFIERS[source.key]
        return share >= other + 2 or (share < 0 < other)
    is_none = source.key == "none" and claim.kind == "number"
    return is_none or claim.kind == source.kind == "period" or lexicon.excludes(claim.key, source.key)


_FOLDED = str.maketrans("‘’ʼ´“”„«»º—", '\'\'\'\'"""""°-', "\xad\u200b\u200c\u200d\u2060\ufeff*`")


def fold(text: str) -> str:
    """The text without accents, invisible characters, typographic variants and the signs of Markdown."""
    text = unicodedata.normalize("NFKD", text.translate(_FOLDED)).replace("_", " ")
    return "".join(character for character in text if not unicodedata.combining(character))


_PHRASES = re.compile(rf"\b(?:{'|'.join(sorted(lexicon.PHRASES, key=len, reverse=True))})\b", re.IGNORECASE)
_WORDS = re.compile(r"\bper [^\W\d_]+|[^\W\d_]+|[,;:()]", re.IGNORECASE)


@lru_cache(maxsize=4096)
def read(text: str, names: frozenset[str] = frozenset()) -> Tokens:
    """The tokens of a statement. `names` are words that other sentences write with a capital."""
    text = fold(text)
    for pattern, plain in lexicon.SPELLINGS:
        text = pattern.sub(plain, text)
    text = _PHRASES.sub(lambda match: lexicon.PHRASES[match[0].lower()], text)
    tokens: list[Token] = []
    position = 0
    for value in [*find_values(text), None]:
        tokens += (_word(word) for word in _WORDS.findall(text[position : value.start if value else len(text)]))
        if value:
            tokens.append(Token(value.text, value.key, value.kind, value))
            position = value.end
    return tuple(_with_names(_with_keys(tokens), names))


_KEYS = dict.fromkeys(("is", "are", "am"), "be") | {"were": "was", "has": "have"}
_KINDS: tuple[tuple[TokenKind, Container[str]], ...] = (
    ("modal", lexicon.MODALS), ("quantifier", lexicon.QUANTIFIERS), ("limit", lexicon.LIMITS),
    ("condition", lexicon.CONDITIONS), ("relation", lexicon.RELATIONS), ("function", lexicon.FUNCTION_WORDS),
)  # fmt: skip


def _word(text: str) -> Token:
    word = text.lower()
    if not text[0].isalpha():
        return Token(text, text, "mark")
    if word.startswith("per "):
        return Token(text, word.removesuffix("s"), "period")
    if word in lexicon.NEGATIONS:
        return Token(text, "not", "negation")
    return Token(text, _KEYS.get(word, word), next((kind for kind, table in _KINDS if word in table), "word"))


def _with_keys(tokens: Sequence[Token]) -> list[Token]:
    """The tokens without articles and `do`, with keys: `did not open` is `not opened`, `in 1990` is `at 1990`."""
    found: list[Token] = []
    article, is_past = "", False
    for index, token in enumerate(tokens, 1):
        after = tokens[index : index + 1]
        if token.key in lexicon.ARTICLES and token.kind == "function":
            article = token.key
            continue
        if token.key in ("do", "does", "did"):
            is_past = token.key == "did"
            continue
        if token.kind == "word":
            key = lexicon.verb_key(token.key)
            token = replace(token, key=f"{key}+ed" if is_past and "+" not in key else key, article=article)
            is_past = False
        elif token.key in ("in", "on", "at") and after and after[0].kind in ("date", "clock"):
            token = replace(token, key="at")
        elif token.key == "be" and _is_amount_of_money(tokens, index):
            token = replace(token, key=lexicon.COST)
        found.append(token)
        article = ""
    return found


def _is_amount_of_money(tokens: Sequence[Token], index: int) -> bool:
    """Whether an amount of money comes next, perhaps after a word such as `only` or `about`."""
    rest = (tokens[place] for place in range(index, len(tokens)))
    value = next((each.value for each in rest if each.kind != "limit" and each.key != "about"), None)
    return value is not None and value.unit in MONEY


def _with_names(tokens: Sequence[Token], names: frozenset[str]) -> list[Token]:
    """Join runs of capitalized words to one name; at the start of a sentence only if it is a name elsewhere."""
    capital = [token.kind == "word" and token.text[:1].isupper() for token in tokens]
    start = next((index for index, token in enumerate(tokens) if token.kind != "mark"), 0)
    if capital and capital[start] and not any(capital[start + 1 : start + 2]):
        capital[start] = tokens[start].text.lower() in names
    found: list[Token] = []
    for is_name, pairs in groupby(zip(tokens, capital, strict=True), key=lambda pair: pair[1]):
        run = [token for token, _ in pairs]
        text = " ".join(token.text for token in run)
        found += [Token(text, text.lower(), "name", article=run[0].article)] if is_name else run
    return found


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """The words that texts write with a capital inside a sentence."""
    return frozenset(
        word.lower() for text in texts for word in re.findall(r"(?<=[a-z0-9,] )[A-Z][^\W\d_]+", fold(text))
    )


_VERSION = r"(?<![\w.])(?:v\d+(?:\.\d+)+|\d+(?:\.\d+){2,})(?:-\w+)?(?!\w)"
_CODE = r"(?<![\w.])\d+-[A-Z]{1,3}\b|(?<![\w-])[A-Za-z]\w*(?:[-_/]\w+)*"
_ID = re.compile(rf"https?://\S+[\w/]|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.]+\w|{_VERSION}|{_CODE}")
_SHORT_MONTHS = [name[:3] for name in lexicon.MONTHS]
_MONTH = "|".join(["sept?(?:ember)?", *(f"{m[:3]}(?:{m[3:]})?" for m in lexicon.MONTHS if m != "september")])
_DAY = r"\d{1,2}(?:st|nd|rd|th)?(?!\d)"
_YEAR = r"(?:1\d|20|21)\d\d(?![\d,.]\d|[\w-]|\s(?:percent|euros?|dollars?|people|homes|items))"
_DATE = re.compile(
    r"(?<![\w.-])(?P<y1>\d{4})-(?P<m1>\d{2})-(?P<d1>\d{2})(?!\d)(?!-\d)(?:T[\d:.]+Z?)?"
    rf"|\b(?P<m2>{_MONTH})\b\.?\s{{1,3}}(?P<d2>{_DAY})(?:\s?,?\s{{0,3}}(?P<y2>\d{{4}})(?!\d))?"
    rf"|(?<![\w.])(?P<d3>{_DAY})\s{{1,3}}(?:of\s)?(?P<m3>{_MONTH})\b\.?(?:\s?,?\s{{0,3}}(?P<y3>\d{{4}})(?!\d))?"
    rf"|\b(?P<m4>{_MONTH})\b\.?\s?,?\s{{1,3}}(?:of\s)?(?P<y4>\d{{4}})(?!\d)"
    rf"|(?<![\w'])(?P<m5>{'|'.join({*lexicon.MONTHS} - {'may', 'march'})}|(?-i:May|March))(?![\w'])"
    rf"|\b(?P<w6>{'|'.join(lexicon.WEEKDAYS)})s?\b"
    rf"|(?:\b(?:in|since|until|during|between|from|by|before|after)\s|\()(?P<y7>{_YEAR})",
    re.IGNORECASE,
)
"""Groups are named after what they hold: year, month, day, weekday. `5/6/2024` is left out: it may be May or June."""
_CLOCK = re.compile(
    r"(?<![\w.:])(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::\d{2})?(?![\w:])(?:\s?(?P<half>[ap])\.?m\b\.?)?"
    r"|\s?(?P<half2>[ap])\.?m\b\.?)",
    re.IGNORECASE,
)
_SPELLED = "|".join(sorted(lexicon.SPELLED, key=len, reverse=True))
_NUMBER = re.compile(
    r"(?<![\w.])(?:(?<![\w)])(?P<minus>[-−]))?"
    r"(?P<code>(?:EUR|USD|GBP|CHF|JPY|INR|SEK|NOK|DKK|PLN|CZK|CAD|AUD|CNY|S?Fr\.)\s|[$€£¥₹]\s?)?"
    r"(?:(?P<digits>\d{1,3}(?:[,\u202f\u2009' ](?=\d{3}(?!\d))\d{3}){1,6}(?:\.\d+)?|\d+(?:\.\d+)?)(?!\d)(?!\.\d)"
    rf"(?P<rank>(?:st|nd|rd|th)\b)?|(?<![\w'-])(?P<words>(?:{_SPELLED})(?:-(?:{_SPELLED}))?)(?![\w']))"
    rf"(?P<scales>(?:[\s-]?(?:{'|'.join(lexicon.SCALES)})\b)*)"
    r"(?(code)|(?:\s?(?:°|degrees?)\s?(?P<degree>celsius|fahrenheit|[CF])\b|\s?(?P<sign>[%€£$¥₹])"
    rf"|[\s-]?(?P<unit>{'|'.join(sorted(map(re.escape, lexicon.UNITS), key=len, reverse=True))})(?!\w))?)",
    re.IGNORECASE,
)


def find_values(text: str) -> list[Value]:
    """The typed values of a text in order, without overlaps."""
    found: list[Value] = []
    taken: set[int] = set()
    for reader in (_dates, _clocks, _ids, _numbers):
        for value in reader(text):
            if taken.isdisjoint(range(value.start, value.end)):
                found.append(value)
                taken.update(range(value.start, value.end))
    return sorted(found, key=lambda value: value.start)


def _ids(text: str) -> Iterator[Value]:
    # Without a digit or an address, it is a word.
    return (Value("id", match[0], *match.span()) for match in _ID.finditer(text) if re.search(r"\d|@|://", match[0]))


def _dates(text: str) -> Iterator[Value]:
    for match in _DATE.finditer(text):
        fields = {name[0]: word.lower() for name, word in match.groupdict().items() if word is not None}
        year, day = (int(re.sub(r"\D", "", fields[name])) if name in fields else None for name in "yd")
        name = fields.get("m", "")
        month = int(name) if name.isdigit() else _SHORT_MONTHS.index(name[:3]) + 1 if name else None
        weekday = lexicon.WEEKDAYS.index(fields["w"]) if "w" in fields else None
        start = match.start("y7") if match["y7"] else match.start()
        if 1 <= (month or 1) <= 12 and 1 <= (day or 1) <= 31:
            yield Value("date", text[start : match.end()], start, match.end(), parts=(year, month, day, weekday))


def _clocks(text: str) -> Iterator[Value]:
    for match in _CLOCK.finditer(text):
        half = (match["half"] or match["half2"] or "").lower()
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        unit = "half of the day unknown" if not half and hour <= 12 and not match[0].startswith("0") else ""
        hour = hour % 12 + (12 if half == "p" else 0) if half else hour
        if hour <= 24 and minute <= 59:
            yield Value("clock", match[0], *match.span(), hour % 24 * 60.0 + minute, unit)


def _numbers(text: str) -> Iterator[Value]:
    for match in _NUMBER.finditer(text):
        fields = {name: (word or "").lower().strip(" .") for name, word in match.groupdict().items()}
        words = [lexicon.SPELLED[word] for word in fields["words"].split("-") if word]
        amount = sum(words) if words else float(re.sub(r"[,\u202f\u2009' ]", "", fields["digits"]))
        amount *= math.prod(lexicon.SCALES[scale] for scale in re.findall(r"\w+", fields["scales"]))
        amount = -amount if fields["minus"] else amount
        degree = {"c": "celsius", "f": "fahrenheit"}.get(fields["degree"][:1])
        unit, size = lexicon.UNITS.get(fields["code"] or fields["sign"] or degree or fields["unit"], ("", 1.0))
        unit = "ordinal" if fields["rank"] else unit
        yield Value("number", match[0].strip(), *match.span(), amount * size, unit, size=size)
