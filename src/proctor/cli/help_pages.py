"""Formats `--help`: options under headings, and examples.

    @click.command("test", cls=DocumentedCommand, examples=("proctor test suite.yaml",))
    @option("--repeat", group=EXECUTION, type=int, help="Run each case N times.")
    def command(repeat): ...

An option names its heading where it is declared. Headings appear in the order of the options; --help comes last. A
command with few options, or with options without a heading, shows one list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

SELECT_CASES = "Select cases"
AGENT_AND_JUDGE = "Agent and judge"
EXECUTION = "Execution"
REGRESSION_GATE = "Regression gate"
STORED_RUNS = "Stored runs"
OUTPUT = "Output"

MAX_UNGROUPED = 8
"""A command with at most this many options shows them in one list."""


class GroupedOption(click.Option):
    """An option with the heading under which the help lists it."""

    def __init__(self, *args: Any, group: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.group = group

    def get_help_extra(self, ctx: click.Context) -> Any:
        """The additions of click without the range of numbers; help texts mention it where it matters."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


def option(*names: str, group: str, **settings: Any) -> Callable[[F], F]:
    """Like `click.option`, with the heading under which the help lists it."""
    return click.option(*names, cls=GroupedOption, group=group, **settings)


class DocumentedCommand(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)
        write_examples(self.examples, formatter)


class DocumentedGroup(click.Group):
    """A group of commands whose help ends with examples."""

    command_class = DocumentedCommand

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)
        write_examples(self.examples, formatter)


def write_options(command: click.Command, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    """Write the options, heading by heading or in one list."""
    rows = [
        (getattr(item, "group", ""), row)
        for item in command.get_params(ctx)
        if isinstance(item, click.Option) and (row := item.get_help_record(ctx))
    ]
    *own, (_, help_row) = rows  # --help comes last
    if len(rows) <= MAX_UNGROUPED or not all(group for group, _ in own):
        own = [("Options", row) for _, row in own]
    headings: dict[str, list[tuple[str, str]]] = {}
    for group, row in own:
        headings.setdefault(group, []).append(row)
    headings.setdefault(own[-1][0] if own else "Options", []).append(help_row)
    for title, entries in headings.items():
        with formatter.section(title):
            formatter.write_dl(entries)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write the examples, one per line."""
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
