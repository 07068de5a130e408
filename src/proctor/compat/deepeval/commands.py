"""`proctor deepeval test run FILE`: what `deepeval test run FILE` is in DeepEval, with pytest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from proctor.base.errors import UsageError
from proctor.cli.output import say
from proctor.config import aliases_of

EXIT_CODES = {0: 0, 1: 1, 4: 2, 5: 2}
"""pytest's exit codes as Proctor's: passed, failed, wrong usage, no tests. Any other prevents a verdict."""


@click.group("deepeval")
def deepeval() -> None:
    """Run test files that were written for DeepEval."""


@deepeval.group("test")
def test() -> None:
    """Run test files."""


@test.command("run")
@click.argument("file")
@click.option("-n", "--num-processes", type=int, metavar="N", help="Run in N processes; needs pytest-xdist.")
@click.option("-x", "--exit-on-first-failure", is_flag=True, help="Stop at the first failure.")
@click.option("-m", "--mark", metavar="EXPRESSION", help="Run the tests with these markers.")
@click.option("-v", "--verbose", is_flag=True, help="Print one line per test.")
@click.option("-r", "--repeat", type=int, default=1, metavar="N", help="Only 1; `proctor test --repeat` repeats cases.")
@click.option("-c", "--use-cache", is_flag=True, help="No effect: replies of judges are stored anyway.")
@click.option("-i", "--ignore-errors", is_flag=True, help="No effect: an error ends only its own metric.")
@click.option("-s", "--skip-on-missing-params", is_flag=True, help="No effect: pass an ErrorConfig to assert_test.")
@click.option("-w", "--show-warnings", is_flag=True, help="No effect: pytest shows warnings.")
@click.option("-id", "--identifier", metavar="TEXT", help="No effect: results are not uploaded.")
@click.option("-d", "--display", metavar="WHICH", help="No effect: pytest shows what failed.")
def run(
    file: str,
    num_processes: int | None,
    exit_on_first_failure: bool,
    mark: str | None,
    verbose: bool,
    repeat: int,
    **without_effect: object,
) -> int:
    """Run FILE with pytest, with `deepeval` replaced by Proctor unless the project says otherwise."""
    if repeat != 1:
        raise UsageError("--repeat is not available; make a suite of the cases and use `proctor test --repeat`")
    if used := [name for name, value in without_effect.items() if value]:
        say(f"note: --{used[0].replace('_', '-')} has no effect", err=True)
    arguments = ["-v" if verbose else "-q", *(["-x"] if exit_on_first_failure else [])]
    arguments += [] if num_processes is None else ["-n", str(num_processes)]
    arguments += [] if mark is None else ["-m", mark]
    # DeepEval's own plugin, if it is installed, would import the real package first.
    command = [sys.executable, "-m", "pytest", "-p", "no:deepeval", *arguments, file]
    aliases = {} if aliases_of(Path.cwd()) else {"PROCTOR_ALIASES": "deepeval"}
    done = subprocess.run(command, env={**os.environ, **aliases}, check=False)
    return EXIT_CODES.get(done.returncode, 4)
