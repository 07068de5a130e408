"""`--help`: commands in sections, options in groups, examples that can be typed; and old names of commands."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

from proctor.cli import COMMANDS, RENAMED, group
from proctor.cli.help_pages import EXAMPLES

Command = Callable[..., Any]


def _examples() -> Iterator[tuple[str, str]]:
    for name, examples in EXAMPLES.items():
        for example in examples:
            if not name or name.split()[0] in COMMANDS:
                yield name, example


@pytest.mark.parametrize(("name", "example"), list(_examples()), ids=lambda text: str(text)[:40])
def test_an_example_is_shown_and_can_be_typed(proctor: Command, name: str, example: str) -> None:
    assert f"\n  {example}\n" in proctor(*name.split(), "--help").out
    program, *words = shlex.split(example)
    assert program == "proctor"
    command: click.Command = group
    context = click.Context(group, help_option_names=["-h", "--help"])
    while isinstance(command, click.Group):
        word, *words = words
        found = command.get_command(context, word)
        assert found is not None, word
        command = found
    command.make_context("x", words, parent=context)


def test_no_option_is_missing_in_the_help(proctor: Command) -> None:
    told = proctor("test", "--help").out
    command = importlib.import_module("proctor.cli.test").command
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            assert told.count(f"  {parameter.opts[0]}") >= 1, parameter.opts
    assert "-e, --evaluator NAME[={json}]" in told
    assert told.count("-h, --help") == 1


def test_a_group_lists_its_own_commands_and_examples(proctor: Command) -> None:
    told = proctor("baseline", "--help").out
    assert "Commands:\n  accept" in told
    assert "proctor baseline prune suite.yaml --dry-run" in proctor("baseline", "prune", "--help").out


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_works_and_says_the_new_one(proctor: Command, old: str) -> None:
    ended = proctor(old, "--help")
    assert ended.code == 0
    assert ended.err == f"note: `proctor {old}` is called `proctor {RENAMED[old]}` now\n"
    assert ended.out == proctor(*RENAMED[old].split(), "--help").out
    assert old not in COMMANDS
