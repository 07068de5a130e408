"""Facts about a trial on the screen: the word that introduces each, and its text beside it."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.reporting.explain import CALL_COLUMNS, DetailLevel, Fact, truncation_note
from proctor.reporting.terminal.screen import Screen, Span, display_width, escape_control, fold
from proctor.reporting.wording import STYLES, plural

INDENT = 7
MAX_LABEL_WIDTH = 26


def print_facts(screen: Screen, facts: Sequence[Fact], detail: DetailLevel) -> None:
    """Facts in two columns: the word that introduces each, and its text."""
    column = min(MAX_LABEL_WIDTH, max((len(fact.label) for fact in facts), default=0)) + 2
    room = None if screen.width is None else max(30, screen.width - INDENT - column)
    if room is not None and any(fact.pair is not None and display_width(fact.text) > room for fact in facts):
        facts = _stack_columns(facts, room)
    for fact in facts:
        style = "dim" if fact.outcome is None else STYLES[fact.outcome]
        label: Span = (f"{' ' * INDENT}{escape_control(fact.label):<{column}}", style)
        if len(fact.label) > column - 2:
            screen.line(label)
            label = " " * (INDENT + column)
        for line in _text_lines(fact.text, room, detail.lines):
            screen.line(label, line, hang=INDENT + column)
            label = " " * (INDENT + column)


def _stack_columns(facts: Sequence[Fact], room: int) -> list[Fact]:
    """Facts of two columns with one below the other, for a screen that is too narrow for both."""
    column = max(map(len, CALL_COLUMNS)) + 2
    told: list[Fact] = []
    label = ""
    for fact in facts:
        if fact.pair is None:
            told.append(fact)
        elif fact.pair == CALL_COLUMNS:
            label = fact.label
        else:
            for title, text in zip(CALL_COLUMNS, fact.pair, strict=True):
                lines = fold(escape_control(text), room - column)
                told.append(Fact(label, f"{title:<{column}}" + f"\n{' ' * column}".join(lines)))
                label = ""
    return told


def _text_lines(text: str, room: int | None, most: int) -> list[str]:
    lines = escape_control(text).expandtabs(4).split("\n")
    if room is not None:
        lines = [piece for line in lines for piece in fold(line, room)]
    if len(lines) > most:
        lines = [*lines[:most], truncation_note(text) or f"... ({plural(len(lines) - most, 'more line')})"]
    return lines
