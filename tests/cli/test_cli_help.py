"""`--help`: ten commands first, options under headings, examples that can be typed; and old names of commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

from proctor.cli import group
from proctor.cli.commands import COMMANDS, HIDDEN, RENAMED, runs_user_code
from proctor.plugins import load

Command = Callable[..., Any]


def _commands(command: click.Command = group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that is listed, with the words that call it."""
    if words:
        yield " ".join(words), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None, name
            yield from _commands(found, (*words, name))


def _examples() -> Iterator[tuple[str, str]]:
    for words, command in _commands():
        yield from ((words, example) for example in getattr(command, "examples", ()))


@pytest.mark.parametrize(("words", "example"), list(_examples()), ids=lambda text: str(text)[:40])
def test_an_example_is_shown_and_can_be_typed(proctor: Command, words: str, example: str) -> None:
    assert f"\n  {example}\n" in proctor(*words.split(), "--help").out
    program, *rest = shlex.split(example)
    assert program == "proctor"
    command: click.Command = group
    context = click.Context(group, help_option_names=["-h", "--help"])
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        word, *rest = rest
        found = command.get_command(context, word)
        assert found is not None, word
        command = found
    command.make_context("x", rest, parent=context)


def test_the_first_page_shows_ten_commands_and_names_the_others(proctor: Command) -> None:
    told = proctor("--help").out
    first, more = told.split("Commands:\n")[1].split("\n\nMore commands (proctor COMMAND --help):\n")
    assert [line.split()[0] for line in first.splitlines()] == [
        "init",
        "test",
        "show",
        "compare",
        "view",
        "runs",
        "baseline",
        "approve",
        "dataset",
        "doctor",
    ]
    others = {name.strip(",") for line in more.split("\n\n")[0].splitlines() for name in line[15:].split()}
    assert others >= {"rescore", "grade", "flaky", "quarantine", "trace", "list", "mcp", "completion"}
    assert others.isdisjoint({"analyze", "plan", "accept", "export"})
    assert all(len(line) <= 80 for line in told.splitlines())


@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_every_command_can_be_loaded_and_has_a_line_of_help(proctor: Command, row: Any) -> None:
    assert isinstance(load(row.target), click.Command)
    assert row.section == HIDDEN or row.help.endswith(".")
    ended = proctor(row.name, "--help")
    assert ended.code == 0
    assert all(len(line) <= 80 or "  proctor" in line or "{" in line for line in ended.out.splitlines()), ended.out


def test_no_option_is_missing_in_the_help(proctor: Command) -> None:
    for words, command in _commands():
        told = proctor(*words.split(), "--help").out
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert f"  {parameter.opts[0]}" in told, (words, parameter.opts)
        assert told.count("-h, --help") == 1


def test_options_stand_under_the_headings_that_they_name(proctor: Command) -> None:
    told = proctor("test", "--help").out
    headings = [line for line in told.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [
        "Select cases:",
        "Agent and judge:",
        "Execution:",
        "Regression gate:",
        "Stored runs:",
        "Output:",
        "Examples:",
    ]
    assert "-e, --evaluator NAME[={json}]" in told
    assert "Options:\n" in proctor("doctor", "--help").out


def test_a_group_lists_its_own_commands_and_examples(proctor: Command) -> None:
    told = proctor("baseline", "--help").out
    assert "Commands:\n  accept" in told
    assert "proctor baseline prune suite.yaml --dry-run" in proctor("baseline", "prune", "--help").out


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_works_and_says_the_new_one(proctor: Command, old: str) -> None:
    ended = proctor(old, "--help")
    assert ended.code == 0
    assert ended.err == f"note: `proctor {old}` is now `proctor {RENAMED[old]}`\n"
    if "--" not in RENAMED[old]:
        assert ended.out == proctor(*RENAMED[old].split(), "--help").out
    assert f"  {old} " not in proctor("--help").out


def test_only_commands_that_may_load_a_suite_or_an_agent_are_guarded() -> None:
    assert runs_user_code(["test", "suite.yaml"])
    assert runs_user_code(["record", "suite.yaml"])
    assert runs_user_code(["plan"])
    assert runs_user_code(["of-another-package"])
    assert not runs_user_code(["runs", "export"])
    assert not runs_user_code(["evaluators"])
    assert not runs_user_code(["test", "--help"])
    assert not runs_user_code([])
