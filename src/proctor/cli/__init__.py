"""The `proctor` command: one module per command, which is imported when the command is called.

`main` runs the command line, turns every error that a user can fix into a message, and ends with an exit code.
`commands.py` lists the commands, and `help_pages.py` formats `--help`. `options.py` and `selection.py` have the options
that several commands share, and `output.py` prints. Commands call the engine, the store, reports and the viewer;
nothing else imports this package.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from proctor.base.documents import did_you_mean
from proctor.base.errors import (
    HiddenPackage,
    InvalidSuite,
    ProctorError,
    RenamedWarning,
    StoreError,
    UnusedExpectation,
    UsageError,
)
from proctor.base.guard import (
    NO_VERDICT,
    is_guarded,
    is_outermost_command,
    report_exit_code,
    restore_builtins,
    unraisable_printer,
)
from proctor.base.masking import mask
from proctor.base.output_capture import keep_open
from proctor.cli.commands import (
    FIRST,
    HIDDEN,
    RENAMED,
    all_commands,
    commands_in_group,
    find_command,
    shipped_commands,
)
from proctor.cli.help_pages import write_options
from proctor.plugins import Command, PluginError, load
from proctor.reporting.terminal.screen import LOST_OUTPUT, escape_control
from proctor.version import __version__

EXIT_CODES = """\
Exit codes: 0 passed, 1 failed, 2 usage error or invalid files,
3 inconclusive, 4 errors prevented a verdict, 130 interrupted.
"""


class LazyGroup(click.Group):
    """The command group. It knows the name and help line of every command, and imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [command.name for command in shipped_commands().values() if command.section != HIDDEN]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = _find(cmd_name)
        if entry is None:
            return None
        command: click.Command = load(entry.target)
        if isinstance(command, click.Group):
            with _plugin_errors():
                for name, extra in commands_in_group(cmd_name):
                    command.add_command(load(extra.target), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] in RENAMED:
            new = RENAMED[args[0]]
            _print_error(f"note: `proctor {args[0]}` is now `proctor {new}`")
            if args[0] not in shipped_commands():
                args = [*new.split(), *args[1:]]
        if args and not args[0].startswith("-") and _find(args[0]) is None:
            ctx.fail(f"no command {args[0]!r}{did_you_mean(args[0], (*self.list_commands(ctx), *RENAMED))}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[Command]] = {}
        for command in _all_commands().values():
            sections.setdefault(command.section, []).append(command)
        sections.pop(HIDDEN, None)
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.help) for command in sections.pop(FIRST)])
        with formatter.section("More commands (proctor COMMAND --help)"):
            formatter.write_dl([(title, ", ".join(c.name for c in rows)) for title, rows in sections.items()])
        write_options(self, ctx, formatter)
        formatter.write(f"\n{EXIT_CODES}")


@contextmanager
def _plugin_errors() -> Iterator[None]:
    """Print a warning if a plugin of another package cannot be loaded, and continue without it."""
    try:
        yield
    except PluginError as error:
        _print_error(f"warning: {error}")


def _find(name: str) -> Command | None:
    with _plugin_errors():
        return find_command(name)
    return None


def _all_commands() -> dict[str, Command]:
    with _plugin_errors():
        return all_commands()
    return shipped_commands()


MAX_HELP_WIDTH = 80


@click.group(
    cls=LazyGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "terminal_width": min(MAX_HELP_WIDTH, shutil.get_terminal_size().columns),
    },
)
@click.version_option(__version__, prog_name="proctor")
def group() -> None:
    """Test AI agents: run suites of cases, score the answers and tool calls, and report whether the agent passed and
    whether it got worse.

    \b
    New here?  proctor init my_suite  &&  proctor test my_suite
    """
    from proctor.config import prepare_imports

    for note in prepare_imports():
        _print_error(f"note: {note}")


def main() -> NoReturn:
    """The `proctor` command; a problem that the user can fix never ends in a traceback."""
    is_outermost = is_outermost_command()
    _make_streams_safe()
    warnings.showwarning = _print_warning
    sys.unraisablehook = unraisable_printer()
    try:
        code = _run_group()
    except InvalidSuite as error:
        code = _print_problems(error)
    except (click.ClickException, ProctorError) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        _print_error(message if message.startswith("Usage: ") else f"error: {message}")
        code = 4 if isinstance(error, (HiddenPackage, StoreError)) and not isinstance(error, UsageError) else 2
    except (click.Abort, KeyboardInterrupt):
        if is_guarded():  # the guard forwards a signal that a terminal has sent to this process already
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        _print_error("interrupted")
        code = 130
    except SystemExit as ended:  # click exits like this on a closed pipe; an exit code of 0 cannot be a result
        code = ended.code if isinstance(ended.code, int) and ended.code else 4
    except BrokenPipeError:
        code = _end_of_pipe()
    except MemoryError:
        _print_error("error: this machine has too little memory for this")
        code = 4
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        reason = "the working folder was deleted" if _is_working_folder_gone() else error.strerror or error
        _print_error(f"error: {place}{reason}")
        code = 4
    except BaseException as error:
        if not _comes_from_code_under_test(error):
            raise
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        _print_error(
            f"error: {what}; code under test stopped the run. Finished trials are stored; continue with --resume"
        )
        code = 4
    code = _flush(code if isinstance(code, int) else 0)
    if is_outermost:
        report_exit_code(code)
    raise SystemExit(code)


_show_warning = warnings.showwarning


def _print_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a warning as Python does, but a notice about a renamed thing as one line without file and source."""
    if issubclass(category, RenamedWarning):
        _print_error(f"note: {message}")
    elif issubclass(category, UnusedExpectation):
        _print_error(f"warning: {message}")
    else:
        _show_warning(message, category, *place, **more)


_REPLACED_STREAMS: list[Any] = []
"""Streams that code under test put into the place of Python's; one that is freed closes the file below it."""


def _run_group() -> Any:
    """Run the command; restore the streams, the recursion limit and Python's own functions, which code under test may
    have changed."""
    streams, limit = (sys.stdout, sys.stderr), sys.getrecursionlimit()
    try:
        return group(standalone_mode=False)
    finally:
        damage = restore_builtins()
        sys.setrecursionlimit(limit)
        _REPLACED_STREAMS.extend((sys.stdout, sys.stderr))
        sys.stdout, sys.stderr = streams
        if damage:
            _print_error(f"warning: {damage}")


def _is_working_folder_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _comes_from_code_under_test(error: BaseException) -> bool:
    """Whether code under test cancelled the tasks of the run, stopped its event loop, or used up the stack."""
    return (
        isinstance(error, RecursionError)
        or type(error).__name__ == "CancelledError"
        or (isinstance(error, RuntimeError) and "vent loop" in str(error))
    )


def _flush(code: int) -> int:
    """Flush standard output and return the exit code; not 0 if the output could not be written."""
    reason = LOST_OUTPUT[0] if LOST_OUTPUT else ""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _end_of_pipe()
    except (OSError, ValueError) as error:
        reason = str(error)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)  # otherwise Python would try to write the rest at exit, and change the exit code
        os.close(nowhere)
    if reason and code != NO_VERDICT:  # with that code, an error has been printed
        _print_error(f"error: cannot write the output: {reason}")
    return code or (NO_VERDICT if reason else 0)


def _print_problems(error: Any) -> int:
    """Print every problem of the suites, and of what they refer to, so that the user can fix all at once."""
    # `proctor --help` must not wait for the engine to load.
    from proctor.cli.output import in_file_order
    from proctor.running.plan import check_references

    unresolved = [problem for suite in error.partial_suites for problem in check_references(suite)]
    problems = dict.fromkeys([*error.problems, *unresolved])
    for problem in in_file_order(problems):
        _print_error(f"error: {problem}")
    count = len(problems)
    _print_error(f"{count} problem{'s' if count != 1 else ''}; nothing was run")
    return 2


def _print_error(text: str) -> None:
    click.echo(
        escape_control(mask(text)), file=sys.stderr
    )  # click would write UTF-8 to a terminal that says it is ASCII


def _make_streams_safe() -> None:
    """Make printing safe: characters that a terminal cannot show are escaped, a closed stream is replaced, and no code
    under test can close one."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif hasattr(stream, "reconfigure"):
            with suppress(OSError, ValueError):  # the stream of an isolated trial, or one that is closed
                stream.reconfigure(errors="backslashreplace")
        if stream is not None and stream is getattr(sys, f"__{name}__"):
            keep_open(stream)


def _end_of_pipe() -> int:
    """Discard the rest of the output, because its reader has ended (`| head`); returns the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 141  # what a shell reports for a program that a closed pipe ended
