"""Finds contradictions of a statement in the evidence: an opposite word, a negation, swapped roles.

An opposite word or a negation somewhere in a passage is not enough, since it may be about something else. So the
nearest content word of a negation decides, an opposite needs a common neighbor, and roles are compared in plain active
sentences only.
"""

from __future__ import annotations

from collections.abc import Iterator

from proctor.judging.rule_judge.evidence import Evidence
from proctor.judging.rule_judge.passage_reading import Reading, Term
from proctor.judging.rule_judge.words import GRAMMAR_WEIGHT, denied_words, opposites, word_key

_NEIGHBOURS = 2
_ENDS = frozenset(word_key(word) for word in ("open", "opens", "closed", "start", "valid"))
_NEAREST = 3
"""How many terms after a negation are tried for one that the other side mentions; one fewer in the evidence, which
says more than the statement repeats."""


def contradictions(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """Each thing that the evidence says otherwise, in words for a report."""
    yield from _denials(statement, evidence)
    yield from _opposites(statement, evidence)
    yield from _swapped_roles(statement, evidence)


def _denials(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """The nearest telling term of a negation decides: it is denied on one side and said plainly on the other."""
    for denial in statement.denials:
        flipped = _first_flipped(denial[:_NEAREST], evidence.polarity)
        # `Dogs are not allowed` denies as much as `you cannot bring a dog`, of another word.
        if flipped and not all(reading.denials for reading in evidence.readings if flipped in reading.keys):
            yield f"it denies “{_text_of(flipped, statement.terms)}”, which the context states"
    plain = {term.key: {term.denied} for term in statement.terms if term.weight > GRAMMAR_WEIGHT}
    for reading in evidence.readings:
        for denial in () if statement.denials else reading.denials:
            flipped = _first_flipped(denial[: _NEAREST - 1], plain)
            if flipped and evidence.polarity.get(flipped) == {True}:
                yield f"it states “{_text_of(flipped, statement.terms)}”, which the context denies"


def _first_flipped(keys: tuple[str, ...], polarity: dict[str, set[bool]]) -> str | None:
    """The first of the denied keys that the other side mentions, if it only ever says it plainly."""
    for term_key in keys:
        if term_key in polarity:
            return term_key if polarity[term_key] == {False} else None
    return None


def _text_of(term_key: str, terms: tuple[Term, ...]) -> str:
    return next((term.text for term in terms if term.key == term_key), term_key)


def _opposites(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """A word where the evidence has its opposite beside the same neighbours."""
    for index, term in enumerate(statement.terms):
        if term.key in _ENDS and {"until", "till"} & {other.text.lower() for other in statement.terms}:
            continue  # what is open until six closes at six
        against = (opposites().get(term.key, set()) | denied_words(term.text)) & evidence.polarity.keys()
        if not against or term.key in evidence.polarity or against & statement.keys:
            continue
        beside = _neighbors(statement.terms, index)
        for reading in evidence.readings:
            for position, other in enumerate(reading.terms):
                agrees = not beside or beside & _neighbors(reading.terms, position)
                if other.key in against and other.denied == term.denied and agrees:
                    yield f"it says “{term.text}” where the context says “{other.text}”"
                    return


def _neighbors(terms: tuple[Term, ...], index: int) -> set[str]:
    before = [term.key for term in terms[:index] if term.weight > GRAMMAR_WEIGHT][-_NEIGHBOURS:]
    after = [term.key for term in terms[index + 1 :] if term.weight > GRAMMAR_WEIGHT][:_NEIGHBOURS]
    return {*before, *after}


def _swapped_roles(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """`A beat B` where the evidence has `B beat A`, both in the active voice."""
    triple = _active_triple(statement)
    if triple is None or triple[0] == triple[2]:
        return
    subject, verb, target = triple
    for reading in evidence.readings:
        if _active_triple(reading) == (target, verb, subject):
            names = (_text_of(key, statement.terms) for key in (subject, target))
            yield "“{}” and “{}” have changed places".format(*names)


def _active_triple(reading: Reading) -> tuple[str, str, str] | None:
    """Subject, verb and object of a plain active sentence: two names with one telling word between them."""
    told = [term for term in reading.terms if term.weight > GRAMMAR_WEIGHT]
    names = [index for index, term in enumerate(told) if term.name or term.text[0].isupper()]
    if len(names) < 2 or names[0] != 0 or any(term.text.lower() == "by" for term in reading.terms):
        return None
    first_run = next(index for index in names if index + 1 not in names)  # first and family name
    between = told[first_run + 1 : first_run + 2]
    if not between or between[0].name or first_run + 2 not in names:
        return None
    return told[first_run].key, between[0].key, told[first_run + 2].key
