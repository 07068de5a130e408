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
"""What a word earlier in the sentence counts that is not beside the value, and what it counts if no word is."""
_SIDES = frozenset("from to until till since before after".split())
"""Small words before a number that say which of two it is."""
_COMPARING = frozenset("above below beneath beyond exceed exceeds exceeding than under versus vs".split())
"""Words between two values: what stands before one is said of the first, what stands after it of the second."""
_BOUNDS = frozenset("least most must than over under up above below limit".split())
"""Words by which a sentence names a bound without calling it a minimum or maximum."""
_STRONG = 0.6
"""The share of a label that another value must have to be the value of the same thing."""
_ALL = 0.99
"""The same for names, of which a sentence may have several for one thing."""
_ENOUGH = 1.5
_CLEARLY = 0.4
"""How much better another value's label must fit than that of the same value."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value with the words that say what it is the value of, each with how much it counts."""

    term: Term
    label: dict[str, float]
    counts: bool = False
    """Whether it is a number of things, `36 payments`, which only another whole number can speak against."""


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """What the evidence says of one value: the same, another one for the same thing, nothing, or hard to tell."""

    term: Term
    verdict: Literal["same", "other", "absent", "doubtful"]
    reason: str = ""


def values(reading: Reading) -> tuple[Value, ...]:
    """Every value of a sentence with its label; names are values where there is something to say of them."""
    found = [index for index, term in enumerate(reading.terms) if term.fact is not None or term.name]
    return tuple(Value(reading.terms[index], _label(reading, index), _counts(reading, index)) for index in found)


def _counts(reading: Reading, index: int) -> bool:
    """A whole number without a unit right before a telling word."""
    fact, after = reading.terms[index].fact, reading.terms[index + 1 : index + 2]
    bare = isinstance(fact, Quantity) and not fact.unit and fact.value == int(fact.value)
    return bare and bool(after) and after[0].weight > GRAMMAR_WEIGHT and index + 1 not in reading.pauses


def _label(reading: Reading, index: int) -> dict[str, float]:
    """Words up to the next value or pause on both sides count in full, those earlier in the sentence less.

    A part without words of its own takes those of the sentence: `A costs 5 and B 7`. An only date says when anywhere.
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
                break  # the rest is said of the other value
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
    """What the evidence says of each value of the statement; what is `repeatable` is the same or nothing."""
    known = [value for reading in evidence for value in values(reading)]
    lent = [value for reading in repeatable for value in values(reading)]
    bounded = any(term.text.lower() in _BOUNDS for term in statement.terms)
    for value in values(statement):
        if value.term.weight <= COMMON_WEIGHT:
            continue  # `one` is as often a pronoun as a number
        own = [other for other in lent if _comparable(value.term, other.term) and _same(value.term, other.term)]
        rivals = [other for other in known if _comparable(value.term, other.term)]
        if value.counts:
            rivals = [other for other in rivals if getattr(other.term.fact, "value", 0) % 1 == 0]
        elif _is_date(value.term):
            rivals = [other for other in rivals if _is_date(other.term)]
        wrong = None if own or bounded else _mislabelled(value, rivals, statement.keys)
        yield wrong or _compared(value, rivals + own)


def _comparable(one: Term, other: Term) -> bool:
    if isinstance(one.fact, Quantity) and isinstance(other.fact, Quantity):
        if one.fact.unit == other.fact.unit:
            return True
        bare, other_unit = sorted((one.fact, other.fact), key=lambda fact: bool(fact.unit))
        # Data leaves out the sign of an amount and writes a share for a percentage; it names other units.
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


def _mislabelled(value: Value, known: Sequence[Value], said: frozenset[str]) -> ValueMatch | None:
    """A number under the label of another: `credit score 650` where that is 720, and 650 the minimum credit score."""
    named = _beside(value)
    if value.term.name or not named:
        return None
    exact = [other for other in known if _beside(other) == named]
    same_value = [other for other in known if _same(value.term, other.term)]
    if not exact or any(_same(value.term, other.term) for other in exact):
        return None
    if not same_value or not all(_beside(other) > named and _beside(other) - named - said for other in same_value):
        return None
    reason = f"the context says {exact[0].term.text}, not {value.term.text}"
    return ValueMatch(value.term, "other", f"{reason} ({value.term.text} is said of something else)")


def _beside(value: Value) -> set[str]:
    """The words that stand directly beside a value and say what it is."""
    return {word for word, weight in value.label.items() if weight == 1 and word[0] not in "@<"}


def _compared(value: Value, known: Sequence[Value]) -> ValueMatch:
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
    strong = total > (_ENOUGH if term.name else 0) and rival_fit >= (_ALL if term.name else _STRONG) * total
    reason = f"the context says {rival.term.text}, not {term.text}"
    if own is None:
        return ValueMatch(term, "other", reason) if strong and not term.name else ValueMatch(term, "absent")
    if strong and rival_fit - own >= _CLEARLY:
        return ValueMatch(term, "other", f"{reason} ({term.text} is said of something else)")
    return ValueMatch(term, "doubtful") if rival_fit - own >= _CLEARLY else ValueMatch(term, "same")


def _fit(label: dict[str, float], other: dict[str, float]) -> float:
    return sum(min(weight, other[word]) for word, weight in label.items() if word in other)
