"""The command line: one module per command or few that belong together, loaded when one is called."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any, NoReturn

import click

from proctor.base.documents import nearest
from proctor.base.errors import InvalidSuite, ProctorError, StoreError
from proctor.base.guard import is_guarded, tell_verdict
from proctor.base.masking import mask
from proctor.plugins import load, shipped_plugins
from proctor.reporting.terminal.screen import visible
from proctor.version import __version__

COMMANDS = {
    "test": "Run suites against an agent and say whether it passed.",
    "init": "Write a first suite and an agent to try it on.",
    "runs": "List the runs that are kept here.",
    "show": "Show one run again.",
    "view": "Show runs, comparisons and grading in the browser.",
    "baseline": "Say what is usual of each case: accept a run, show, prune.",
    "plan": "Say what a gated run will take and can see.",
    "flaky": "List the cases that both pass and fail.",
    "quarantine": "Let a case run without deciding anything, until a day.",
    "compare": "Say what changed from one run to another.",
    "export": "Write a whole run as one file.",
    "import": "Keep a run that was exported elsewhere.",
    "analyze": "Say what the failures of a run have in common.",
    "accept": "Write what an agent did, once a person accepts it, as what is expected of it.",
    "rescore": "Score the answers of a run anew, without asking the agent.",
    "grade": "Give the scores of a run that wait for a person or an agent.",
    "trace": "List, show, import and export what happened inside applications, or make a case of it.",
    "dataset": "Validate, convert, list, create and fill datasets.",
    "mcp": "Offer this folder to coding agents: list, show, compare, rerun.",
    "evaluators": "List the evaluators, or show one with its parameters and an example.",
    "formats": "List the formats that suites are read from and written in.",
    "agents": "List what can be examined, and which frameworks are installed.",
    "doctor": "Say what Proctor finds here and what is missing.",
    "completion": "Print a script that lets the shell complete commands, cases, tags and runs.",
}

HOMES = {
    "view": ("show", "view_command"),
    "analyze": ("show", "analyze_command"),
    "quarantine": ("flaky", "quarantine_command"),
    "export": ("runs", "export_command"),
    "import": ("runs", "import_command"),
    "evaluators": ("listings", "evaluators"),
    "formats": ("listings", "formats"),
    "agents": ("listings", "agents"),
}
"""The module and the name of a command that has no module of its own name."""

PLUGIN_COMMANDS = {command.name: command for plugin in shipped_plugins() for command in plugin.commands}
COMMANDS |= {name: command.help for name, command in PLUGIN_COMMANDS.items()}

RENAMED = {"record": "accept", "format": "trace to-case"}
"""What commands were called before; the old names work, and say the new ones."""


class LazyGroup(click.Group):
    """Knows the names and one-line helps of all commands; imports one only when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in PLUGIN_COMMANDS:
            return _with_help_page(load(PLUGIN_COMMANDS[cmd_name].target))
        home, name = HOMES.get(cmd_name, (cmd_name, "command"))
        command: click.Command = getattr(importlib.import_module(f"proctor.cli.{home}"), name)
        return _with_help_page(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from proctor.cli.help_pages import write_sections

        write_sections(COMMANDS, formatter)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] in RENAMED:
            new = RENAMED[args[0]]
            _complain(f"note: `proctor {args[0]}` is called `proctor {new}` now")
            args = [*new.split(), *args[1:]]
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


def _with_help_page(command: click.Command) -> click.Command:
    """The command with its options in groups and with examples; what writes them is imported when help is asked for."""

    def format_options(ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from proctor.cli.help_pages import write_options

        write_options(command, ctx, formatter)

    command.format_options = format_options  # type: ignore[method-assign]
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _with_help_page(inner)
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="proctor")
def group() -> None:
    """Proctor examines AI agents: it runs suites of cases, scores what the agent did, and gives a verdict.

    Exit codes: 0 passed, 1 failed, 2 usage or invalid files, 3 inconclusive, 4 errors prevented a verdict,
    130 interrupted.
    """
    from proctor.cli.configuration import prepare_imports

    for note in prepare_imports():
        _complain(f"note: {note}")


_with_help_page(group)


def main() -> NoReturn:
    """The `proctor` command; never ends in a traceback for something the user can mend."""
    _make_streams_safe()
    try:
        code = _run_group()
    except InvalidSuite as error:
        code = _say_problems(error)
    except (click.ClickException, ProctorError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        _complain(message if message.startswith("Usage: ") else f"error: {message}")
        code = 4 if isinstance(error, StoreError) else 2
    except (click.Abort, KeyboardInterrupt):
        if is_guarded():  # the guard forwards a signal that a terminal has sent to this process already
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        _complain("interrupted")
        code = 130
    except SystemExit as ended:  # click's way to end on a closed pipe; 0 would come from elsewhere, and be no result
        code = ended.code if isinstance(ended.code, int) and ended.code else 4
    except BrokenPipeError:
        code = _end_of_pipe()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _complain(f"error: {place}{error.strerror or error}")
        code = 4
    except BaseException as error:
        if not _comes_from_within(error):
            raise
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        _complain(f"error: {what}; the code that was run stopped it from within, and what was finished before is kept")
        code = 4
    code = _flushed(code if isinstance(code, int) else 0)
    tell_verdict(code)
    raise SystemExit(code)


def _run_group() -> Any:
    """The streams and the recursion limit are the same after it, whatever the code that it ran made of them."""
    streams, limit = (sys.stdout, sys.stderr), sys.getrecursionlimit()
    try:
        return group(standalone_mode=False)
    finally:
        sys.setrecursionlimit(limit)
        sys.stdout, sys.stderr = streams


def _comes_from_within(error: BaseException) -> bool:
    """Whether code that was run cancelled the tasks of the run, stopped its event loop, or left it no stack."""
    return (
        isinstance(error, RecursionError)
        or type(error).__name__ == "CancelledError"
        or (isinstance(error, RuntimeError) and "vent loop" in str(error))
    )


def _flushed(code: int) -> int:
    """The exit code, unless what was printed could not be written: then it may not say that all is well."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _end_of_pipe()
    except (OSError, ValueError) as error:
        _complain(f"error: the output could not be written: {error}")
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # what is left in the buffer would be tried again, and change the exit code
        os.close(nowhere)
        return code or 4
    return code


def _say_problems(error: Any) -> int:
    """Print every problem, also with what the files name, so that the user can fix everything at once."""
    # `proctor --help` must not wait for the engine to load.
    from proctor.cli.options_and_output import by_place
    from proctor.running.plan import unresolved

    problems = dict.fromkeys([*error.problems, *(found for suite in error.read for found in unresolved(suite))])
    for problem in by_place(problems):
        _complain(f"error: {problem}")
    count = len(problems)
    _complain(f"{count} problem{'s' if count != 1 else ''}; nothing was run")
    return 2


def _complain(text: str) -> None:
    click.echo(visible(mask(text)), file=sys.stderr)  # click would write UTF-8 to a terminal that says it is ASCII


def _make_streams_safe() -> None:
    """What a terminal cannot show is spelt out, and a closed stream takes everything: neither ends a command."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _end_of_pipe() -> int:
    """The reader of our output has gone (`| head`); what is left in the buffer goes nowhere, and without complaint."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 141  # as a shell reports a program that the closed pipe ended
