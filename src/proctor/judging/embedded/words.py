"""Words made comparable: folded letters, stems, synonyms, and how much a missing one tells."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from proctor.judging.embedded import lexicon
from proctor.judging.embedded.ordinary_words import ordinary_stems
from proctor.judging.embedded.stemming import stem

GRAMMAR_WEIGHT = 0.0
COMMON_WEIGHT = 0.35
PLAIN_WEIGHT = 1.0
SPECIFIC_WEIGHT = 1.5
"""What a word's absence costs: grammar nothing, everyday words little, names and numbers most."""

_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_QUOTES = {ord(mark): plain for marks, plain in (("‘’ʼ`´", "'"), ("“”„«»", '"'), ("–—‐‑‒", "-")) for mark in marks}
_COUNTRIES = (
    (r"\b(?:u\.s\.a?\.?|united states(?: of america)?|usa)(?![a-z])", " usa "),
    (r"\b(?:u\.k\.?|united kingdom|great britain)(?![a-z])", " uk "),
)


def fold(text: str) -> str:
    """The text without accents, invisible characters and typographic variants; capitals are kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text.translate(_QUOTES).translate(_INVISIBLE))
        text = "".join(character for character in text if not unicodedata.combining(character))
    for pattern, name in _countries():
        text = pattern.sub(name, text)
    return re.sub(r"\b(the|in) US\b|\bU\.? S\.", r"\1 usa", text)


@cache
def _countries() -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), name) for pattern, name in _COUNTRIES]


@lru_cache(maxsize=1 << 16)
def key(word: str) -> str:
    """What two words share when they say the same: their stem, or the word that stands for their synonyms."""
    bare = word.lower().removesuffix("'s")
    return _leaders().get(stem(bare), stem(bare))


@cache
def _leaders() -> dict[str, str]:
    return {stem(word): stem(leader) for word, leader in lexicon.synonyms().items()}


@cache
def opposites() -> dict[str, frozenset[str]]:
    """The keys that mean the opposite of a key."""
    found: dict[str, set[str]] = {}
    for word, others in lexicon.antonyms().items():
        found.setdefault(key(word), set()).update(key(other) for other in others)
    return {word: frozenset(others - {word}) for word, others in found.items()}


@cache
def _common_stems() -> frozenset[str]:
    return frozenset(stem(word) for word in lexicon.COMMON)


@lru_cache(maxsize=1 << 16)
def weight(word: str) -> float:
    """How much the word tells, by its kind; `word` is in small letters."""
    word = word.partition("'")[0] or word
    if word in lexicon.GRAMMAR or word in lexicon.FILLERS or word in lexicon.NEGATIONS:
        return GRAMMAR_WEIGHT
    if word in lexicon.COMMON or stem(word) in _common_stems():
        return COMMON_WEIGHT
    return PLAIN_WEIGHT


@lru_cache(maxsize=1 << 16)
def ordinary(word: str) -> bool:
    """Whether it is an English word by its look; what is not may be a name even in a text without capitals."""
    if weight(word) < PLAIN_WEIGHT or len(word) < 3 or word.endswith(lexicon.ORDINARY_ENDINGS):
        return True
    return stem(word) in ordinary_stems()
