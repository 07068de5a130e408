"""The command that runs only the errors of a run again."""

from __future__ import annotations

import shlex

from proctor.results.run import Run
from proctor.results.score import Outcome
from proctor.results.verdict import RunVerdict


def rerun_errors_command(run: Run, verdict: RunVerdict) -> str | None:
    """The command that runs only the trials again that ended in errors, and keeps the others; `None` if there is none.

    An interrupted run has its own advice. A run from Python has no command line.
    """
    command = run.options.get("command")
    if run.interrupted or run.store is None or not verdict.counts[Outcome.ERROR] or not isinstance(command, str):
        return None
    return command if "--resume" in shlex.split(command) else f"{command} --resume"
