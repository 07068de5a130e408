"""What a text is about by name: people, places and things, numbers and dates."""

from __future__ import annotations

from proctor.judging.embedded.reading import Reading, Term, read
from proctor.judging.embedded.statements import statements


def entities(text: str) -> list[str]:
    """The names, numbers and dates of a text, each once, in the order of first mention."""
    found: dict[str, str] = {}
    for statement in statements(text):
        for name in _named(read(statement)):
            found.setdefault(name.lower(), name)
    return list(found.values())


def _named(reading: Reading) -> list[str]:
    """Neighbouring names are one: `Marie Curie`."""
    found: list[str] = []
    run: list[Term] = []
    for term in reading.terms:
        if term.name or (run and term.text[:1].isupper() and term.weight > 0):
            run.append(term)
            continue
        if run:
            found.append(" ".join(part.text for part in run))
            run = []
        if term.fact is not None and not (term.weight < 1):
            found.append(term.text)
    if run:
        found.append(" ".join(part.text for part in run))
    return found
