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

_MAX_NEIGHBORS = 2
"""How many content words on each side of a word are compared."""
_ENDS = frozenset(word_key(word) for word in ("open", "opens", "closed", "start", "valid"))
_MAX_DENIED_TERMS = 3
"""How many terms after a negation are looked up in the other text; one fewer if the negation is in the evidence, which
says more than the statement repeats."""


def contradictions(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """Each contradiction between the statement and the evidence, as a reason for the report."""
    yield from _denials(statement, evidence)
    yield from _opposites(statement, evidence)
    yield from _swapped_roles(statement, evidence)


def _denials(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """Contradictions where one text denies the nearest content term of a negation and the other states it."""
    for denial in statement.denials:
        flipped = _first_flipped(denial[:_MAX_DENIED_TERMS], evidence.polarity)
        # `Dogs are not allowed` and `you cannot bring a dog` deny different words but say the same.
        if flipped and not all(reading.denials for reading in evidence.readings if flipped in reading.keys):
            yield f"it denies “{_text_of(flipped, statement.terms)}”, which the context states"
    plain = {term.key: {term.denied} for term in statement.terms if term.weight > GRAMMAR_WEIGHT}
    for reading in evidence.readings:
        for denial in () if statement.denials else reading.denials:
            flipped = _first_flipped(denial[: _MAX_DENIED_TERMS - 1], plain)
            if flipped and evidence.polarity.get(flipped) == {True}:
                yield f"it states “{_text_of(flipped, statement.terms)}”, which the context denies"


def _first_flipped(keys: tuple[str, ...], polarity: dict[str, set[bool]]) -> str | None:
    """The first denied key that the other text mentions, if that text never denies it."""
    for term_key in keys:
        if term_key in polarity:
            return term_key if polarity[term_key] == {False} else None
    return None


def _text_of(term_key: str, terms: tuple[Term, ...]) -> str:
    return next((term.text for term in terms if term.key == term_key), term_key)


def _opposites(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """Contradictions where the evidence has the opposite of a word next to the same neighbors."""
    for index, term in enumerate(statement.terms):
        if term.key in _ENDS and {"until", "till"} & {other.text.lower() for other in statement.terms}:
            continue  # what is open until six closes at six
        against = (opposites().get(term.key, set()) | denied_words(term.text)) & evidence.polarity.keys()
        if not against or term.key in evidence.polarity or against & statement.keys:
            continue
        neighbors = _neighbors(statement.terms, index)
        for reading in evidence.readings:
            for position, other in enumerate(reading.terms):
                agrees = not neighbors or neighbors & _neighbors(reading.terms, position)
                if other.key in against and other.denied == term.denied and agrees:
                    yield f"it says “{term.text}” where the context says “{other.text}”"
                    return


def _neighbors(terms: tuple[Term, ...], index: int) -> set[str]:
    before = [term.key for term in terms[:index] if term.weight > GRAMMAR_WEIGHT][-_MAX_NEIGHBORS:]
    after = [term.key for term in terms[index + 1 :] if term.weight > GRAMMAR_WEIGHT][:_MAX_NEIGHBORS]
    return {*before, *after}


def _swapped_roles(statement: Reading, evidence: Evidence) -> Iterator[str]:
    """Contradictions such as `A beat B` where the evidence says `B beat A`, both in the active voice."""
    triple = _active_triple(statement)
    if triple is None or triple[0] == triple[2]:
        return
    subject, verb, target = triple
    for reading in evidence.readings:
        if _active_triple(reading) == (target, verb, subject):
            names = (_text_of(key, statement.terms) for key in (subject, target))
            yield "“{}” and “{}” are swapped".format(*names)


def _active_triple(reading: Reading) -> tuple[str, str, str] | None:
    """Subject, verb and object of a plain active sentence: two names with one content word between them."""
    content = [term for term in reading.terms if term.weight > GRAMMAR_WEIGHT]
    names = [index for index, term in enumerate(content) if term.name or term.text[0].isupper()]
    if len(names) < 2 or names[0] != 0 or any(term.text.lower() == "by" for term in reading.terms):
        return None
    first_run = next(index for index in names if index + 1 not in names)  # first and family name
    between = content[first_run + 1 : first_run + 2]
    if not between or between[0].name or first_run + 2 not in names:
        return None
    return content[first_run].key, between[0].key, content[first_run + 2].key
