"""Whether a statement speaks to a question, and whether it commits itself to anything."""

from __future__ import annotations

import re
from functools import cache

from proctor.judging.embedded.embeddings import likeness
from proctor.judging.embedded.evidence import Evidence, library
from proctor.judging.embedded.reading import Reading, read
from proctor.judging.embedded.support import coverage
from proctor.judging.embedded.words import GRAMMAR_WEIGHT

RELEVANT_FROM = 0.35
"""From this score on a statement counts as speaking to the question, and a passage as useful for it."""
_PROMISED = 0.3
"""What a statement earns that has the kind of thing asked for: a number for `how many`, a name for `who`."""


def relevance(question: str, statement: str) -> tuple[float, str]:
    """How far a statement addresses the question, with the reason."""
    if noncommittal(statement):
        return 0.0, "it does not commit itself to an answer"
    asked, said = read(question), read(statement)
    if not any(term.weight > GRAMMAR_WEIGHT for term in said.terms):
        return (0.5, "it answers yes or no") if _yes_or_no(question, statement) else (0.0, "it says nothing")
    shared = _shared(asked, said)
    promised = _kind_asked_for(question, said)
    score = _or_likeness(min(1.0, shared + (_PROMISED if promised else 0.0)), question, statement)
    if score >= RELEVANT_FROM:
        return score, f"it gives {promised}" if promised and not shared else "it speaks of what the question asks"
    return score, "it shares little with the question"


def context_relevance(question: str, passage: str) -> tuple[float, str]:
    """How far a passage holds what the question asks about, with the reason."""
    asked = read(question)
    found = coverage(asked, library(passage).evidence(asked))
    if not found.claims:
        return 0.0, "the question names nothing to look for"
    lacking = {term.key for term in found.missing}
    told = [term for term in asked.terms if term.weight > GRAMMAR_WEIGHT]
    score = sum(term.weight for term in told if term.key not in lacking) / sum(term.weight for term in told)
    score = _or_likeness(score, question, passage)
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


def _or_likeness(score: float, question: str, text: str) -> float:
    """Where words alone do not show that a text is relevant, its meaning may, if sentence embeddings are installed."""
    return score if score >= RELEVANT_FROM else max(score, likeness(question, text) or 0.0)


def _shared(asked: Reading, said: Reading) -> float:
    """The larger of two shares: of the question in the statement, and of the statement in the question."""
    forth, back = coverage(asked, Evidence([said])), coverage(said, Evidence([asked]))
    return max(_told(asked, forth.missing), _told(said, back.missing))


def _told(reading: Reading, missing: tuple[object, ...]) -> float:
    told = [term for term in reading.terms if term.weight > GRAMMAR_WEIGHT]
    lacking = sum(getattr(term, "weight", 0.0) for term in missing)
    total = sum(term.weight for term in told)
    return 1 - lacking / total if total else 0.0


def _kind_asked_for(question: str, said: Reading) -> str:
    low = question.lower()
    if re.search(r"\bhow (?:many|much|long|old|far|tall|often|big)\b|\bwhat (?:percentage|number|price)\b", low):
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
