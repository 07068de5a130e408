"""Compares sentences in other languages than English word by word, without reading them.

Three things need no grammar: a copy of a sentence, also after `Sí, …`; a copy with one negation more or less; and a
sentence with a weekday, a month or an opposite in place of another one, if the passages have that word nowhere.
Anything else would need words that are not in the tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from proctor.judging.rule_judge.lexicon import FOREIGN_ALTERNATIVES, FOREIGN_NEGATIONS

_REPLY = re.compile(r"^\W*(?:oui|non|no|si|sí|sì|ja|nein|nee|não|sim|nej|tak|nie)\s?[,.!:;]\s*")
_JOINTS = frozenset("a à al au bis y e und et ou o oder hasta fino".split())
"""Words after a weekday that begins a range or a list."""


def is_copy(claim: str, sentence: str) -> bool:
    """Whether a claim has the words of a sentence, apart from a `Sí, …` before them."""
    return _words(claim) == _words(sentence)


def words_in(text: str) -> frozenset[str]:
    """All words of a text, in lower case."""
    return frozenset(re.findall(r"\w+", text.casefold()))


def contradiction(claim: str, sentence: str, present: frozenset[str]) -> str:
    """What a claim says against a sentence; empty if nothing that these rules see. `present`: words of the passages."""
    words = _words(claim)
    if word := _other_word(words, _words(sentence), present):
        return f"it says “{word}”"
    # A later part of the sentence may have a negation of its own: `…, ma non …`.
    is_denied = any(_is_denied(words, _words(part)) for part in (sentence, sentence.partition(",")[0]))
    return "one of them is a denial" if is_denied else ""


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", _REPLY.sub("", text.casefold())))


def _is_denied(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether both have the same words but for a negation that only one of them has."""
    denials = [not FOREIGN_NEGATIONS.isdisjoint(each) for each in (words, others)]
    bare, other = ([word for word in each if word not in FOREIGN_NEGATIONS] for each in (words, others))
    return len(bare) > 2 and bare == other and denials[0] != denials[1]


def _other_word(words: Sequence[str], source: Sequence[str], present: frozenset[str]) -> str:
    """The word of the claim that stands in place of an alternative, such as another weekday; else empty."""
    for place, word in enumerate(words):
        groups = [group for group in FOREIGN_ALTERNATIVES if word in group and word not in present]
        if not groups:
            continue
        before, after = words[:place], words[place + 1 :]
        for index, theirs in enumerate(source):
            rest = source[index + 1 :]
            is_beside = before[-1:] == source[max(index - 1, 0) : index] and after[:1] == rest[: len(after[:1])]
            is_joined = not after and not _JOINTS.isdisjoint(rest[:1])
            is_other = any(theirs in group for group in groups) and is_beside and not is_joined
            if is_other and _is_within(before, source[:index]) and _is_within(after, rest):
                return word
    return ""


def _is_within(part: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words have all of the part in its order, among others."""
    rest = iter(words)
    return all(word in rest for word in part)
