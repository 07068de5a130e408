"""Checks that what a model lists was said in the material.

A small model lists what stands nearest instead: the shape of the reply with its `...`, the question, the rules of the
prompt. A score must not rest on that, so such a reply is sent back, and is an error the second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from proctor.base.json_data import to_text
from proctor.judging.rule_judge.words import fold, word_key, word_weight

MIN_SHARED_WORDS = 0.5
"""The least share of a text's telling words that must be in the material; models put some things in other words."""
MAX_TERSE_WORDS = 3
"""An answer of no more telling words says the rest through its question: "Yes.", "42 days"."""
ECHO_LENGTH = 5
"""So many of our own words in a row, and no others of the user's, are an echo of the prompt."""
MAX_QUOTE = 120


@dataclass(frozen=True, slots=True)
class TakenFrom:
    """A check that a list has neither too few nor too many items, none twice, and each in the words of `source`."""

    field: str
    source: str
    """The text that the items are taken from."""
    also_allowed: str = ""
    """What completes them: an answer of one word is understood by its question. Repeating it alone is no item."""
    least: int = 0
    most: int = 100
    name: str = "the answer"
    """What `source` is called in the complaint."""

    def __call__(self, reply: Any) -> str | None:
        texts = [item if isinstance(item, str) else item.text for item in getattr(reply, self.field)]
        if not self.least <= len(texts) <= self.most:
            return f"{self.field} must have {self.least} to {self.most} entries, and it has {len(texts)}"
        return duplicate_complaint(self.field, texts) or self._foreign(texts)

    def _foreign(self, texts: Iterable[str]) -> str | None:
        for text in texts:
            if not is_taken_from(text, self.source, self.also_allowed):
                shown = to_text(" ".join(text.split()), MAX_QUOTE)
                return f"{self.field} has “{shown}”, which {self.name} does not say; keep to the words of {self.name}"
        return None


def max_statements(text: str) -> int:
    """How many statements a text can make at most: one for each telling word would be far too many already."""
    return max(3, min(100, len(_content_words(text))))


def duplicate_complaint(field: str, texts: Sequence[str]) -> str | None:
    """What is wrong with a list that says the same twice: it would count twice."""
    seen: set[str] = set()
    for text in texts:
        plain = " ".join(text.casefold().split())
        if plain in seen:
            return f"{field} has “{to_text(text.strip(), MAX_QUOTE)}” more than once; name each once"
        seen.add(plain)
    return None


def is_taken_from(text: str, source: str, also_allowed: str = "") -> bool:
    """Whether `text` can have been taken from `source`, where `also_allowed` may complete it."""
    if is_placeholder(text):
        return False
    own, other = _keys(_words(source)), _keys(_words(also_allowed))
    if _words(text) == _words(also_allowed) and f" {' '.join(_words(text))} " not in f" {' '.join(_words(source))} ":
        return False
    telling = [word_key(word) for word in _content_words(text) or _words(text)]
    if sum(word in own or word in other for word in telling) < MIN_SHARED_WORDS * len(telling):
        return False
    if not _numbers(text) <= _numbers(f"{source} {also_allowed}") | _spelled_numbers(f"{source} {also_allowed}"):
        return False
    return len(_content_words(source)) <= MAX_TERSE_WORDS or not own.isdisjoint(telling)


def is_placeholder(text: str) -> bool:
    """Whether there is no word in it: `...`, which stands in the shape of a reply, or nothing at all."""
    return not any(character.isalnum() for character in text)


def echoes(text: str, prompt: str, own: str = "") -> bool:
    """Whether `text` repeats `prompt`, which the model was to follow; words of `own`, the user's part, are no echo."""
    said, given = _words(text), f" {' '.join(_words(prompt))} "
    allowed = f" {' '.join(_words(own))} "
    run = min(ECHO_LENGTH, len(said))
    for start in range(len(said) - run + 1):
        words = f" {' '.join(said[start : start + run])} "
        if words in given and words not in allowed:
            return True
    return False


def shares_word(text: str, others: str) -> bool:
    """Whether two texts have a telling word in common."""
    return shared_words(text, others) > 0


def shared_words(text: str, others: str) -> int:
    """How many telling words of a text another one has too."""
    return len(_keys(_content_words(text)) & _keys(_words(others)))


def _content_words(text: str) -> list[str]:
    return [word for word in _words(text) if word_weight(word)]


@lru_cache(maxsize=16)
def _words(text: str) -> tuple[str, ...]:
    """The words of a text; the last few are remembered, since all items of a list are held against one source."""
    return tuple(_word().findall(fold(text).casefold()))


def _keys(words: Iterable[str]) -> set[str]:
    return {word_key(word) for word in words}


def _numbers(text: str) -> set[str]:
    """The numbers of a text, without separators and leading zeros; the number of an entry in a list is none."""
    figures = re.findall(r"\d+(?:[.,]\d+)*", re.sub(r"^\s*\d{1,2}[.)]\s", "", text))
    return {figure.replace(",", "").lstrip("0") for figure in figures}


def _spelled_numbers(text: str) -> set[str]:
    return {SPELLED_NUMBERS[word] for word in _words(text) if word in SPELLED_NUMBERS}


SPELLED_NUMBERS = {
    word: str(number)
    for number, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)
}


@cache
def _word() -> re.Pattern[str]:
    """Words; characters of scripts that put no spaces between words count as one each."""
    alone = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
    return re.compile(rf"[{alone}]|[^\W_{alone}]+")
