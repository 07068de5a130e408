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
"""From this score on an answer counts as the same as the reference."""
_IN_QUESTION = 0.25
"""What a word of the reference weighs that the question already says."""
_MAX_SHORT_REFERENCE = 12
"""A reference with more telling words is a text of several statements rather than one answer."""
_SURELY_SAME, _SURELY_OTHER, _WORDY = 0.95, 0.3, 40
"""Between these shares of the reference, and beyond so many words of an answer that lacks it, rules cannot tell."""
_ROUNDED = 0.05
"""How far a rounded number may be from the exact one."""
_DENIED, _REPLACED = 0.3, 0.5
"""What is left of the score of a denial, and the most that another name or number gets."""
EMPTY = read_statement("")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Whether an answer agrees with a reference, and what of the reference it lacks or denies."""

    score: float
    verdict: Literal["same", "different", "contradicted", "unclear"]
    missing: tuple[str, ...]
    contradicted: tuple[str, ...]
    reason: str
    said: Reading = EMPTY
    """What was looked for."""


def agreement(question: str, reference: str, answer: str) -> Agreement:
    """Whether the answer gives what the reference gives; of several ways to say it, after a `/`, the best counts."""
    ways = alternatives(reference)
    if not ways or not split_statements(answer):
        return Agreement(0.0, "different", tuple(ways), (), "there is nothing to compare")
    # Without courtesies first: `let me know if anything is unclear` leaves nothing open.
    answer = "\n".join(filter(None, map(without_courtesy, split_statements(answer)))) or answer
    if not is_noncommittal(answer):
        answer = "\n".join(text for text in split_statements(answer) if makes_claim(text)) or answer
    known = passage_index(_without_footnotes(answer))
    asked = read_statement(question)
    judged = [replace(_compare(way, read_statement(way), known, asked), said=read_statement(way)) for way in ways]
    best = max(judged, key=lambda found: found.score)
    doubt = _doubt_same(best, judged, asked, answer) if best.verdict == "same" else _doubt_other(best, ways, answer)
    if doubt:
        return replace(best, verdict="unclear", reason=f"{doubt}; {best.reason}")
    return best


def _doubt_same(best: Agreement, judged: Sequence[Agreement], asked: Reading, answer: str) -> str:
    """Why an answer that has the words of the reference may not give it."""
    if is_noncommittal(answer):
        return "the answer does not commit itself"
    if best.score < _SURELY_SAME:
        return "the answer gives a part of the reference"
    sayings = [reading for reading in map(read_statement, split_statements(answer)) if _mentions(reading, best.said)]
    if not best.said.denials and not asked.denials and any(reading.denials for reading in sayings):
        return "the answer also denies something near it"
    if best.said.keys <= asked.keys:
        return "the question says as much as the reference"
    others = [found.said for found in judged if found.score < _SURELY_OTHER]
    several = _ASKS_FOR_SEVERAL.search(asked.text) or _has_fact(best.said)
    told = {term.key for term in best.said.terms if term.weight > GRAMMAR_WEIGHT}
    if several and any(said.keys.isdisjoint(told) and _has_fact(said) == _has_fact(best.said) for said in others):
        return "the reference may be a list, of which the answer gives a part"
    return ""


def _mentions(reading: Reading, said: Reading) -> bool:
    """Whether a statement names anything telling of what is looked for, a year in a date included."""
    evidence = Evidence([reading])
    told = [index for index, term in enumerate(said.terms) if term.weight > GRAMMAR_WEIGHT]
    return any(credit_at(said.terms, index, evidence) for index in told)


def _has_fact(said: Reading) -> bool:
    return any(term.fact is not None for term in said.terms)


_ASKS_FOR_SEVERAL = re.compile(
    r"\b(?:list|name the|what are|who are|which are|what were|who were|where is|both)\b", re.IGNORECASE
)


def _doubt_other(best: Agreement, ways: Sequence[str], answer: str) -> str:
    """Why an answer that lacks the reference may give it in other words."""
    if is_noncommittal(answer) or (best.verdict == "contradicted" and len(best.said.terms) > _MAX_SHORT_REFERENCE):
        return ""
    if best.verdict == "contradicted" and _is_denied(best.said, answer):
        return ""
    told_apart = {
        frozenset(term.key for term in read_statement(way).terms if term.weight > GRAMMAR_WEIGHT) for way in ways
    }
    if best.score > _SURELY_OTHER and (best.verdict != "contradicted" or len(told_apart) > 1):
        return "the answer gives a part of the reference"
    if not all(_is_specific(way) for way in ways) or len(ways) > 3:
        return "the reference may be said in other words"
    given = read_statement(answer)
    told = [_facts(read_statement(way)) for way in ways]
    if any(_near(ours, theirs) for facts in told for ours in (*facts, *_span(facts)) for theirs in _facts(given)):
        return "the answer gives it less exactly"
    return "the answer may say it in other words" if len(answer.split()) > _WORDY else ""


def _is_denied(said: Reading, answer: str) -> bool:
    """`There are not 10`: each mention of a number or name that is looked for is right after a negation."""
    told = {term.key for term in said.terms if term.fact is not None or term.name}
    mentions = [(term, reading) for reading in map(read_statement, split_statements(answer)) for term in reading.terms]
    found = [(term, reading) for term, reading in mentions if term.key in told]
    return bool(found) and all(term.denied and not _LIMITED.search(reading.text) for term, reading in found)


_LIMITED = re.compile(r"\b(?:until|till|before|unless|only|without|except|but)\b", re.IGNORECASE)
"""`not until 1989` says 1989."""


def _is_specific(way: str) -> bool:
    """A name, a number or a date can hardly be said in other words."""
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
    """The year of a date or within a span, the decade or century of a year, a number that is rounded."""
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
    """The ways a reference gives to say it: `1979/21 July 1979` has two, `1/2`, `km/h` and a web address have one."""
    if re.fullmatch(r"\s*\d{1,4}\s?/\s?\d{1,2}(?:\s?/\s?\d{2,4})?\s*", reference) or "://" in reference:
        return [reference.strip()]
    found = [way.strip() for way in _SEPARATOR.split(reference)]
    return list(dict.fromkeys(way for way in found if any(character.isalnum() for character in way)))


_SEPARATOR = re.compile(
    r"(?<!\b[a-z])(?<!\bkm)(?<!\bmi)(?<!\band)(?<!\d/\d)(?<!\d/\d\d)/(?!(?:h|s|or|hr|min)\b)(?!\d{1,2}/\d)"
)
"""A slash that is no part of a date, a fraction or a unit such as km/h."""


def _without_footnotes(answer: str) -> str:
    """Footnote marks lose their hold on words: `Tremblay123` and `[1]`, as answers with citations have them."""
    answer = re.sub(r"\[\d{1,3}\]|\[\^\d{1,3}\^?\]", " ", answer)
    return re.sub(r"(?<=[a-z]{3})(?=\d{1,4}(?:\W|$))", " ", answer)


def _compare(way: str, said: Reading, known: PassageIndex, asked: Reading) -> Agreement:
    if sum(term.weight > GRAMMAR_WEIGHT for term in said.terms) > _MAX_SHORT_REFERENCE:
        return _statement_by_statement(way, known)
    evidence = known.evidence(said)
    share, missing = _recall(said, evidence, asked.keys)
    denied = tuple(_denials(said, evidence, asked)) if share >= AGREES_FROM else ()
    if denied:
        return Agreement(share * _DENIED, "contradicted", missing, denied, f"the answer denies “{denied[0]}”")
    replaced = next(_replacements(said, evidence, asked.keys), None)
    if replaced:
        ours, theirs = replaced
        score = min(share, _REPLACED)
        return Agreement(score, "contradicted", missing, (ours,), f"the answer says “{theirs}” instead of “{ours}”")
    if share >= AGREES_FROM:
        return Agreement(share, "same", missing, (), f"the answer gives “{way}”")
    shown = ", ".join(f"“{word}”" for word in missing[:5])
    return Agreement(share, "different", missing, (), f"the answer does not give {shown} of the reference")


def _recall(said: Reading, evidence: Evidence, asked: frozenset[str]) -> tuple[float, tuple[str, ...]]:
    """Which share of the reference the answer gives; what the question says anyway counts little."""
    total = found = 0.0
    missing: list[str] = []
    for index, term in enumerate(said.terms):
        weight = max(term.weight, 0.1)
        if term.key in asked:
            weight *= _IN_QUESTION
        known = credit_at(said.terms, index, evidence)
        total += weight
        found += weight * known
        if not known and term.weight > GRAMMAR_WEIGHT:
            missing.append(term.text)
    return (found / total if total else 0.0), tuple(missing)


def _denials(said: Reading, evidence: Evidence, asked: Reading) -> Iterator[str]:
    """What the answer only ever denies of what the reference states; a negation that the question has is no denial."""
    if said.denials:
        return
    doubted = {denial[:1] for denial in asked.denials}
    mentions: dict[str, set[bool]] = {}
    for reading in evidence.readings:
        denied = {key for denial in reading.denials if denial[:1] not in doubted for key in denial}
        for term in reading.terms:
            mentions.setdefault(term.key, set()).add(term.key in denied)
    for term in said.terms:
        if term.weight > GRAMMAR_WEIGHT and term.key not in asked.keys and mentions.get(term.key) == {True}:
            yield term.text


def _replacements(said: Reading, evidence: Evidence, asked: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Names of the reference in whose place, beside what the answer does give of it, another name stands."""
    told = [term for term in said.terms if term.weight > GRAMMAR_WEIGHT]
    ours = {term.key for term in told}
    for index, term in enumerate(told):
        if len(term.text) == 1 or not term.text[0].isupper() or term.key in asked or credit_at(told, index, evidence):
            continue
        for neighbour, step in ((index - 1, 1), (index + 1, -1)):
            if 0 <= neighbour < len(told) and told[neighbour].key in evidence.polarity:
                other = _constant_neighbor(told[neighbour].key, step, evidence)
                if other and other not in ours and other not in asked:
                    yield term.text, other


def _constant_neighbor(term_key: str, step: int, evidence: Evidence) -> str:
    """The name on one side of a term wherever the answer has it; empty if there is one mention without."""
    found = ""
    for reading in evidence.readings:
        told = [term for term in reading.terms if term.weight > GRAMMAR_WEIGHT]
        for index, term in enumerate(told):
            if term.key == term_key:
                beside = told[index + step] if 0 <= index + step < len(told) else None
                if beside is None or not beside.name:
                    return ""
                found = beside.key
    return found


def _statement_by_statement(way: str, known: PassageIndex) -> Agreement:
    """A long reference is given as far as the answer backs each of its statements."""
    scores: list[float] = []
    missing: list[str] = []
    denied: list[str] = []
    for statement in split_statements(way):
        said = read_statement(statement)
        judged = judge_statement(said, known.evidence(said))
        scores.append(judged.share)
        if judged.verdict == "contradicted":
            denied.append(statement)
        elif judged.verdict != "supported":
            missing.append(statement)
    score = sum(scores) / len(scores)
    if denied:
        score = min(score, AGREES_FROM - 0.1)
        return Agreement(score, "contradicted", tuple(missing), tuple(denied), f"the answer contradicts “{denied[0]}”")
    if score >= AGREES_FROM:
        return Agreement(score, "same", tuple(missing), (), "the answer says what the reference says")
    return Agreement(score, "different", tuple(missing), (), f"the answer lacks “{(missing or [way])[0]}”")
