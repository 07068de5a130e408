"""Reads one statement into terms, with names, negations, numbers and dates, and lists the entities of a text.

How it works: dates and numbers are found first, and the words between them become terms. Names are words with a capital
that are not ordinary English words, since a sentence or a heading starts with a capital too. A negation denies the
content words after it up to the end of its clause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from proctor.judging.rule_judge import words as lexicon
from proctor.judging.rule_judge.dates import PartialDate, find_dates
from proctor.judging.rule_judge.quantities import Quantity, find_quantities
from proctor.judging.rule_judge.statements import split_statements
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT, SPECIFIC_WEIGHT, fold, is_ordinary, word_key, word_weight


@dataclass(frozen=True, slots=True)
class Term:
    """A word, number or date of a statement."""

    text: str
    key: str
    weight: float
    name: bool
    denied: bool
    fact: Quantity | PartialDate | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A statement and what was read from it."""

    text: str
    terms: tuple[Term, ...]
    denials: tuple[tuple[str, ...], ...]
    """For each negation, the keys of the content terms that it denies, nearest first."""
    quantities: tuple[Quantity, ...]
    days: tuple[PartialDate, ...]
    keys: frozenset[str]
    first_person: bool
    pauses: frozenset[int] = frozenset()
    """The positions of terms that start a new part of the sentence: after a comma, at `and` or `while`."""


_WORD = re.compile(
    r"n't\b|[A-Za-z]{1,60}(?=n't\b)|[A-Za-z]{2,20}-(?:in|out|up|off|on|down)\b"
    r"|[A-Za-z0-9]{1,60}(?:'[A-Za-z]{1,20})?|[^\W\d_A-Za-z\u3005-\u9fff\uac00-\ud7af]{1,60}|[\u3005-\u9fff\uac00-\ud7af]"
    r"|[,;:.!?()\[\]\"]"
)


def read_statement(statement: str) -> Reading:
    """Read the terms, negations, numbers and dates of one statement."""
    text = fold(statement)
    days = find_dates(text)
    found = find_quantities(text)
    numbers = [item for item in found if not any(item.start < day.end and day.start < item.end for day in days)]
    facts: list[Quantity | PartialDate] = sorted([*days, *numbers], key=lambda fact: fact.start)
    terms, breaks, pauses = _terms(text, facts)
    terms, denials = _mark_denials(text, terms, breaks)
    keys = frozenset(term.key for term in terms)
    first_person = any(term.text.lower().partition("'")[0] in lexicon.FIRST_PERSON for term in terms)
    return Reading(
        text, tuple(terms), tuple(denials), tuple(numbers), tuple(days), keys, first_person, frozenset(pauses)
    )


def _terms(text: str, facts: list[Quantity | PartialDate]) -> tuple[list[Term], set[int], set[int]]:
    """The terms in order, and the positions of those that start a clause and of those that start a part of one."""
    terms: list[Term] = []
    breaks: set[int] = set()
    pauses: set[int] = set()
    cased = any(character.isupper() for character in text) and text != text.upper()
    starts_sentence = True
    position = 0
    for fact in [*facts, None]:
        for match in _WORD.finditer(text, position, fact.start if fact else len(text)):
            word = match[0]
            if not (word[0].isalnum() or word == "n't"):
                breaks.add(len(terms))
                if word in ",;.!?()":
                    pauses.add(len(terms))
                starts_sentence = starts_sentence or word in ".!?"
                continue
            terms.append(_term(word, cased=cased, starts_sentence=starts_sentence))
            if word.lower() in lexicon.CLAUSE_BREAKS:
                breaks.add(len(terms) - 1)
            if word.lower() in lexicon.PART_BREAKS:
                pauses.add(len(terms) - 1)
            starts_sentence = False
        if fact:
            terms.append(_fact_term(fact))
            position, starts_sentence = fact.end, False
    return terms, breaks, pauses


@lru_cache(maxsize=1 << 15)
def _term(word: str, *, cased: bool, starts_sentence: bool) -> Term:
    word = word.replace("-", "")
    low = word.lower()
    weight = word_weight(low.removesuffix("'s"))
    if len(word) == 1 and word.isupper() and word != "I" and not starts_sentence and cased:
        return Term(word, f"{low}.", SPECIFIC_WEIGHT, True, False)  # `plan A`
    if weight == GRAMMAR_WEIGHT:
        return Term(word, word_key(word), weight, False, False)
    if any(letter.isdigit() for letter in word) or any(letter.isupper() for letter in word[1:]):
        name = True
    else:
        # A heading writes ordinary words with capitals, and a text without capitals writes names in small letters.
        name = not is_ordinary(low) and (word[0].isupper() or starts_sentence or not cased)
    return Term(word, word_key(word), SPECIFIC_WEIGHT if name else weight, name, False)


def _fact_term(fact: Quantity | PartialDate) -> Term:
    if isinstance(fact, PartialDate):
        return Term(fact.text, f"@{fact.year}-{fact.month}-{fact.day}", SPECIFIC_WEIGHT, False, False, fact)
    soft = fact.spelled and (fact.value == 1 or fact.unit == "ordinal")
    return Term(fact.text, f"#{fact.value:g}", 0.35 if soft else SPECIFIC_WEIGHT, False, False, fact)


def _mark_denials(text: str, terms: list[Term], breaks: set[int]) -> tuple[list[Term], list[tuple[str, ...]]]:
    """Mark the terms that each negation denies; two negations of one term cancel out."""
    if not any(term.text.lower() in lexicon.NEGATIONS for term in terms):
        return terms, []
    ignored = _false_negations(text, terms)
    denied: dict[int, int] = {}
    denials: list[tuple[str, ...]] = []
    for position, term in enumerate(terms):
        low = term.text.lower()
        if low not in lexicon.NEGATIONS or position in ignored:
            continue
        reached = _negation_scope(terms, breaks, position, backwards=low == "false")
        if not reached and position in breaks and position == len(terms) - 1:
            reached = _negation_scope(terms, breaks, position, backwards=True)
        for index in reached:
            denied[index] = denied.get(index, 0) + 1
        denials.append(tuple(terms[index].key for index in reached))
    marked = [
        Term(term.text, term.key, term.weight, term.name, denied.get(index, 0) % 2 == 1, term.fact)
        for index, term in enumerate(terms)
    ]
    return (marked if denied else terms), denials


def _negation_scope(terms: list[Term], breaks: set[int], position: int, *, backwards: bool) -> list[int]:
    """The positions of the content terms that a negation denies; `refundable: false` denies the word before it."""
    steps = range(position - 1, -1, -1) if backwards else range(position + 1, len(terms))
    reached: list[int] = []
    for index in steps:
        if not backwards and index in breaks:
            break
        if terms[index].weight > GRAMMAR_WEIGHT:
            reached.append(index)
        if backwards and reached:
            break
    return reached


def _false_negations(text: str, terms: list[Term]) -> set[int]:
    """Positions of negation words that deny nothing: `not only`, a `No,` that answers, the `No.` of a number."""
    low = [term.text.lower() for term in terms]
    ignored = {0} if low[:1] == ["no"] and re.match(r"\W{0,5}no\s{0,2}[,.!;:-]", text, re.IGNORECASE) else set()
    for phrase in lexicon.NOT_NEGATING:
        words = phrase.split()
        first = next(index for index, word in enumerate(words) if word in lexicon.NEGATIONS)
        if words[first] not in low:
            continue
        for index in range(len(low) - len(words) + 1):
            if low[index : index + len(words)] == words:
                ignored.add(index + first)
    return ignored


def entities(text: str) -> list[str]:
    """The names, numbers and dates of a text, each once, in the order of first mention."""
    found: dict[str, str] = {}
    for statement in split_statements(text):
        for name in _entity_names(read_statement(statement)):
            found.setdefault(name.lower(), name)
    return list(found.values())


def _entity_names(reading: Reading) -> list[str]:
    """The names, numbers and dates of a statement; neighboring names are joined: `Marie Curie`."""
    found: list[str] = []
    after_name = False
    for term in reading.terms:
        if after_name and (term.name or (term.text[:1].isupper() and term.weight > 0)):
            found[-1] += f" {term.text}"
        elif term.name or (term.fact is not None and term.weight >= 1):
            found.append(term.text)
            after_name = term.name
        else:
            after_name = False
    return found
