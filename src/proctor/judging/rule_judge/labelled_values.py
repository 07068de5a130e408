"""Compares the values (numbers, dates, names) of a statement with those of the evidence, by their labels.

How it works: the label of a value is the content words near it, in JSON, tables, lines such as `price: 12` and prose
alike. A value is confirmed if the evidence has it with a similar label, and contradicted if another value fits its
label clearly better. Looking for the number alone would confirm "the fee is 12" by a text in which 12 is the number of
months.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from proctor.judging.rule_judge.dates import PartialDate, matches_known_date
from proctor.judging.rule_judge.passage_reading import Reading, Term
from proctor.judging.rule_judge.quantities import MONEY, Quantity, same_quantity
from proctor.judging.rule_judge.words import COMMON_WEIGHT, GRAMMAR_WEIGHT

_BEFORE, _INHERITED = 0.6, 0.9
"""The weight of a word earlier in the sentence than the words next to the value, and its weight if there are none."""
_SIDES = frozenset("from to until till since before after".split())
"""Small words before a number that distinguish it from another one: `from 5 to 7`."""
_COMPARING = frozenset("above below beneath beyond exceed exceeds exceeding than under versus vs".split())
"""Words that compare two values: words before them belong to the first value, words after them to the second."""
_BOUNDS = frozenset("least most must than over under up above below limit".split())
"""Words that make a number a limit without the words minimum or maximum."""
_STRONG_SHARE = 0.6
"""The share of a label that another value must have to count as a value of the same thing."""
_STRONG_FOR_NAMES = 0.99
"""The same for names, since a sentence may have several for one thing."""
_MIN_NAME_LABEL = 1.5
"""The least weight of the label of a name for another name to contradict it."""
_CLEAR_MARGIN = 0.4
"""How much better the label of another value must fit than that of the same value."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its label: the words that say what it is a value of, each with its weight."""

    term: Term
    label: dict[str, float]
    is_count: bool = False
    """Whether it is a count, such as `36 payments`, which only another whole number can contradict."""


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """What the evidence says about one value: the same, another value for the same thing, nothing, or unclear."""

    term: Term
    verdict: Literal["same", "other", "absent", "doubtful"]
    reason: str = ""


def values(reading: Reading) -> tuple[Value, ...]:
    """Every number, date and name of a sentence, with its label."""
    found = [index for index, term in enumerate(reading.terms) if term.fact is not None or term.name]
    return tuple(Value(reading.terms[index], _label(reading, index), _is_count(reading, index)) for index in found)


def _is_count(reading: Reading, index: int) -> bool:
    """Whether the term is a whole number without a unit, right before a content word."""
    fact, after = reading.terms[index].fact, reading.terms[index + 1 : index + 2]
    bare = isinstance(fact, Quantity) and not fact.unit and fact.value == int(fact.value)
    return bare and bool(after) and after[0].weight > GRAMMAR_WEIGHT and index + 1 not in reading.pauses


def _label(reading: Reading, index: int) -> dict[str, float]:
    """The words of a value's label, with their weights.

    Words up to the next value or pause on both sides count in full, those earlier in the sentence less. A part without
    words takes those of the sentence: `A costs 5 and B 7`. The only date of a sentence belongs to all of its values.
    """
    own = reading.terms[index]
    near: set[str] = set()
    before: set[str] = set()
    only_date = sum(map(_is_date, reading.terms)) == 1
    for step, far in ((-1, before), (1, set())):
        label = near
        position = index + step
        while 0 <= position < len(reading.terms):
            term = reading.terms[position]
            paused = (position if step > 0 else position + 1) in reading.pauses
            if term.text.lower() in _COMPARING:
                break  # the rest belongs to the other value
            alike = _is_number(term) and _is_number(own) and _comparable(term, own)
            if paused or (alike and _is_date(term) == _is_date(own)):
                label = far
            if term.text.lower() in _SIDES and _is_number(own) and position == index - 1:
                near.add(f"<{term.text.lower()}")
            elif _is_date(term) and not _is_date(own):
                (near if only_date else label).add(f"@{getattr(term.fact, 'year', None) or term.text.lower()}")
            elif term.weight > GRAMMAR_WEIGHT and not _is_number(term):
                label.add(term.key)
            position += step
    if own.name:
        return dict.fromkeys(near - {own.key}, 1.0)
    names = {term.key for term in reading.terms if term.name and term.text[0].isupper()}
    marks = {key[0] for key in near}
    if names & near or "<" not in marks:
        before -= names
    share = _BEFORE if any(key[0] not in "@<" and key not in names for key in near) else _INHERITED
    before = {key for key in before if key[0] != "@" or "@" not in marks}
    return dict.fromkeys(before, share) | dict.fromkeys(near, 1.0)


def _is_date(term: Term) -> bool:
    return isinstance(term.fact, PartialDate) or _is_year(term)


def _is_number(term: Term) -> bool:
    return term.fact is not None and term.weight > COMMON_WEIGHT


def compare_values(
    statement: Reading, evidence: Sequence[Reading], repeatable: Sequence[Reading] = ()
) -> Iterator[ValueMatch]:
    """Compare each value of the statement with the evidence; `repeatable` values can confirm but not contradict."""
    known = [value for reading in evidence for value in values(reading)]
    repeatable_values = [value for reading in repeatable for value in values(reading)]
    bounded = any(term.text.lower() in _BOUNDS for term in statement.terms)
    for value in values(statement):
        if value.term.weight <= COMMON_WEIGHT:
            continue  # `one` is as often a pronoun as a number
        own = [
            other
            for other in repeatable_values
            if _comparable(value.term, other.term) and _same(value.term, other.term)
        ]
        rivals = [other for other in known if _comparable(value.term, other.term)]
        if value.is_count:
            rivals = [other for other in rivals if getattr(other.term.fact, "value", 0) % 1 == 0]
        elif _is_date(value.term):
            rivals = [other for other in rivals if _is_date(other.term)]
        wrong = None if own or bounded else _mislabelled(value, rivals, statement.keys)
        yield wrong or _compare(value, rivals + own)


def _comparable(one: Term, other: Term) -> bool:
    if isinstance(one.fact, Quantity) and isinstance(other.fact, Quantity):
        if one.fact.unit == other.fact.unit:
            return True
        bare, other_unit = sorted((one.fact, other.fact), key=lambda fact: bool(fact.unit))
        # Data often has amounts without a currency and shares instead of percentages, but names other units.
        fits = other_unit.unit in MONEY or (other_unit.unit == "percent" and bare.value <= 1)
        return not bare.unit and fits and not _is_year(one) and not _is_year(other)
    if isinstance(one.fact, PartialDate):
        return isinstance(other.fact, PartialDate) or _is_year(other)
    return _is_year(one) if isinstance(other.fact, PartialDate) else one.name and other.name


def _is_year(term: Term) -> bool:
    return isinstance(term.fact, Quantity) and term.fact.is_year and term.fact.text.isdigit()


def _same(one: Term, other: Term) -> bool:
    if isinstance(one.fact, Quantity) and isinstance(other.fact, Quantity):
        return same_quantity(one.fact, other.fact)
    if isinstance(one.fact, PartialDate):
        return isinstance(other.fact, PartialDate) and matches_known_date(one.fact, [other.fact])
    if isinstance(other.fact, PartialDate):
        return isinstance(one.fact, Quantity) and one.fact.value == other.fact.year
    return one.key == other.key


def _mislabelled(value: Value, known: Sequence[Value], statement_keys: frozenset[str]) -> ValueMatch | None:
    """The match of a number with the label of another one, or None.

    For example, `credit score 650` if the evidence has a credit score of 720 and a minimum credit score of 650.
    """
    label = _near_words(value)
    if value.term.name or not label:
        return None
    exact = [other for other in known if _near_words(other) == label]
    same_value = [other for other in known if _same(value.term, other.term)]
    if not exact or any(_same(value.term, other.term) for other in exact):
        return None
    if not same_value or not all(
        _near_words(other) > label and _near_words(other) - label - statement_keys for other in same_value
    ):
        return None
    reason = f"the context says {exact[0].term.text}, not {value.term.text}"
    return ValueMatch(value.term, "other", f"{reason} ({value.term.text} refers to something else)")


def _near_words(value: Value) -> set[str]:
    """The words of the label that are next to the value."""
    return {word for word, weight in value.label.items() if weight == 1 and word[0] not in "@<"}


def _compare(value: Value, known: Sequence[Value]) -> ValueMatch:
    """Compare a value with those of the evidence: the one with the best fitting label decides."""
    term = value.term
    fits = [(_fit(value.label, other.label), other) for other in known if other.term.key not in value.label]
    own = max((fit for fit, other in fits if _same(term, other.term)), default=None)
    rival_fit, rival = max(
        ((fit, other) for fit, other in fits if not _same(term, other.term)),
        key=lambda pair: pair[0],
        default=(0.0, None),
    )
    if rival is None or (own is not None and own >= rival_fit):
        return ValueMatch(term, "absent" if own is None else "same")
    total = sum(value.label.values())
    least_share = _STRONG_FOR_NAMES if term.name else _STRONG_SHARE
    strong = total > (_MIN_NAME_LABEL if term.name else 0) and rival_fit >= least_share * total
    reason = f"the context says {rival.term.text}, not {term.text}"
    if own is None:
        return ValueMatch(term, "other", reason) if strong and not term.name else ValueMatch(term, "absent")
    if strong and rival_fit - own >= _CLEAR_MARGIN:
        return ValueMatch(term, "other", f"{reason} ({term.text} refers to something else)")
    return ValueMatch(term, "doubtful") if rival_fit - own >= _CLEAR_MARGIN else ValueMatch(term, "same")


def _fit(label: dict[str, float], other: dict[str, float]) -> float:
    """The weight of the words that two labels share."""
    return sum(min(weight, other[word]) for word, weight in label.items() if word in other)
