"""Reads a statement into typed tokens.

A token has a key that is the same for every way to write the same thing ("doesn't", "does not"; "1.5 hours",
"90 minutes") and a kind, which decides whether two different tokens fill the same slot. The list keeps the order of the
statement, since order carries the roles. Each `_with_…` function is one step that takes tokens and returns tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal

from proctor.judging.rule_judge import lexicon
from proctor.judging.rule_judge.values import MONEY, Value, conflicts, find_values, same_value

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
    if claim.key == "should" and source.key == "must":
        return True
    return claim.key == source.key


def excludes(claim: Token, source: Token) -> bool:
    """Whether the two fill the same slot and cannot both be true; of names, whether they have no word in common."""
    if claim.value is not None and source.value is not None:
        return conflicts(claim.value, source.value)
    if claim.kind == "quantifier" and source.key == "1 ":  # `all of your ships` for `one of your ships`
        return lexicon.QUANTIFIERS[claim.key] in (-1, 6)
    if source.key == "none" and claim.kind == "number":
        return True
    if claim.kind == source.kind == "name":
        return set(claim.key.split()).isdisjoint(source.key.split())
    if claim.kind == source.kind == "modal" and source.text:  # that of a command has no text
        return lexicon.MODALS[claim.key] > lexicon.MODALS[source.key]
    if claim.kind == source.kind == "quantifier":
        share, other = lexicon.QUANTIFIERS[claim.key], lexicon.QUANTIFIERS[source.key]
        return share >= other + 2 or (share < 0 < other)
    return claim.kind == source.kind == "period" or lexicon.excludes(claim.key, source.key)


_FOLDED = {
    ord(mark): plain for marks, plain in (("‘’ʼ´", "'"), ("“”„«»", '"'), ("—", " - "), ("º", "°")) for mark in marks
}
_FOLDED |= dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, ord("*"), ord("`")], "")


def fold(text: str) -> str:
    """The text without accents, invisible characters, typographic variants and the signs of Markdown."""
    text = unicodedata.normalize("NFKD", text.translate(_FOLDED)).replace("_", " ")
    return "".join(character for character in text if not unicodedata.combining(character))


_SPELLINGS = (
    (r"^\W*(?:yes|yeah|yep)\b[\s,.!:;-]+(?:(?:and|but|so)\s)?", ""),
    (r"^\W*(?:no|not yet|unfortunately not|sadly not|i'm afraid not)\s?[,.!:;-]+\s*", ""),
    (r"^\W*(?:well|oh|correct|right|exactly|indeed)\s?[,.!:;-]+\s*", ""),
    (r"^\W*i(?:'d say| think)(?: that)?\s", ""),
    (r"^\W*well\s(?=(?:the|a|an|it|they|he|she|in|on|by)\b)", ""),
    (r"^\W*\d+(?:\.\d+)+\.?\s+(?=(?-i:[A-Z][a-z]))", ""),  # `7.2 The customer may …`
    (r",\s?while\b", ", whereas"),
    (r"(?<=\d)\s?(k?)m2\b", r" sq\1m"),
    (r"(?<=\d)\s?m3\b", " cbm"),
    (r"\bcan't\b", "can not"),
    (r"\bwon't\b", "will not"),
    (r"(?<=[a-z])\s?n't\b", " not"),
    (r"\b(it|that|there|he|she|what|who|here)\s?'s\b", r"\1 is"),
    (r"'re\b", " are"),
    (r"'ll\b", " will"),
    (r"'ve\b", " have"),
    (r"(?<=[a-z]{3}[nlrt])is(?=(?:e|es|ed|ing|ation|ations)\b)", "iz"),  # `organised`, `modernisation`
    (r"\bunited states(?: of america)?\b|(?-i:\bU\.\s?S\.(?:\s?A\.)?|\bUS\b)|(?<=\bthe )us\b", "USA"),
    (r"(?<=\d)\s?[–-]\s?(?=\d+(?:\.\d+)?\s?(?:%|°|[a-z]))|(?<=\d)\s?–\s?(?=\d)", " to "),
)
"""Openings, numbers of paragraphs and spellings, with what they are read as."""
_PATTERNS = [(re.compile(pattern, re.IGNORECASE), plain) for pattern, plain in _SPELLINGS]
_PHRASES = re.compile(rf"\b(?:{'|'.join(sorted(lexicon.PHRASES, key=len, reverse=True))})\b", re.IGNORECASE)
_WORDS = re.compile(r"[^\W\d_]+|[,;:()]")


@lru_cache(maxsize=4096)
def read(text: str, names: frozenset[str] = frozenset()) -> Tokens:
    """The tokens of a statement. `names` are words that other sentences write with a capital."""
    text = fold(text)
    for pattern, plain in _PATTERNS:
        text = pattern.sub(plain, text)
    text = _PHRASES.sub(lambda match: lexicon.PHRASES[match[0].lower()], text)
    tokens: list[Token] = []
    position = 0
    for value in [*find_values(text), None]:
        tokens += (_word(word) for word in _WORDS.findall(text[position : value.start if value else len(text)]))
        if value:
            tokens.append(Token(value.text, _value_key(value), value.kind, value))
            position = value.end
    return tuple(_with_complements(_with_names(_with_verbs(_with_periods(tokens)), names)))


def _value_key(value: Value) -> str:
    if value.kind == "id":
        return value.text.casefold()
    return f"{value.base:.10g} {value.unit}" if value.kind in ("number", "clock") else str(value.parts)


_KEYS = dict.fromkeys(("is", "are", "am"), "be") | {"were": "was", "has": "have"}
_KINDS: tuple[tuple[TokenKind, Any], ...] = (
    ("modal", lexicon.MODALS), ("quantifier", lexicon.QUANTIFIERS), ("limit", lexicon.LIMITS),
    ("condition", lexicon.CONDITIONS), ("relation", lexicon.RELATIONS), ("function", lexicon.FUNCTION_WORDS),
)  # fmt: skip


def _word(text: str) -> Token:
    word = text.lower()
    if not text[0].isalpha():
        return Token(text, text, "mark")
    if word in lexicon.NEGATIONS:
        return Token(text, "not", "negation")
    return Token(text, _KEYS.get(word, word), next((kind for kind, table in _KINDS if word in table), "word"))


def _with_periods(tokens: Sequence[Token]) -> list[Token]:
    """Read `per day` and `5 euros a day` as periods; make articles a part of the next token."""
    found: list[Token] = []
    article = ""
    for index, token in enumerate(tokens):
        word, before = token.text.lower(), tokens[index - 1].text.lower() if index else ""
        unit = word.removesuffix("s")
        is_counted = before in ("a", "an") and any(each.kind == "number" for each in found[-5:]) and word != "second"
        if (before == "per" and token.kind == "word") or (unit in lexicon.PERIODS and is_counted):
            if before == "per":
                found.pop()
            found.append(Token(f"{before} {word}", f"per {unit}", "period"))
        elif word in lexicon.ARTICLES and token.kind == "function":
            article = word
            continue
        else:
            found.append(replace(token, article=article) if article else token)
        article = ""
    return found


def _with_verbs(tokens: Sequence[Token]) -> list[Token]:
    """Give words their keys: `did not open` is `not opened`, `is 6 euros` is `costs …`, `in 1990` is `at 1990`."""
    found: list[Token] = []
    is_past = False
    for index, token in enumerate(tokens):
        after = tokens[index + 1 :]
        following = next((each for each in after if each.kind != "limit" and each.key != "about"), token)
        if token.key in ("do", "does", "did") and token.kind == "function":
            is_past = token.key == "did"
            continue
        if token.key == "had" and after and "+ed" in lexicon.verb_key(after[0].key):
            continue  # `had flooded` is `flooded`
        if token.kind == "word":
            key = lexicon.verb_key(token.key)
            token = replace(token, key=f"{key}+ed" if is_past and "+" not in key else key)
            is_past = False
        elif token.key in ("in", "on", "at") and after and after[0].kind in ("date", "clock"):
            token = replace(token, key="at")
        elif token.key == "until" and following.kind in ("date", "clock", "number"):
            token = replace(token, text="till", key="till", kind="function")  # a time, not a condition
        elif token.key == "be" and following.value is not None and following.value.unit in MONEY:
            token = replace(token, key=lexicon.COST)
        found.append(token)
    return found


def _with_names(tokens: Sequence[Token], names: frozenset[str]) -> list[Token]:
    """Join runs of capitalized words to one name; at the start of a sentence only if it is a name elsewhere."""
    capital = [token.kind == "word" and token.text[:1].isupper() for token in tokens]
    start = next((index for index, token in enumerate(tokens) if token.kind != "mark"), 0)
    is_command = any(token.key in lexicon.VERBS for token in tokens[start : start + 1])  # `Set TOKEN in …`
    if capital and capital[start] and (is_command or not any(capital[start + 1 : start + 2])):
        capital[start] = tokens[start].text.lower() in names
    found: list[Token] = []
    for is_name, pairs in groupby(zip(tokens, capital, strict=True), key=lambda pair: pair[1]):
        run = [token for token, _ in pairs]
        text = " ".join(token.text for token in run)
        found += [Token(text, text.lower(), "name", article=run[0].article)] if is_name else run
    return found


def _with_complements(tokens: Sequence[Token]) -> list[Token]:
    """Read "closed" as "not open", and drop a double negation such as "not closed"."""
    found: list[Token] = []
    for token in tokens:
        opposite = lexicon.COMPLEMENTS.get(token.text.lower()) if token.kind == "word" else None
        if opposite is not None:
            if found and found[-1].kind == "negation":
                found.pop()
            else:
                found.append(Token(token.text, "not", "negation"))
            token = Token(token.text, lexicon.verb_key(opposite), "word", article=token.article)
        found.append(token)
    return found


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """The words that texts write with a capital inside a sentence."""
    return frozenset(
        word.lower() for text in texts for word in re.findall(r"(?<=[a-z0-9,] )[A-Z][^\W\d_]+", fold(text))
    )
