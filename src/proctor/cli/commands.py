"""The commands of `proctor`: one row each, and how a command is found by its name.

To add a command, write its module and add its row to `COMMANDS`. Another package, and the tools that Proctor ships, add
rows through `Plugin.commands` (`proctor.plugins`); a row called `dataset create` adds `create` to the group `dataset`.
The module of a command is imported when the command is called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.plugins import Command, Plugin, installed_plugins, shipped_plugins

FIRST = "commands"
"""The section that `proctor --help` shows first, one line per command."""
HIDDEN = ""
"""The section of commands that work but are not listed."""


def _row(section: str, name: str, line: str = "", *, target: str = "", runs_user_code: bool = True) -> Command:
    target = target or f"proctor.cli.{name}:command"
    return Command(name=name, help=line, target=target, section=section, runs_user_code=runs_user_code)


COMMANDS = (
    _row(FIRST, "init", "Create a sample suite and agent, and a CI workflow if you want one.", runs_user_code=False),
    _row(FIRST, "test", "Run suites against an agent. With --gate, fail only on regressions."),
    _row(FIRST, "show", "Show a stored run: failures, reasons, scores and judge calls.", runs_user_code=False),
    _row(FIRST, "compare", "Compare two runs and separate real changes from luck.", runs_user_code=False),
    _row(FIRST, "view", "Browse runs, cases, traces and grading in the browser.", runs_user_code=False),
    _row(FIRST, "runs", "List stored runs; export, import and delete them.", runs_user_code=False),
    _row(FIRST, "baseline", "Manage the baseline that `test --gate` compares with."),
    _row(FIRST, "approve", "Review an agent's answers and save them as expectations."),
    _row(FIRST, "dataset", "Validate, list and convert suites and datasets."),
    _row(FIRST, "doctor", "Check the installation, settings, judge and suites."),
    _row("scoring", "rescore", "Rescore a stored run without calling the agent."),
    _row("scoring", "grade", "Grade scores that need a person."),
    _row("flaky cases", "flaky", "List the cases that both pass and fail."),
    _row("flaky cases", "quarantine", "Run a case without letting it affect the verdict, until a date."),
    _row("data", "trace", "Record, list, show, import and export traces, or turn them into cases."),
    _row("data", "list", "List evaluators, formats and kinds of agents.", runs_user_code=False),
    _row("tools", "mcp", "Offer this folder to coding agents over the Model Context Protocol."),
    _row("tools", "completion", "Print a completion script for bash, zsh or fish.", runs_user_code=False),
    _row(HIDDEN, "analyze", target="proctor.cli.show:analyze_command", runs_user_code=False),
    _row(HIDDEN, "plan", target="proctor.cli.plan:command"),
)

RENAMED = {
    "accept": "approve",
    "agents": "list agents",
    "analyze": "show --analysis",
    "evaluators": "list evaluators",
    "export": "runs export",
    "format": "trace to-case",
    "formats": "list formats",
    "import": "runs import",
    "plan": "test --gate --plan",
    "record": "approve",
}
"""Old names of commands, and what to write instead. They work and print a notice. One that has a row above has options
that the new command does not take; the others run the new command."""


def shipped_commands() -> dict[str, Command]:
    """The commands of this package and of its plugins, by name."""
    own = {command.name: command for command in COMMANDS}
    return own | _top_level(shipped_plugins())


def all_commands() -> dict[str, Command]:
    """Every command, including those of other packages, which takes time to find; raises `PluginError`."""
    return _top_level(installed_plugins()) | shipped_commands()


def find_command(name: str) -> Command | None:
    """The command with this name. Other packages are searched only if Proctor has no such command."""
    return shipped_commands().get(name) or _top_level(installed_plugins()).get(name)


def commands_in_group(group: str) -> Iterator[tuple[str, Command]]:
    """The commands that plugins add to a group, each with its name in the group."""
    for plugin in (*shipped_plugins(), *installed_plugins()):
        for command in plugin.commands:
            first, _, name = command.name.partition(" ")
            if name and first == group:
                yield name, command


def runs_user_code(arguments: Sequence[str]) -> bool:
    """Whether a command may load a suite or an agent, and so needs a guarded process."""
    if not arguments or not {"-h", "--help", "--version"}.isdisjoint(arguments):
        return False
    name = RENAMED.get(arguments[0], arguments[0]).partition(" ")[0]
    command = shipped_commands().get(name)
    return command is None or command.runs_user_code


def _top_level(plugins: Sequence[Plugin]) -> dict[str, Command]:
    return {item.name: item for plugin in plugins for item in plugin.commands if " " not in item.name}
