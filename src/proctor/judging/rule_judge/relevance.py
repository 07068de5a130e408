"""Whether a statement addresses a question, and whether it claims anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from proctor.judging.rule_judge.evidence import Evidence, library
from proctor.judging.rule_judge.passage_reading import Reading, read
from proctor.judging.rule_judge.support import coverage
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT

RELEVANT_FROM = 0.35
"""From this score on a statement counts as speaking to the question, and a passage as useful for it."""
DECLINES = "it does not commit itself to an answer"
_SHORT = 4
"""Telling words of an answer that is no more than the answer."""
_PROMISED = 0.35
"""What a statement earns that has the kind of thing asked for: a number for `how many`, a name for `who`."""


def relevance(question: str, statement: str) -> tuple[float, str]:
    """How far a statement addresses the question, with the reason."""
    if noncommittal(statement):
        return 0.0, DECLINES
    asked, said = read(question), read(statement)
    if not any(term.weight > GRAMMAR_WEIGHT for term in said.terms):
        return (0.5, "it answers yes or no") if _yes_or_no(question, statement) else (0.0, "it says nothing")
    shared = _shared(asked, said)
    promised = _kind_asked_for(question, said) or _figure_like_those_asked_about(asked, said)
    score = min(1.0, shared + (_PROMISED if promised else 0.0))
    if score >= RELEVANT_FROM:
        return score, f"it gives {promised}" if promised and not shared else "it speaks of what the question asks"
    return score, "it shares little with the question"


def relevances(question: str, texts: Sequence[str]) -> list[tuple[float, str]]:
    """How far each statement of an answer addresses the question.

    A statement that carries on what a relevant one says is relevant too, however little it repeats of the question; and
    a short answer that commits itself is an answer.
    """
    own = [relevance(question, text) for text in texts]
    if len(texts) == 1 and own[0][0] < RELEVANT_FROM and own[0][1] != DECLINES and _is_short_answer(texts[0]):
        return [(RELEVANT_FROM, "a short answer")]
    readings = [read(text) for text in texts]
    reached = {i for i, (score, _) in enumerate(own) if score >= RELEVANT_FROM}
    while further := {
        i
        for i, (score, reason) in enumerate(own)
        if i not in reached and reason != DECLINES and any(_carries_on(readings[i], readings[j]) for j in reached)
    }:
        reached |= further
    return [
        (RELEVANT_FROM, "it carries on what was said") if i in reached and found[0] < RELEVANT_FROM else found
        for i, found in enumerate(own)
    ]


def _is_short_answer(text: str) -> bool:
    """A name, a date or a figure, with hardly a word around it."""
    said = read(text)
    telling = [term for term in said.terms if term.weight > GRAMMAR_WEIGHT]
    names = any(term.name for term in telling)
    return len(telling) <= _SHORT and bool(names or said.quantities or said.days)


def _carries_on(one: Reading, other: Reading) -> bool:
    """Whether two statements speak of the same thing, or both give figures."""
    mine = {term.key for term in one.terms if term.weight > GRAMMAR_WEIGHT}
    theirs = {term.key for term in other.terms if term.weight > GRAMMAR_WEIGHT}
    return bool(mine & theirs) or bool(one.quantities and other.quantities)


def context_relevance(question: str, passage: str) -> tuple[float, str]:
    """How far a passage holds what the question asks about, with the reason."""
    asked = read(question)
    found = coverage(asked, library(passage).evidence(asked))
    if not found.claims:
        return 0.0, "the question names nothing to look for"
    lacking = {term.key for term in found.missing}
    told = [term for term in asked.terms if term.weight > GRAMMAR_WEIGHT]
    score = sum(term.weight for term in told if term.key not in lacking) / sum(term.weight for term in told)
    if score >= RELEVANT_FROM:
        return score, "it speaks of what the question asks"
    return score, "it does not mention " + ", ".join(f"“{term.text}”" for term in found.missing[:5])


def noncommittal(text: str) -> bool:
    """Whether the text declines to answer: `I don't know`, `there is no information about that`."""
    match = _declining().search(text[:600].replace("’", "'"))
    return match is not None


@cache
def _declining() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:i|we)(?: am|'m| are|'re)?(?: really| honestly)?"
        r" (?:do not|don't|did not|didn't|cannot|can't|could not|couldn't|not|unable to|have no|am unable to)"
        r"(?: \w{1,12}){0,2}? "
        r"(?:know|sure|certain|answer|say|tell|find|determine|provide|help|access|information|idea|aware)\b"
        r"|\b(?:as an ai|no information (?:is |was )?(?:available|provided|given|found)|not enough information"
        r"|(?:is|are|was|were) (?:unknown|unclear|not (?:known|clear|specified|mentioned|provided|stated|available))"
        r"|has not (?:yet )?been announced|it depends|insufficient information"
        r"|sorry, (?:but )?i (?:can|do|could)n?'?t)\b",
        re.IGNORECASE,
    )


def _shared(asked: Reading, said: Reading) -> float:
    """The larger of two shares: of the question in the statement, and of the statement in the question."""
    forth, back = coverage(asked, Evidence([said])), coverage(said, Evidence([asked]))
    return max(_told(asked, forth.missing), _told(said, back.missing))


def _told(reading: Reading, missing: tuple[object, ...]) -> float:
    told = [term for term in reading.terms if term.weight > GRAMMAR_WEIGHT]
    lacking = sum(getattr(term, "weight", 0.0) for term in missing)
    total = sum(term.weight for term in told)
    return 1 - lacking / total if total else 0.0


def _figure_like_those_asked_about(asked: Reading, said: Reading) -> str:
    """Money where the question speaks of money, months where it speaks of months."""
    units = {item.unit for item in asked.quantities if item.unit}
    return "a figure of the kind asked about" if any(item.unit in units for item in said.quantities) else ""


def _kind_asked_for(question: str, said: Reading) -> str:
    low = question.lower()
    if re.search(
        r"\bhow (?:many|much|long|old|far|tall|often|big)\b|\bwhat (?:percentage|number|price)\b"
        r"|\b(?:calculate|compute|compare|estimate|schedule|cost|costs|price|amount|total)\b",
        low,
    ):
        return "a number" if said.quantities else ""
    if re.search(r"\bwhen\b|\bwhat (?:year|date|day|time)\b", low):
        return "a date" if said.days or said.quantities else ""
    if re.search(r"\b(?:who|whose|where|which)\b", low):
        return "a name" if any(term.name for term in said.terms) else ""
    return ""


def _yes_or_no(question: str, statement: str) -> bool:
    asks = re.match(
        r"\s*(?:is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|may)\b", question, re.I
    )
    return bool(asks and re.match(r"\W*(?:yes|no|yeah|nope|sure|of course)\b", statement, re.I))
