"""Facts about a trial on the screen: the word that introduces each, and its text beside it."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.reporting.explain import CALL_TITLES, Detail, Fact, length_told
from proctor.reporting.terminal.screen import Screen, Span, cells, folded, visible
from proctor.reporting.wording import STYLES, counted

INDENT = 7
WIDEST_LABEL = 26


def tell_facts(screen: Screen, facts: Sequence[Fact], detail: Detail) -> None:
    """Facts in two columns: the word that introduces each, and its text."""
    column = min(WIDEST_LABEL, max((len(fact.label) for fact in facts), default=0)) + 2
    room = None if screen.width is None else max(30, screen.width - INDENT - column)
    if room is not None and any(fact.pair is not None and cells(fact.text) > room for fact in facts):
        facts = _stacked(facts, room)
    for fact in facts:
        style = "dim" if fact.outcome is None else STYLES[fact.outcome]
        label: Span = (f"{' ' * INDENT}{visible(fact.label):<{column}}", style)
        if len(fact.label) > column - 2:
            screen.line(label)
            label = " " * (INDENT + column)
        for line in _text_lines(fact.text, room, detail.lines):
            screen.line(label, line, hang=INDENT + column)
            label = " " * (INDENT + column)


def _stacked(facts: Sequence[Fact], room: int) -> list[Fact]:
    """Facts of two columns with one below the other, for a screen that is too narrow for both."""
    column = max(map(len, CALL_TITLES)) + 2
    told: list[Fact] = []
    label = ""
    for fact in facts:
        if fact.pair is None:
            told.append(fact)
        elif fact.pair == CALL_TITLES:
            label = fact.label
        else:
            for title, text in zip(CALL_TITLES, fact.pair, strict=True):
                lines = folded(visible(text), room - column)
                told.append(Fact(label, f"{title:<{column}}" + f"\n{' ' * column}".join(lines)))
                label = ""
    return told


def _text_lines(text: str, room: int | None, most: int) -> list[str]:
    lines = visible(text).expandtabs(4).split("\n")
    if room is not None:
        lines = [piece for line in lines for piece in folded(line, room)]
    if len(lines) > most:
        lines = [*lines[:most], length_told(text) or f"... ({counted(len(lines) - most, 'more line')})"]
    return lines
