"""Commands of plugins: at the top, in a group of ours, and one that cannot be loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import pytest

from proctor.plugins import Command as Row
from proctor.plugins import Plugin, PluginError

Command = Callable[..., Any]


@click.command("greet")
@click.argument("name")
def greet(name: str) -> int:
    """Greet someone."""
    click.echo(f"hello {name}")
    return 0


PLUGIN = Plugin(
    name="acme",
    commands=[
        Row(name="greet", help="Greet someone.", target=f"{__name__}:greet", section="acme"),
        Row(name="dataset greet", help="Greet a dataset.", target=f"{__name__}:greet"),
    ],
)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.cli.commands.installed_plugins", lambda: (PLUGIN,))


@pytest.mark.usefixtures("installed")
def test_a_package_adds_a_command_and_one_to_a_group_of_ours(proctor: Command) -> None:
    assert proctor("greet", "you").out == "hello you\n"
    assert "acme         greet" in proctor("--help").out
    assert proctor("dataset", "greet", "you").out == "hello you\n"


def test_a_plugin_that_cannot_be_loaded_stops_no_command_of_ours(
    proctor: Command, suite: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> tuple[Plugin, ...]:
        raise PluginError("the plugin 'acme' could not be loaded")

    monkeypatch.setattr("proctor.cli.commands.installed_plugins", broken)
    suite()
    assert proctor("test").code == 0
    helped = proctor("--help")
    assert helped.code == 0
    assert "warning: the plugin 'acme' could not be loaded" in helped.err
    ended = proctor("gret")
    assert ended.code == 2
    assert "no command 'gret'" in ended.err
