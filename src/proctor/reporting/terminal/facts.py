"""Prints facts about a trial in two columns: labels and texts."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.reporting.explain import CALL_COLUMNS, DetailLevel, Fact, truncation_note
from proctor.reporting.terminal.screen import Screen, Span, display_width, escape_control, fold
from proctor.reporting.wording import STYLES, plural

INDENT = 7
MAX_LABEL_WIDTH = 26


def print_facts(screen: Screen, facts: Sequence[Fact], detail: DetailLevel) -> None:
    """Print each fact with its label in the first column and its text, wrapped, in the second."""
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
        for line in _text_lines(fact, room, detail.lines):
            screen.line(label, line, hang=INDENT + column)
            label = " " * (INDENT + column)


def _stack_columns(facts: Sequence[Fact], room: int) -> list[Fact]:
    """The facts with expected and actual calls below each other, for a screen too narrow for two more columns."""
    column = max(map(len, CALL_COLUMNS)) + 2
    stacked: list[Fact] = []
    label = ""
    for fact in facts:
        if fact.pair is None:
            stacked.append(fact)
        elif fact.pair == CALL_COLUMNS:
            label = fact.label
        else:
            for title, text in zip(CALL_COLUMNS, fact.pair, strict=True):
                lines = fold(escape_control(text), room - column)
                stacked.append(Fact(label, f"{title:<{column}}" + f"\n{' ' * column}".join(lines)))
                label = ""
    return stacked


def _text_lines(fact: Fact, room: int | None, limit: int) -> list[str]:
    """The text in lines of at most `room` columns, cut after `limit` lines, or before the last of them."""
    text = fact.text
    lines = escape_control(text).expandtabs(4).split("\n")
    if room is not None:
        lines = [piece for line in lines for piece in fold(line, room)]
    if len(lines) > limit and fact.ends_matter:
        return ["...", *lines[-limit + 1 :]]
    if len(lines) > limit:
        lines = [*lines[:limit], truncation_note(text) or f"... ({plural(len(lines) - limit, 'more line')})"]
    return lines
