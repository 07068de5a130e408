"""Whether a statement makes a claim, and whether it addresses a question.

A statement is relevant if it shares a content word with the question, gives the kind of thing that the question asks
for (a number, a date, a name), answers yes or no, or continues a relevant statement. Counting shared words alone would
fail short answers: "In 1989." shares no word with "When did the wall fall?".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from proctor.judging.rule_judge.passage_reading import Reading, read_statement
from proctor.judging.rule_judge.statements import without_courtesy
from proctor.judging.rule_judge.words import COMMON_WEIGHT, GRAMMAR_WEIGHT, root

_MAX_SHORT_ANSWER = 4
"""The most content words of a short answer."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """Whether a statement addresses a question; a courtesy belongs to an answer without being one."""

    verdict: Literal["relevant", "courtesy", "irrelevant", "unclear"]
    reason: str


def makes_claim(text: str) -> bool:
    """Whether the text claims anything, unlike a greeting, thanks, an offer, a question, or `that is great`.

    `I am not sure, but …` claims what comes after it.
    """
    last = re.split(r"\b(?:but|however|though)\b", text, flags=re.IGNORECASE)[-1]
    if text.rstrip(" \"'*_)”").endswith(("?", ":")) or is_noncommittal(last):
        return False
    bare = without_courtesy(text)
    if any(term.weight > GRAMMAR_WEIGHT for term in read_statement(bare).terms):
        return not _REMARK.fullmatch(bare.strip())
    return _ACTS.search(bare) is not None


_ACTS = re.compile(
    r"\b(?:he|she|they|it|we|i|you)(?: really)? (?:did|do|does|is|are|was|were|would|will|can|could)\b", re.IGNORECASE
)
"""Sentences that claim something without a content word, such as `He did`."""
_REMARK = re.compile(
    r"\W*(?:(?:yes|yeah|oh|ah|wow|well|haha|lol)\W{1,3})*(?:that|it|this|they|those)"
    r"\s?(?:'s|'re| is| are| was| sounds?| seems?)"
    r"(?: (?:so|really|quite|very|pretty|such|a|an|too|definitely|certainly|absolutely|always|all))*"
    r" (?:cool|nice|great|true|good|awesome|amazing|interesting|right|fun|funny|lovely|fantastic|wonderful|bad|sad"
    r"|crazy|weird|neat|correct|impressive|terrible|awful|fine|ok|okay|best|thing|one|fact|idea|shame|pity)\W*",
    re.IGNORECASE,
)
"""A remark about the conversation, such as `that's so cool` or `it is quite nice`."""


def is_noncommittal(text: str) -> bool:
    """Whether the text declines to answer: `I don't know`, `there is no information about that`."""
    return _DECLINING.search(text[:600].replace("’", "'")) is not None


_DECLINING = re.compile(
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


def relevances(question: str, texts: Sequence[str], *, answer: bool = True) -> list[Relevance]:
    """Whether each statement of an answer addresses the question.

    A statement that continues a relevant one is relevant too, even if it repeats little of the question.
    """
    own = [_relevance(question, text, alone=answer and len(texts) == 1) for text in texts]
    readings = [read_statement(text) for text in texts]
    reached = {i for i, found in enumerate(own) if found.verdict == "relevant"}
    while further := {
        i
        for i, found in enumerate(own)
        if i not in reached
        and found.verdict in ("irrelevant", "unclear")
        and found.reason != DECLINES
        and any(_continues(readings[i], readings[j]) for j in reached)
    }:
        reached |= further
    carried = Relevance("relevant", "it continues a relevant statement")
    return [
        carried
        if i in reached and found.verdict != "relevant"
        # A greeting alone is not an answer.
        else Relevance("irrelevant", "no content")
        if found.verdict == "courtesy" and not reached and not any(other.verdict == "unclear" for other in own)
        else found
        for i, found in enumerate(own)
    ]


DECLINES = "it does not give an answer"


def _relevance(question: str, text: str, *, alone: bool) -> Relevance:
    if is_noncommittal(text):
        return Relevance("irrelevant", DECLINES)
    question_reading, reading = read_statement(question), read_statement(text)
    content = [term for term in reading.terms if term.weight > GRAMMAR_WEIGHT]
    direct = _asks_yes_or_no(question) and (
        bool(re.match(r"\W*(?:yes|no|yeah|nope|sure|of course)\b", text, re.I)) or len(content) <= 2
    )
    if direct and reading.terms:
        return Relevance("relevant", "it answers yes or no")
    if not makes_claim(text) and not (alone and content):
        return Relevance("courtesy", "it is a courtesy") if reading.terms else Relevance("irrelevant", "no content")
    shared = _shared_weight(question_reading, reading)
    if shared > COMMON_WEIGHT:
        return Relevance("relevant", "it is about the question")
    kind = _requested_kind(question, reading) or _requested_unit(question_reading, reading)
    if kind and (shared or len(content) <= _MAX_SHORT_ANSWER):
        return Relevance("relevant", f"it gives {kind}")
    if alone and len(content) <= _MAX_SHORT_ANSWER and all(term.name or term.fact is not None for term in content):
        return Relevance("relevant", "it is a short answer")
    if shared or (kind and alone):
        return Relevance("unclear", "it shares little with the question")
    return Relevance("irrelevant", "it shares nothing with the question")


def _asks_yes_or_no(question: str) -> bool:
    last = re.split(r"[.!?,:]\s", question.strip())[-1]
    opens = r"\s*(?:and |so |but )?(?:is|are|was|were|am|do|does|did|can|could|will|would|should|has|have|had|may)\b"
    return last.endswith("?") and re.match(opens, last, re.IGNORECASE) is not None


def _continues(one: Reading, other: Reading) -> bool:
    """Whether two statements share a content word that is not a common one, or both have numbers."""
    mine = {term.key for term in one.terms if term.weight > COMMON_WEIGHT}
    theirs = {term.key for term in other.terms if term.weight > COMMON_WEIGHT}
    return bool(mine & theirs) or bool(one.quantities and other.quantities)


def _shared_weight(question: Reading, statement: Reading) -> float:
    """The weight of the heaviest word that question and statement share, in any form."""
    roots = {root(term.key) for term in question.terms if term.weight > GRAMMAR_WEIGHT}
    return max((term.weight for term in statement.terms if root(term.key) in roots), default=0.0)


def _requested_unit(question: Reading, statement: Reading) -> str:
    """A description if the statement has a number in a unit of the question, such as money or months; else empty."""
    units = {item.unit for item in question.quantities if item.unit}
    return "a number with the unit of the question" if any(item.unit in units for item in statement.quantities) else ""


def _requested_kind(question: str, statement: Reading) -> str:
    """What the question asks for (a number, a date, a name), if the statement has one; else empty."""
    low = question.lower()
    if re.search(
        r"\bhow (?:many|much|long|old|far|tall|often|big)\b|\bwhat (?:percentage|number|price)\b"
        r"|\b(?:calculate|compute|compare|estimate|schedule|cost|costs|price|amount|total)\b",
        low,
    ):
        return "a number" if statement.quantities else ""
    if re.search(r"\bwhen\b|\bwhat (?:year|date|day|time)\b", low):
        return "a date" if statement.days or statement.quantities else ""
    if re.search(r"\b(?:who|whose|where|which)\b", low):
        return "a name" if any(term.name for term in statement.terms) else ""
    return ""
