"""Checks that the items a model lists are from the material.

Small models sometimes copy the schema of the reply with its `...`, the question, or the rules of the prompt instead. A
score must not be based on that, so such a reply is sent back, and is an error the second time. Most content words of an
item must be in the material; an exact comparison would refuse items in slightly other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from proctor.base.json_data import to_text
from proctor.judging.rule_judge.lexicon import FUNCTION_WORDS, stem
from proctor.judging.rule_judge.reading import fold

MIN_SHARED_WORDS = 0.5
"""The least share of an item's content words that must be in the material; models rephrase a little."""
MAX_TERSE_WORDS = 3
"""The most content words of an answer that is only understood with its question: "Yes.", "42 days"."""
ECHO_LENGTH = 5
"""This many words of the prompt in a row, if the user's text does not have them, are an echo of the prompt."""
MAX_QUOTE = 120


@dataclass(frozen=True, slots=True)
class TakenFrom:
    """A check that a list has the right number of items, no duplicates, and only items in the words of `source`."""

    field: str
    source: str
    """The text that the items are taken from."""
    also_allowed: str = ""
    """Another text that items may use words of, such as the question; repeating only this text is refused."""
    least: int = 0
    most: int = 100
    name: str = "the answer"
    """The name of `source` in the complaint."""

    def __call__(self, reply: Any) -> str | None:
        texts = [item if isinstance(item, str) else item.text for item in getattr(reply, self.field)]
        if not self.least <= len(texts) <= self.most:
            return f"{self.field} must have {self.least} to {self.most} entries; it has {len(texts)}"
        return duplicate_complaint(self.field, texts) or self._source_complaint(texts)

    def _source_complaint(self, texts: Iterable[str]) -> str | None:
        for text in texts:
            if not is_taken_from(text, self.source, self.also_allowed):
                quote = to_text(" ".join(text.split()), MAX_QUOTE)
                return f"{self.field} has “{quote}”, which {self.name} does not say; keep to the words of {self.name}"
        return None


def max_statements(text: str) -> int:
    """The most statements that a text can make: one per content word, which is generous."""
    return max(3, min(100, len(_content_words(text))))


def duplicate_complaint(field: str, texts: Sequence[str]) -> str | None:
    """What is wrong with a list that has an item twice, which would count twice; `None` if there is none."""
    seen: set[str] = set()
    for text in texts:
        plain = " ".join(text.casefold().split())
        if plain in seen:
            return f"{field} has “{to_text(text.strip(), MAX_QUOTE)}” more than once; list each item once"
        seen.add(plain)
    return None


def is_taken_from(text: str, source: str, also_allowed: str = "") -> bool:
    """Whether `text` may be from `source`; it may also use words of `also_allowed`, but not only these."""
    if is_placeholder(text):
        return False
    own, other = _keys(_words(source)), _keys(_words(also_allowed))
    if _words(text) == _words(also_allowed) and f" {' '.join(_words(text))} " not in f" {' '.join(_words(source))} ":
        return False
    content = [stem(word) for word in _content_words(text) or _words(text)]
    if sum(word in own or word in other for word in content) < MIN_SHARED_WORDS * len(content):
        return False
    if not _numbers(text) <= _numbers(f"{source} {also_allowed}") | _spelled_numbers(f"{source} {also_allowed}"):
        return False
    return len(_content_words(source)) <= MAX_TERSE_WORDS or not own.isdisjoint(content)


def is_placeholder(text: str) -> bool:
    """Whether the text has no word, such as the `...` of a schema."""
    return not any(character.isalnum() for character in text)


def echoes(text: str, prompt: str, own: str = "") -> bool:
    """Whether `text` repeats the prompt; words of `own`, the user's part of it, may be repeated."""
    text_words, prompt_words = _words(text), f" {' '.join(_words(prompt))} "
    allowed = f" {' '.join(_words(own))} "
    run = min(ECHO_LENGTH, len(text_words))
    for start in range(len(text_words) - run + 1):
        words = f" {' '.join(text_words[start : start + run])} "
        if words in prompt_words and words not in allowed:
            return True
    return False


def shares_word(text: str, others: str) -> bool:
    """Whether two texts share a content word."""
    return shared_words(text, others) > 0


def shared_words(text: str, others: str) -> int:
    """How many content words of `text` are also in `others`."""
    return len(_keys(_content_words(text)) & _keys(_words(others)))


def _content_words(text: str) -> list[str]:
    return [word for word in _words(text) if word not in FUNCTION_WORDS]


@lru_cache(maxsize=16)
def _words(text: str) -> tuple[str, ...]:
    """The words of a text; the last few are cached, since all items of a list are compared with one source."""
    return tuple(_word().findall(fold(text).casefold()))


def _keys(words: Iterable[str]) -> set[str]:
    return {stem(word) for word in words}


def _numbers(text: str) -> set[str]:
    """The numbers of a text, without separators, leading zeros and the number of a list item."""
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
    """A word; in scripts without spaces between words, each character counts as one."""
    spaceless = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff"
    return re.compile(rf"[{spaceless}]|[^\W_{spaceless}]+")
