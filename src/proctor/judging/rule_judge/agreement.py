"""Whether an answer says the same as a reference.

How it works: the share of the reference's content words that the answer has, where words of the question count little.
A denied or replaced name or number contradicts. A short reference is compared as a whole, a long one statement by
statement. Between clear agreement and clear difference, and where a paraphrase is likely, the verdict is unclear: a
word count alone would fail correct answers in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from proctor.judging.rule_judge.dates import PartialDate
from proctor.judging.rule_judge.evidence import Evidence, PassageIndex, passage_index
from proctor.judging.rule_judge.passage_reading import Reading, read_statement
from proctor.judging.rule_judge.quantities import Quantity
from proctor.judging.rule_judge.relevance import is_noncommittal, makes_claim
from proctor.judging.rule_judge.statements import split_statements, without_courtesy
from proctor.judging.rule_judge.support import credit_at, judge_statement
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT

AGREES_FROM = 0.65
"""The score from which an answer counts as the same as the reference."""
_IN_QUESTION = 0.25
"""The weight of a word of the reference that is in the question already."""
_MAX_SHORT_REFERENCE = 12
"""A reference with more content words is a text of several statements rather than one answer."""
_SURELY_SAME, _SURELY_OTHER, _WORDY = 0.95, 0.3, 40
"""The verdict is unclear between these two shares of the reference, and for an answer of more words that lacks it."""
_ROUNDED = 0.05
"""How far a rounded number may be from the exact one, as a share of it."""
_DENIED, _REPLACED = 0.3, 0.5
"""The factor for the score of a denied reference, and the highest score with another name or number."""
EMPTY = read_statement("")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether an answer agrees with a reference, and what of the reference it lacks or denies."""

    score: float
    verdict: Literal["same", "different", "contradicted", "unclear"]
    missing: tuple[str, ...]
    contradicted: tuple[str, ...]
    reason: str
    reference: Reading = EMPTY
    """The reference, or the alternative of it, that was compared."""


def agreement(question: str, reference: str, answer: str) -> Agreement:
    """Whether the answer says the same as the reference; of several alternatives, separated by `/`, the best counts."""
    ways = alternatives(reference)
    if not ways or not split_statements(answer):
        return Agreement(0.0, "different", tuple(ways), (), "there is nothing to compare")
    # Without courtesies first: `let me know if anything is unclear` leaves nothing open.
    answer = "\n".join(filter(None, map(without_courtesy, split_statements(answer)))) or answer
    if not is_noncommittal(answer):
        answer = "\n".join(text for text in split_statements(answer) if makes_claim(text)) or answer
    answer_index = passage_index(_without_footnotes(answer))
    question_reading = read_statement(question)
    judged = [
        replace(_compare(way, read_statement(way), answer_index, question_reading), reference=read_statement(way))
        for way in ways
    ]
    best = max(judged, key=lambda found: found.score)
    if best.verdict == "same":
        doubt = _doubt_same(best, judged, question_reading, answer)
    else:
        doubt = _doubt_other(best, ways, answer)
    if doubt:
        return replace(best, verdict="unclear", reason=f"{doubt}; {best.reason}")
    return best


def _doubt_same(best: Agreement, judged: Sequence[Agreement], question: Reading, answer: str) -> str:
    """Why an answer that has the words of the reference may not say the same; empty if there is no doubt."""
    if is_noncommittal(answer):
        return "the answer is noncommittal"
    if best.score < _SURELY_SAME:
        return "the answer says only a part of the reference"
    readings = map(read_statement, split_statements(answer))
    mentions = [reading for reading in readings if _mentions(reading, best.reference)]
    if not best.reference.denials and not question.denials and any(reading.denials for reading in mentions):
        return "the answer also denies something near it"
    if best.reference.keys <= question.keys:
        return "the question says as much as the reference"
    others = [found.reference for found in judged if found.score < _SURELY_OTHER]
    has_fact = _has_fact(best.reference)
    content = {term.key for term in best.reference.terms if term.weight > GRAMMAR_WEIGHT}
    if (_ASKS_FOR_SEVERAL.search(question.text) or has_fact) and any(
        other.keys.isdisjoint(content) and _has_fact(other) == has_fact for other in others
    ):
        return "the reference may be a list, and the answer has only a part of it"
    return ""


def _mentions(statement: Reading, reference: Reading) -> bool:
    """Whether a statement has any content word of the reference, including the year of a date."""
    evidence = Evidence([statement])
    content = [index for index, term in enumerate(reference.terms) if term.weight > GRAMMAR_WEIGHT]
    return any(credit_at(reference.terms, index, evidence) for index in content)


def _has_fact(reading: Reading) -> bool:
    return any(term.fact is not None for term in reading.terms)


_ASKS_FOR_SEVERAL = re.compile(
    r"\b(?:list|name the|what are|who are|which are|what were|who were|where is|both)\b", re.IGNORECASE
)


def _doubt_other(best: Agreement, ways: Sequence[str], answer: str) -> str:
    """Why an answer that lacks words of the reference may still say it in other words; empty if there is no doubt."""
    if is_noncommittal(answer) or (best.verdict == "contradicted" and len(best.reference.terms) > _MAX_SHORT_REFERENCE):
        return ""
    if best.verdict == "contradicted" and _is_denied(best.reference, answer):
        return ""
    distinct_ways = {
        frozenset(term.key for term in read_statement(way).terms if term.weight > GRAMMAR_WEIGHT) for way in ways
    }
    if best.score > _SURELY_OTHER and (best.verdict != "contradicted" or len(distinct_ways) > 1):
        return "the answer says only a part of the reference"
    if not all(_is_specific(way) for way in ways) or len(ways) > 3:
        return "the reference may be said in other words"
    answer_facts = _facts(read_statement(answer))
    reference_facts = [_facts(read_statement(way)) for way in ways]
    if any(
        _near(ours, theirs) for facts in reference_facts for ours in (*facts, *_span(facts)) for theirs in answer_facts
    ):
        return "the answer says it less exactly"
    return "the answer may say it in other words" if len(answer.split()) > _WORDY else ""


def _is_denied(reference: Reading, answer: str) -> bool:
    """Whether the answer denies every mention of the reference's names and numbers, as in `There are not 10`."""
    keys = {term.key for term in reference.terms if term.fact is not None or term.name}
    mentions = [(term, reading) for reading in map(read_statement, split_statements(answer)) for term in reading.terms]
    found = [(term, reading) for term, reading in mentions if term.key in keys]
    return bool(found) and all(term.denied and not _LIMITED.search(reading.text) for term, reading in found)


_LIMITED = re.compile(r"\b(?:until|till|before|unless|only|without|except|but)\b", re.IGNORECASE)
"""Words that limit a negation instead of denying what follows: `not until 1989` says 1989."""


def _is_specific(way: str) -> bool:
    """Whether there is a name, a number or a date, which is hard to say in other words."""
    terms = read_statement(way).terms
    return any(
        term.fact is not None or term.name or (index and term.text[0].isupper()) for index, term in enumerate(terms)
    )


def _facts(reading: Reading) -> list[Quantity | PartialDate]:
    return [*reading.days, *reading.quantities]


Span = tuple[float, float]


def _span(facts: Sequence[Quantity | PartialDate]) -> list[Span]:
    """The years from the first to the last that a reference gives: `1910-1939`."""
    years = [span for fact in facts if (span := _years(fact))]
    return [(min(first for first, _ in years), max(last for _, last in years))] if len(years) > 1 else []


def _near(one: Quantity | PartialDate | Span, other: Quantity | PartialDate) -> bool:
    """Whether one is a less exact form of the other: the year of a date, the decade of a year, a rounded number."""
    if (
        isinstance(one, PartialDate)
        and isinstance(other, PartialDate)
        and one.month
        and other.month
        and one.month != other.month
    ):
        return False
    years = [one if isinstance(one, tuple) else _years(one), _years(other)]
    if years[0] and years[1]:
        return years[0][0] <= years[1][1] and years[1][0] <= years[0][1]
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        ours, theirs = abs(one.amount), abs(other.amount)
        return abs(ours - theirs) <= _ROUNDED * max(ours, theirs)
    return False


def _years(fact: Quantity | PartialDate) -> Span | None:
    if isinstance(fact, PartialDate):
        return (fact.year, fact.year) if fact.year else None
    if fact.unit == "decade":
        return fact.value, fact.value + 9
    if fact.unit == "ordinal" and 10 <= fact.value <= 21:
        return fact.value * 100 - 100, fact.value * 100
    return (fact.value, fact.value) if fact.is_year else None


def alternatives(reference: str) -> list[str]:
    """The alternatives in a reference: `1979/21 July 1979` has two; `1/2`, `km/h` and a web address are one each."""
    if re.fullmatch(r"\s*\d{1,4}\s?/\s?\d{1,2}(?:\s?/\s?\d{2,4})?\s*", reference) or "://" in reference:
        return [reference.strip()]
    found = [way.strip() for way in _SEPARATOR.split(reference)]
    return list(dict.fromkeys(way for way in found if any(character.isalnum() for character in way)))


_SEPARATOR = re.compile(
    r"(?<!\b[a-z])(?<!\bkm)(?<!\bmi)(?<!\band)(?<!\d/\d)(?<!\d/\d\d)/(?!(?:h|s|or|hr|min)\b)(?!\d{1,2}/\d)"
)
"""A slash outside of dates, fractions and units such as km/h."""


def _without_footnotes(answer: str) -> str:
    """The answer without footnote marks such as `[1]`, and with a space before bare ones, as in `Tremblay123`."""
    answer = re.sub(r"\[\d{1,3}\]|\[\^\d{1,3}\^?\]", " ", answer)
    return re.sub(r"(?<=[a-z]{3})(?=\d{1,4}(?:\W|$))", " ", answer)


def _compare(way: str, reference: Reading, answer: PassageIndex, question: Reading) -> Agreement:
    if sum(term.weight > GRAMMAR_WEIGHT for term in reference.terms) > _MAX_SHORT_REFERENCE:
        return _statement_by_statement(way, answer)
    evidence = answer.evidence(reference)
    share, missing = _recall(reference, evidence, question.keys)
    denied = tuple(_denials(reference, evidence, question)) if share >= AGREES_FROM else ()
    if denied:
        return Agreement(share * _DENIED, "contradicted", missing, denied, f"the answer denies “{denied[0]}”")
    replacement = next(_replacements(reference, evidence, question.keys), None)
    if replacement:
        ours, theirs = replacement
        score = min(share, _REPLACED)
        return Agreement(score, "contradicted", missing, (ours,), f"the answer says “{theirs}” instead of “{ours}”")
    if share >= AGREES_FROM:
        return Agreement(share, "same", missing, (), f"the answer says “{way}”")
    quotes = ", ".join(f"“{word}”" for word in missing[:5])
    return Agreement(share, "different", missing, (), f"the answer does not say {quotes}, which the reference has")


def _recall(reference: Reading, evidence: Evidence, question_keys: frozenset[str]) -> tuple[float, tuple[str, ...]]:
    """The share of the reference that the answer has, and the words it lacks; words of the question count little."""
    total = found = 0.0
    missing: list[str] = []
    for index, term in enumerate(reference.terms):
        weight = max(term.weight, 0.1)
        if term.key in question_keys:
            weight *= _IN_QUESTION
        credit = credit_at(reference.terms, index, evidence)
        total += weight
        found += weight * credit
        if not credit and term.weight > GRAMMAR_WEIGHT:
            missing.append(term.text)
    return (found / total if total else 0.0), tuple(missing)


def _denials(reference: Reading, evidence: Evidence, question: Reading) -> Iterator[str]:
    """The words of the reference that the answer denies at every mention; negations of the question do not count."""
    if reference.denials:
        return
    in_question = {denial[:1] for denial in question.denials}
    mentions: dict[str, set[bool]] = {}
    for reading in evidence.readings:
        denied = {key for denial in reading.denials if denial[:1] not in in_question for key in denial}
        for term in reading.terms:
            mentions.setdefault(term.key, set()).add(term.key in denied)
    for term in reference.terms:
        if term.weight > GRAMMAR_WEIGHT and term.key not in question.keys and mentions.get(term.key) == {True}:
            yield term.text


def _replacements(reference: Reading, evidence: Evidence, question_keys: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Names of the reference, each with the name that the answer has in its place, next to the same neighbor."""
    content = [term for term in reference.terms if term.weight > GRAMMAR_WEIGHT]
    ours = {term.key for term in content}
    for index, term in enumerate(content):
        if len(term.text) == 1 or not term.text[0].isupper() or term.key in question_keys:
            continue
        if credit_at(content, index, evidence):
            continue
        for neighbor, step in ((index - 1, 1), (index + 1, -1)):
            if 0 <= neighbor < len(content) and content[neighbor].key in evidence.polarity:
                other = _constant_neighbor(content[neighbor].key, step, evidence)
                if other and other not in ours and other not in question_keys:
                    yield term.text, other


def _constant_neighbor(term_key: str, step: int, evidence: Evidence) -> str:
    """The name on one side of a term, wherever the answer has the term; empty if a mention has no name there."""
    found = ""
    for reading in evidence.readings:
        content = [term for term in reading.terms if term.weight > GRAMMAR_WEIGHT]
        for index, term in enumerate(content):
            if term.key == term_key:
                neighbor = content[index + step] if 0 <= index + step < len(content) else None
                if neighbor is None or not neighbor.name:
                    return ""
                found = neighbor.key
    return found


def _statement_by_statement(way: str, answer: PassageIndex) -> Agreement:
    """Compare a long reference: whether the answer supports each of its statements."""
    scores: list[float] = []
    missing: list[str] = []
    denied: list[str] = []
    for statement in split_statements(way):
        reading = read_statement(statement)
        result = judge_statement(reading, answer.evidence(reading))
        scores.append(result.share)
        if result.verdict == "contradicted":
            denied.append(statement)
        elif result.verdict != "supported":
            missing.append(statement)
    score = sum(scores) / len(scores)
    if denied:
        score = min(score, AGREES_FROM - 0.1)
        return Agreement(score, "contradicted", tuple(missing), tuple(denied), f"the answer contradicts “{denied[0]}”")
    if score >= AGREES_FROM:
        return Agreement(score, "same", tuple(missing), (), "the answer says what the reference says")
    return Agreement(score, "different", tuple(missing), (), f"the answer lacks “{(missing or [way])[0]}”")
