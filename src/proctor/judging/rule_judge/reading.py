"""Reads a statement into typed tokens.

A token has a key that is the same for every way to write the same thing ("doesn't", "does not"; "1.5 hours",
"90 minutes") and a kind, which decides whether two different tokens fill the same slot. The list keeps the order of the
statement, since order carries the roles.
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
_KINDS: tuple[tuple[TokenKind, Any], ...] = (
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
    for token, *after in (tokens[index:] for index in range(len(tokens))):
        value = next((each.value for each in after if each.kind != "limit" and each.key != "about"), None)
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
        elif token.key == "until" and value:
            token = replace(token, text="till", key="till", kind="function")  # a time, not a condition
        elif token.key == "be" and value and value.unit in MONEY:
            token = replace(token, key=lexicon.COST)
        found.append(token)
        article = ""
    return found


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
